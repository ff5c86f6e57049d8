"""The process that code finds: streams, module path, random numbers, and Python's last steps."""

import atexit
import io
import os
import select
import site
import sys
import threading
import time

from . import environment, preload


def redirect(*fds):
    """Makes 0, 1 and 2 what these are, whatever the code has made of them."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)


class WholeWrites(io.FileIO):
    """Writes all that it is given: a handler of signals may cut a write short, and the pipe is
    full at times when code has made it non-blocking."""

    def write(self, data):
        view = memoryview(data)
        total = view.nbytes
        written = super().write(view)
        if written == total:
            return total
        view = view.cast("B")
        done = written or 0
        while done < total:
            if written is None:
                self.wait()
            written = super().write(view[done:])
            done += written or 0
        return total

    def wait(self):
        poll = select.poll()
        poll.register(self, select.POLLOUT)
        poll.poll()


def open_streams():
    """As with python -u: what was printed is out, however the process ends."""
    sys.stdin = sys.__stdin__ = open(0, "r", encoding="utf-8", closefd=False)
    for fd, name in ((1, "stdout"), (2, "stderr")):
        raw = WholeWrites(fd, "w", closefd=False)
        raw.name = "<%s>" % name
        stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
        stream.mode = "w"
        setattr(sys, name, stream)
        setattr(sys, "__%s__" % name, stream)


def flush_streams():
    """The code may have put anything in their place."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass


def module_path(cwd):
    """sys.path as without -I, which keeps the user's directories out of the kernel."""
    system_path = list(sys.path)
    user_site = preload.user_site()
    site.addsitedir(user_site)  # with its .pth files; does nothing when it is not there
    from_user = [path for path in sys.path if path not in system_path]
    packages = [path for path in system_path if path.endswith("-packages")]
    library = [path for path in system_path if path not in packages]
    return [cwd] + preload.python_path() + library + from_user + packages


def adopt_environment():
    """The sandbox's variables, and what Python has made of others before it knew them."""
    environment.adopt()
    site.USER_BASE = site.USER_SITE = None
    time.tzset()


def reseed():
    """What these have drawn numbers from is a copy of the kernel's. random does this itself."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random:
        numpy_random.seed()
    sympy_random = sys.modules.get("sympy.core.random")
    if sympy_random:
        sympy_random.rng.seed()


def exit_code(error):
    """What sys.exit was called with, as Python would have it."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    try:
        print(error.code, file=sys.stderr)
    except BaseException:
        pass
    return 1


def finish():
    """What Python does at the end of a process, in its order."""
    threading._shutdown()
    # Python 3.13 does not raise an interrupt of this, but goes on.
    others = set(threading.enumerate()) - {threading.current_thread()}
    if any(not thread.daemon for thread in others):
        raise KeyboardInterrupt
    atexit._run_exitfuncs()
