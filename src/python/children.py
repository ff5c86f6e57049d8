"""The processes of a watcher: the runner, and all that it left behind, which the watcher, as their
subreaper, gets as children.
"""

import os
import signal
import time

KILL_MAX_S = 10  # for processes that the system does not let go of, such as those in a core dump
STOP_PASSES = 50

_TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    """The fields of /proc/PID/stat from the state on, or None. The name may hold any byte."""
    try:
        with open("/proc/%s/stat" % pid, "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def stop_descendants():
    """Stops all processes below this one, each as soon as it is seen: those that spin or fork would
    take the time that looking at the others needs. Returns the numbers of those not dead."""
    found, known, unknown = [], {os.getpid()}, {}
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        fields = _stat(pid)
        if not fields:
            continue
        # A process whose first thread has ended looks like a zombie but runs on.
        is_dead = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
        unknown.setdefault(int(fields[1]), []).append((pid, is_dead))
        # Most are younger than their parents, but numbers begin anew at some point.
        parents = [int(fields[1])] if int(fields[1]) in known else []
        while parents:
            for child, is_dead in unknown.pop(parents.pop(), ()):
                known.add(child)
                parents.append(child)
                if not is_dead:
                    _signal(child, signal.SIGSTOP)
                    found.append(child)
    return found


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass  # it has ended meanwhile


class Children:
    def __init__(self):
        self.runner = 0
        self.status = None  # of the runner, when it has ended
        self.cpu_s = 0.0  # of all that have ended
        self.rss_kib = 0

    def reap(self):
        """Takes note of all that have ended. False: there is no child left."""
        try:
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.runner:
                    self.status = status
                self.cpu_s += usage.ru_utime + usage.ru_stime
                self.rss_kib = max(self.rss_kib, usage.ru_maxrss)
        except ChildProcessError:
            return False

    def interrupt(self):
        if self.status is None:
            _signal(self.runner, signal.SIGINT)

    def kill_all(self):
        """Stops before it kills, so that nothing can be started by what is about to die."""
        until = time.monotonic() + KILL_MAX_S
        while self.reap() and time.monotonic() < until:
            before = None
            for _ in range(STOP_PASSES):
                pids = set(stop_descendants())
                if pids == before:
                    break
                before = pids
            for pid in before:
                _signal(pid, signal.SIGKILL)
            time.sleep(0.001)

    def usage(self):
        """(seconds of processor time, peak KiB) up to now."""
        fields = _stat(self.runner) if self.status is None else None
        if not fields:
            return self.cpu_s, self.rss_kib
        ticks = sum(int(field) for field in fields[11:15])  # its own and that of its children
        return self.cpu_s + ticks / _TICKS, max(self.rss_kib, self._peak_kib())

    def _peak_kib(self):
        try:
            with open("/proc/%d/status" % self.runner, "rb") as file:
                for line in file:
                    if line.startswith(b"VmHWM:"):
                        return int(line.split()[1])
        except OSError:
            pass
        return 0
