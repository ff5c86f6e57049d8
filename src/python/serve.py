"""The kernel: takes connections, forks a watcher for each, imports ahead when idle.

It has one thread, and runs and imports nothing of the workspace. When a directory of the user turns
out to hide a module that was imported ahead, the kernel starts itself anew (--bare) and leaves
imports to the code from then on.
"""

import gc
import os
import select
import signal
import socket
import sys

from . import preload, run, system, watcher, wire

PIPE_SIZE = 65536
REQUEST_S = 1  # for a request that is refused: everybody else waits meanwhile
QUIET_S = 0.3  # without a connection, before an import that takes long


def take_listener():
    """The listening socket, away from standard input."""
    listener = socket.socket(fileno=system.move_high(0))
    # Number 0 stays in use, so that nothing else gets it by accident.
    os.open(os.devnull, os.O_RDONLY)
    listener.setblocking(False)
    return listener


class Kernel:
    def __init__(self, listener, idle_ms, path, cwd, bare):
        self.listener = listener
        self.idle_s = idle_ms / 1000
        self.path = path
        self.cwd = cwd
        self.bare = bare
        self.watchers = set()
        self.wanted = []
        self.quiet_s = 0
        self.own_names = preload.top_names()
        self.child_signal = system.ChildSignal()
        self.wishes, self.wish_end = os.pipe()
        os.set_blocking(self.wishes, False)
        os.set_blocking(self.wish_end, False)

    def serve(self, preload_now):
        """Returns when nothing was to be done for so long."""
        system.prctl(system.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if preload_now:
            self.wanted.extend(preload.USUAL)
        gc.collect()
        gc.freeze()
        while True:
            happened = self.wait(self.quiet_s if self.wanted else self.idle_s)
            self.reap()
            if not happened and self.wanted:
                preload.import_ahead(self.wanted.pop(0))
            elif not happened and not self.watchers:
                return

    def wait(self, timeout_s):
        """Whether a connection came, a wish, or the end of a watcher, before the time was up."""
        poll = select.poll()
        for fd in (self.listener.fileno(), self.wishes, self.child_signal.reader):
            poll.register(fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(timeout_s * 1000)]
        if self.listener.fileno() in ready:
            self.accept()
        if self.wishes in ready:
            self.note_wishes()
        self.child_signal.clear()
        return bool(ready)

    def reap(self):
        try:
            pid = os.waitpid(-1, os.WNOHANG)[0]
            while pid:
                self.watchers.discard(pid)
                pid = os.waitpid(-1, os.WNOHANG)[0]
        except ChildProcessError:
            self.watchers.clear()

    def note_wishes(self):
        """Each watcher writes its names in one go, and all that fits the pipe is read at once."""
        self.quiet_s = QUIET_S
        for name in os.read(self.wishes, PIPE_SIZE).decode("ascii", "replace").split():
            modules = preload.SLOW.get(name, ())
            missing = any(module not in sys.modules for module in modules)
            if missing and name not in self.wanted and not self.bare:
                self.wanted.append(name)

    def accept(self):
        ahead = preload.top_names() - self.own_names
        if ahead and preload.is_shadowed(ahead, self.cwd):
            self.start_anew()
        try:
            connection = self.listener.accept()[0]
        except OSError:
            return  # it is gone again, or there is no room for a descriptor now
        with connection:
            try:
                pid = os.fork()
            except OSError:
                self.refuse(connection)
                return
            if pid > 0:
                self.watchers.add(pid)
                return
            self.become_watcher(connection)

    def refuse(self, connection):
        """The request is read before: one that was not makes the other end an error."""
        connection.settimeout(REQUEST_S)
        try:
            _, fds = system.receive_with(connection, wire.PACKET_MAX, watcher.FDS_MAX)
        except OSError:
            return
        for fd in fds:
            os.close(fd)
        run.refuse(connection, watcher.NO_ROOM)

    def become_watcher(self, connection):
        try:
            self.listener.close()
            self.child_signal.close()
            os.close(self.wishes)
            watcher.Watcher(connection, self.wish_end).live()
        finally:
            os._exit(0)

    def start_anew(self):
        """The connection waits in the queue meanwhile; watchers stay children of this process."""
        os.dup2(self.listener.fileno(), 0)
        options = ["--idle-ms", str(int(self.idle_s * 1000)), "--bare"]
        os.execv(sys.executable, [sys.executable, "-I", self.path] + options)
