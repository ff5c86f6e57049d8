"""The kernel of a sandbox: kernel.py --idle-ms N [--preload | --bare].

Standard input is the listening socket that the host made. The process goes on in the background
and the one that was started exits with 0 when connections are taken, with another status and a
reason on standard error when that will not happen. This file is also read by versions of Python
that are too old for the rest, so that they can say so.
"""

import os
import sys

OLDEST = (3, 8)
PACKAGE = "_spoolbox"  # code of the user must not find our modules by their plain names


def refuse(reason):
    """Ends with a reason that the host shows."""
    sys.stderr.write("Spoolbox's part of Python: " + reason + "\n")
    sys.exit(3)


def load():
    """Imports all of the driver now: nothing is read from disk once code of the user runs."""
    package = type(sys)(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package
    sys.dont_write_bytecode = True
    try:
        from _spoolbox import serve
    except ImportError as error:
        refuse("this Python lacks a part of its standard library: %s" % error)
    sys.dont_write_bytecode = False
    return serve


def to_background():
    """Returns in a process of its own session; the one that was started ends."""
    reader, writer = os.pipe()
    if os.fork() > 0:
        os.close(writer)
        os._exit(0 if os.read(reader, 1) else 1)
    os.close(reader)
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.close(null)
    os.write(writer, b"1")
    os.close(writer)


def main(options):
    if sys.version_info < OLDEST:
        refuse("Python %d.%d is too old, 3.8 is needed" % sys.version_info[:2])
    idle_ms = int(options[options.index("--idle-ms") + 1])
    serve = load()
    listener = serve.take_listener()
    cwd = os.getcwd()  # that of the code
    bare = "--bare" in options  # started by itself, see serve.py
    if not bare:
        to_background()
    kernel = serve.Kernel(listener, idle_ms, os.path.abspath(__file__), cwd, bare)
    kernel.serve("--preload" in options)


if __name__ == "__main__":
    main(sys.argv[1:])
