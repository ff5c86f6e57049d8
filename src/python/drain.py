"""Output between the runs of a session: children go on, and would end by SIGPIPE if nobody held the
read ends of a run's pipes once the host has closed its own. So the watcher has them too, leaves
all to the host while that is there, and reads for nobody afterwards, until all writers are gone.
"""

import os
import select

DRAINS_MAX = 64  # descriptors are limited; writers to pipes beyond this end by SIGPIPE after all
READ_SIZE = 65536


class Drain:
    """Of one run."""

    def __init__(self, write_ends):
        self.host = None  # its connection, once the run is over
        self.is_open = False  # nobody else reads
        self.pipes = []
        for fd in write_ends:
            try:
                flags = os.O_RDONLY | os.O_NONBLOCK
                self.pipes.append(os.open("/proc/self/fd/%d" % fd, flags))
            except OSError:
                pass  # then it is as if there were no watcher

    def leave_to(self, host):
        """The run is over; the host closes the connection when it has read what it wants."""
        self.host = host
        if self.is_open:
            host.close()
        elif self.is_over():
            self.close()

    def open(self):
        self.is_open = True
        if self.host:
            self.host.close()

    def fds(self):
        """What is to be waited for."""
        if self.is_open:
            return self.pipes
        return [self.host.fileno()] if self.host else []

    def step(self, ready):
        if not self.is_open and self.host and self.host.fileno() in ready:
            self.hear_host()
        elif self.is_open:
            for pipe in [pipe for pipe in self.pipes if pipe in ready]:
                self.discard(pipe)

    def hear_host(self):
        """What it still says, such as to end the run, comes too late."""
        try:
            if not self.host.recv(READ_SIZE):
                self.open()
        except BlockingIOError:
            pass
        except OSError:
            self.open()

    def discard(self, pipe):
        try:
            if os.read(pipe, READ_SIZE):
                return
        except BlockingIOError:
            return
        os.close(pipe)
        self.pipes.remove(pipe)

    def is_over(self):
        """Nobody is left who could write."""
        poll = select.poll()
        for pipe in self.pipes:
            poll.register(pipe, 0)
        return len(poll.poll(0)) == len(self.pipes)

    def close(self):
        while self.pipes:
            os.close(self.pipes.pop())
        if self.host:
            self.host.close()
            self.host = None


class Drains:
    """Of all runs of a session."""

    def __init__(self):
        self.all = []

    def add(self, write_ends):
        """For a run that begins."""
        self.sweep()
        drain = Drain(write_ends if len(self.all) < DRAINS_MAX else [])
        self.all.append(drain)
        return drain

    def register(self, poll):
        for drain in self.all:
            for fd in drain.fds():
                poll.register(fd, select.POLLIN)

    def step(self, ready):
        for drain in self.all:
            drain.step(ready)
        self.sweep()

    def sweep(self):
        """Lets go of those that nobody writes to any more."""
        for drain in [drain for drain in self.all if drain.is_over()]:
            drain.close()
            self.all.remove(drain)
