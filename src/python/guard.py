"""Advice to whoever writes the code, when the operator has switched it on; no boundary.

Two rules. Starting programs and calling C is refused when code of the user asks for it directly:
the nearest caller outside of the modules in INTERFACES decides, so that numpy may use ctypes, and
the standard library may start a helper of its own. Writing is refused to all, outside of a few
directories, but for the import system, which keeps its compiled files.
"""

import os
import sys
import sysconfig
import tempfile

PROGRAMS = "To run commands, use the tool exec."
LIBRARIES = "Compute in Python, or with numpy and the like."

# Events of the audit hooks (see the table in Python's documentation), and what to do instead.
CALLS = {
    "os.system": PROGRAMS,
    "os.exec": PROGRAMS,
    "os.posix_spawn": PROGRAMS,
    "os.spawn": PROGRAMS,
    "pty.spawn": PROGRAMS,
    "subprocess.Popen": PROGRAMS,
    "ctypes.dlopen": LIBRARIES,
    "ctypes.dlsym": LIBRARIES,
    "ctypes.string_at": LIBRARIES,
    "ctypes.wstring_at": LIBRARIES,
    "ctypes.cdata": LIBRARIES,
    "ctypes.call_function": LIBRARIES,
}
# Arguments of the event: which are paths, and where the directory is that they are relative to.
WRITES = {
    "os.remove": ((0, 1),),
    "os.rename": ((0, 2), (1, 3)),
    "os.mkdir": ((0, 2),),
    "os.rmdir": ((0, 1),),
    "os.link": ((1, 3),),
    "os.symlink": ((1, 2),),
    "os.truncate": ((0, None),),
    "os.chmod": ((0, 2),),
}
INTERFACES = ("subprocess.py", "os.py", "pty.py", "shutil.py", "ctypes" + os.sep)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ALWAYS = ("/tmp", "/dev", tempfile.gettempdir())
WORDS = "this server is set up not to allow it (SMCP_PYTHON_GUARD)"

_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_PACKAGES = tuple(path + os.sep for path in sys.path if path.endswith("-packages"))
_DRIVER = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SYSTEM = (_LIBRARY, _DRIVER, "<frozen ") + _PACKAGES
_IMPORTS = "<frozen importlib"


def install(directories):
    """For the rest of the process."""
    allowed = tuple(os.path.realpath(path) + os.sep for path in (*directories, *ALWAYS))

    def check(event, arguments):
        if event in CALLS:
            check_call(event)
        elif event == "open":
            if arguments[2] and arguments[2] & WRITING:
                check_path(allowed, arguments[0], None)
        elif event in WRITES:
            for path, directory in WRITES[event]:
                base = None if directory is None else arguments[directory]
                check_path(allowed, arguments[path], base)

    sys.addaudithook(check)


def check_call(event):
    frame = sys._getframe(2)
    while frame is not None and is_interface(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None and not frame.f_code.co_filename.startswith(_SYSTEM):
        raise PermissionError("%s: %s. %s" % (event, WORDS, CALLS[event]))


def is_interface(filename):
    return filename.startswith(_LIBRARY) and filename[len(_LIBRARY) :].startswith(INTERFACES)


def check_path(allowed, path, directory):
    if isinstance(path, int) or sys._getframe(2).f_code.co_filename.startswith(_IMPORTS):
        return
    base = "/proc/self/fd/%d" % directory if directory not in (None, -1) else "."
    path = os.path.realpath(os.path.join(os.path.realpath(base), os.fsdecode(path)))
    if not (path + os.sep).startswith(allowed):
        raise PermissionError("writing to %s: %s. Write to the working directory." % (path, WORDS))
