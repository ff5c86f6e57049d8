"""A watcher: lives for one run, or for one session with its runs. Forks the runner, ends with it.

It reads nothing that code could have written but frames, whose letters and lengths it checks.
"""

import json
import os
import select
import socket
import time

from . import preload, run, runner, system, wire
from .children import Children
from .drain import Drains

REQUEST_S = 10  # the host sends it right after it has connected
FDS_MAX = 4
NO_ROOM = "this sandbox has no room for another process; the code was not run"

LAST_WORDS = "Python ended: the code changed or closed what it needs to report (%s).\n"
# Functions that code may have put others in the place of.
_exit = os._exit
_write = os.write


class Request:
    """What the host wants run: settings, and the descriptors that came with them."""

    def __init__(self, settings, fds):
        self.settings = settings
        self.code, self.stdout, self.stderr = fds[:3]
        self.listener = socket.socket(fileno=fds[3]) if len(fds) > 3 else None
        code = os.pread(self.code, os.fstat(self.code).st_size, 0)
        self.names = preload.named(code.decode("utf-8", "replace"))

    def close(self):
        for fd in (self.code, self.stdout, self.stderr):
            os.close(fd)


def receive(connection):
    """A request; {} when the host asks for the end of the session, None when nothing was asked."""
    connection.settimeout(REQUEST_S)
    try:
        data, fds = system.receive_with(connection, wire.PACKET_MAX, FDS_MAX)
        settings = json.loads(data.decode("utf-8"))
    except (OSError, ValueError):
        return None
    if settings.get("end"):
        return {}
    return Request(settings, fds) if len(fds) >= 3 else None


class Watcher:
    def __init__(self, connection, wish_end):
        self.connection = connection
        self.wish_end = wish_end
        self.listener = None
        self.runs = 0
        self.children = Children()
        self.drains = Drains()
        self.child_signal = system.ChildSignal()
        self.pair, self.runner_pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def live(self):
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        try:
            self.serve()
        finally:
            self.children.kill_all()

    def serve(self):
        """All runs."""
        request = receive(self.connection)
        if not request:
            return
        self.listener = request.listener
        if not self.start_runner():
            run.refuse(self.connection, NO_ROOM)
            return
        self.do(request)
        while self.listener and self.children.status is None:
            request = self.next_request(request.settings["idle_ms"])
            if not request:
                break
            self.do(request)
        if self.listener:
            self.listener.close()

    def start_runner(self):
        """Before there is a tag, so that the runner gets only those of its own runs."""
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            return False
        if pid == 0:
            self.become_runner(parent)
        self.children.runner = pid
        self.runner_pair.close()
        return True

    def become_runner(self, parent):
        """Never returns: what is on the stack owns numbers of descriptors that are others' now."""
        try:
            self.child_signal.close()
            runner.live(system.move_high(self.runner_pair.detach()), parent)
        except BaseException as error:
            _write(2, (LAST_WORDS % type(error).__name__).encode("ascii", "replace"))
        finally:
            _exit(1)

    def do(self, request):
        """One run from hand-over to end frame."""
        self.runs += 1
        # Without a session nobody is left who writes.
        drain = self.drains.add([request.stdout, request.stderr] if self.listener else [])
        one = run.Run(self, drain, request)
        one.serve(self.runs, self.listener is not None)
        drain.leave_to(self.connection)
        if request.names and one.was_harmless():
            self.wish(request.names)

    def wish(self, names):
        try:
            os.write(self.wish_end, "".join(name + "\n" for name in names).encode("ascii"))
        except OSError:
            pass  # the kernel is busy with others, or was started anew

    def next_request(self, idle_ms):
        """None or {} when the session is over."""
        until = time.monotonic() + idle_ms / 1000
        while time.monotonic() < until:
            ready = self.wait(until)
            self.drains.step(ready)
            self.child_signal.clear()
            self.children.reap()
            if self.children.status is not None:
                return None
            # Between runs nothing counts that the runner sends, but that it has hung up.
            if self.pair.fileno() in ready and not self.pair.recv(wire.PACKET_MAX):
                return None
            if self.listener.fileno() in ready:
                self.connection = self.listener.accept()[0]
                request = receive(self.connection)
                if request is not None:
                    return request
                self.connection.close()
        return None

    def wait(self, until):
        poll = select.poll()
        for fd in (self.listener.fileno(), self.pair.fileno(), self.child_signal.reader):
            poll.register(fd, select.POLLIN)
        self.drains.register(poll)
        return [fd for fd, _ in poll.poll(max(0, until - time.monotonic()) * 1000)]
