"""One run, seen from the watcher: hands the code over, passes frames on, keeps the time.

Neither a host that does not read nor a runner that does not end holds it up: each stage has a
deadline, and behind the last one the watcher goes on without them.
"""

import os
import select
import signal
import time

from . import system, wire

DRAIN_S = 3  # for the host to read what is left; it gives up itself 5 s after the grace
# Left for errors and notes when what is shown has used up the rest of the host's total.
TOTAL_FOR_SHOWN = wire.TOTAL_MAX - 512 * 1024

UNEXPLAINED = "Python ended by os._exit, or the code changed what it needs to report its end."
FRAME_COST = 64  # bytes that a frame counts for beyond its payload, against many small ones

# Stages: what has been done about the run already.
RUNNING, INTERRUPTED, KILLED = range(3)


def refuse(host, reason):
    """The whole answer to a run that cannot begin."""
    error = {"type": "OSError", "message": reason, "traceback": ""}
    end = {"end": "exception", "code": 1, "state": "none"}
    host.settimeout(DRAIN_S)
    try:
        for letter, members in ((wire.ERROR, error), (wire.END, end)):
            host.send(wire.host_packets(letter, wire.pack(members))[0])
    except OSError:
        pass  # the host is gone


class Run:
    def __init__(self, watcher, drain, request):
        self.host = watcher.connection
        self.pair = watcher.pair
        self.children = watcher.children
        self.child_signal = watcher.child_signal
        self.drains = watcher.drains
        self.drain = drain  # of this run
        self.request = request
        self.assembly = wire.Assembly()
        self.queue = []  # packets for the host; the runner waits until they are gone
        self.total = 0
        self.left_out = False
        self.host_gone = False
        self.host_asked = False
        self.outcome = None
        self.drained = False  # nothing more comes from the runner
        self.given_up = False
        self.stage = RUNNING
        self.timed_out = False
        self.deadline = 0

    def serve(self, number, session):
        self.host.setblocking(False)
        usage = self.children.usage()
        self.children.reap()
        if self.children.status is not None or not self.announce():
            self.request.close()
            return  # the host sees that nothing was begun
        self.hand_over(number, session)
        self.deadline = time.monotonic() + self.request.settings["timeout_ms"] / 1000
        while not self.is_over(session):
            self.step()
        if not session or not self.is_kept():
            self.children.kill_all()
        if self.left_out:
            self.note("More was shown than fits an answer.")
        if self.is_unexplained():
            self.note(UNEXPLAINED)
        self.pass_on(wire.END, wire.pack(self.describe_end(number, session, usage)))
        self.flush()

    # --- what comes and goes -----------------------------------------------------------------

    def announce(self):
        """Before the code begins, which could prevent it. False: the host is gone."""
        try:
            self.host.send(wire.host_packets(wire.STARTED, b"")[0])
            return True
        except OSError:
            return False

    def hand_over(self, number, session):
        request = self.request
        settings = dict(request.settings, run=number, session=session)
        head = self.assembly.tag + wire.pack(settings)
        self.pair.settimeout(DRAIN_S)
        try:
            system.send_with(self.pair, head, [request.code, request.stdout, request.stderr])
        except OSError:
            self.children.kill_all()  # it does not listen, or has ended just now
        finally:
            # The pipes end when the run and its children let go of them.
            request.close()
            self.pair.setblocking(False)

    def step(self):
        """Waits once, and does what is due."""
        ready = self.wait()
        self.child_signal.clear()
        self.children.reap()
        if self.host.fileno() in ready:
            self.hear_host(ready[self.host.fileno()])
        if self.host_gone and not self.drain.is_open:
            self.drain.open()
        self.drains.step(ready)
        self.send_queue()
        if self.listens_to_runner():
            self.read_runner()
        if time.monotonic() >= self.deadline:
            self.escalate()

    def wait(self):
        poll = select.poll()
        poll.register(self.child_signal.reader, select.POLLIN)
        if self.listens_to_runner():
            poll.register(self.pair, select.POLLIN)
        if not self.host_gone:
            events = select.POLLOUT if self.queue else 0
            poll.register(self.host, events | (0 if self.host_asked else select.POLLIN))
        self.drains.register(poll)
        # Once the runner has ended, all that matters is whether something is left to be read.
        left = 0 if self.children.status is not None and not self.queue else self.time_left()
        return dict(poll.poll(left * 1000))

    def time_left(self):
        return max(0, self.deadline - time.monotonic())

    def listens_to_runner(self):
        return not self.queue and self.outcome is None and not self.drained

    def hear_host(self, events):
        """Anything that it says means the end of the run, and so does its end."""
        if events & select.POLLIN:
            try:
                self.host_gone = not self.host.recv(wire.PACKET_MAX)
            except BlockingIOError:
                return
            except OSError:
                self.host_gone = True
            self.host_asked = True
        elif events & (select.POLLHUP | select.POLLERR):
            self.host_gone = self.host_asked = True
        if self.host_asked and self.stage == RUNNING:
            self.interrupt()

    def send_queue(self):
        try:
            while self.queue and not self.host_gone:
                self.host.send(self.queue[0])
                del self.queue[0]
        except BlockingIOError:
            return
        except OSError:
            self.host_gone = True
        if self.host_gone:
            self.queue.clear()

    def read_runner(self):
        try:
            packet = self.pair.recv(wire.PACKET_MAX)
        except BlockingIOError:
            self.drained = self.children.status is not None
            return
        except OSError:
            packet = b""
        if not packet:
            self.drained = True
            return
        frame = self.assembly.add(packet)
        if frame and frame[0] == wire.OUTCOME:
            self.outcome = frame[1]
        elif frame:
            self.pass_on(*frame)

    def pass_on(self, letter, payload):
        """Within the total that the host takes."""
        is_shown = letter not in (wire.ERROR, wire.NOTE, wire.END)
        limit = TOTAL_FOR_SHOWN if is_shown else wire.TOTAL_MAX
        size = len(payload) + FRAME_COST
        if letter == wire.END or self.total + size <= limit:
            self.total += size
            self.queue.extend(wire.host_packets(letter, payload))
        else:
            self.left_out = True
        self.send_queue()

    def note(self, sentence):
        self.pass_on(wire.NOTE, wire.pack({"text": sentence}))

    def flush(self):
        """What is left for the host, when it reads."""
        self.deadline = time.monotonic() + DRAIN_S
        while self.queue and not self.host_gone and self.time_left() > 0:
            poll = select.poll()
            poll.register(self.host, select.POLLOUT)
            poll.poll(self.time_left() * 1000)
            self.send_queue()

    # --- time and end ------------------------------------------------------------------------

    def interrupt(self):
        self.stage = INTERRUPTED
        self.deadline = time.monotonic() + self.request.settings["grace_ms"] / 1000
        self.children.interrupt()

    def escalate(self):
        if self.stage == RUNNING:
            self.timed_out = self.children.status is None
            self.interrupt()
        elif self.stage == INTERRUPTED:
            self.stage = KILLED
            self.children.kill_all()
            self.deadline = time.monotonic() + DRAIN_S
        else:
            self.queue.clear()
            self.given_up = True

    def is_over(self, session):
        if self.given_up:
            return True
        if self.queue or (self.outcome is None and not self.drained):
            return False
        return self.children.status is not None or (session and self.is_kept())

    def is_kept(self):
        """Whether the runner can take the next code of a session."""
        return self.children.status is None and self.outcome is not None

    def was_harmless(self):
        """False when it crashed: importing the same ahead could crash the kernel."""
        status = self.children.status
        return self.timed_out or status is None or not os.WIFSIGNALED(status)

    def is_unexplained(self):
        """It ended with a code, but not with the one that the runner told last."""
        status = self.children.status
        if status is None or not os.WIFEXITED(status):
            return False
        return self.outcome is None or self.read_outcome()["code"] != os.WEXITSTATUS(status)

    def describe_end(self, number, session, usage_before):
        cpu_s, rss_kib = self.children.usage()
        return dict(
            self.read_outcome() if self.is_kept() else self.read_status(),
            timed_out=self.timed_out,
            state=("kept" if self.is_kept() else "lost") if session else "none",
            cpu_ms=int((cpu_s - usage_before[0]) * 1000),
            max_rss_kib=rss_kib,
            runs=number,
        )

    def read_status(self):
        """What the system says; the runner's words only tell sys.exit from the end of the code."""
        status = self.children.status
        if status is None:  # the system does not let go of it
            return {"end": "signal", "signal": int(signal.SIGKILL)}
        if os.WIFSIGNALED(status):
            return {"end": "signal", "signal": os.WTERMSIG(status)}
        end = {"end": "exit", "code": os.WEXITSTATUS(status)}
        said = self.read_outcome()
        return said if said["code"] == end["code"] else end

    def read_outcome(self):
        words = (self.outcome or b"exit 0").decode("ascii", "replace").split(" ")
        if len(words) != 2 or words[0] not in ("done", "exception", "exit"):
            words = ["exit", "0"]
        code = int(words[1]) if words[1].isdigit() and len(words[1]) <= 3 else 0
        return {"end": words[0], "code": min(code, 255)}
