"""What the standard library has no words for: prctl, descriptors in messages, ends of children."""

import array
import ctypes
import fcntl
import os
import signal
import socket

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

# Descriptors of ours in the runner begin here, so that those of the code begin at 3.
HIGH_FD = 200

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def prctl(option, value):
    zero = ctypes.c_ulong(0)
    if _prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def move_high(fd):
    """The same file at a high number, closed on exec; fd is closed."""
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    os.close(fd)
    return moved


class Spare:
    """Descriptors kept for what is received next, when code has used up all others."""

    def __init__(self, fd, count):
        self.count = count
        self.fd = fd  # what they are copies of
        self.fds = []
        self.take()

    def take(self):
        try:
            while len(self.fds) < self.count:
                self.fds.append(fcntl.fcntl(self.fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD))
        except OSError:
            pass  # a thread of the code was faster, and keeps itself from being told

    def give(self):
        while self.fds:
            os.close(self.fds.pop())


def send_with(sock, data, fds):
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    sock.sendmsg([data], ancillary)


def receive_with(sock, size, fds_max):
    """One packet and the descriptors that came with it."""
    fds = array.array("i")
    data, ancillary, _, _ = sock.recvmsg(
        size, socket.CMSG_SPACE(fds_max * fds.itemsize), socket.MSG_CMSG_CLOEXEC
    )
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


class ChildSignal:
    """A descriptor that can be read from when a child has ended."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        # The number of a signal is written only when there is a handler.
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self.writer, warn_on_full_buffer=False)

    def clear(self):
        try:
            os.read(self.reader, 4096)
        except BlockingIOError:
            pass

    def close(self):
        """For a child, which has none of its parent's children."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self.reader)
        os.close(self.writer)
