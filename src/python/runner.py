"""The runner: the process that code runs in, once or for as long as its session lives."""

import json
import os
import resource
import select
import signal
import sys

from . import figures, guard, process, system, trace, wire
from .display import Display
from .script import Script

OOM_SCORE = "500"  # when memory runs out, this process is to go and not the watcher or the kernel
REQUEST_MAX = wire.PACKET_MAX + 1024
FDS = 3
# Below the watcher, which is to stop all of this when its time is up.
NICE = 5

# Functions that code may have put others in the place of, by which it would be taken for a child.
_getpid = os.getpid


class Job:
    """Code to be run, and how."""

    def __init__(self, data, fds):
        settings = json.loads(data[wire.TAG_SIZE :].decode("utf-8"))
        self.tag = data[: wire.TAG_SIZE]
        # Away from 0 to 2, which the code before may have closed.
        self.code_fd, self.stdout, self.stderr = (system.move_high(fd) for fd in fds)
        self.number = settings["run"]
        self.session = settings["session"]
        self.cwd = settings["cwd"]
        self.save_dir = settings["save_dir"]
        self.image_bytes = settings["image_bytes"]
        self.guard = settings["guard"]
        self.inputs = settings["inputs"]
        self.limit_s = settings["timeout_ms"] / 1000
        self.filename = "run-%d.py" % self.number if self.session else "main.py"

    def read_code(self):
        with open(self.code_fd, "rb") as file:
            file.seek(0)
            return file.read().decode("utf-8", "replace")

    def close_streams(self):
        os.close(self.stdout)
        os.close(self.stderr)


def live(pair, parent):
    """Everything that this process does. The descriptors of the watcher are closed first."""
    os.closerange(3, system.HIGH_FD)
    os.setsid()
    system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    system.prctl(system.PR_SET_DUMPABLE, 1)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would lie in the workspace
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(OOM_SCORE)
    except OSError:
        pass
    Runner(wire.Channel(pair)).serve()


class Runner:
    def __init__(self, channel):
        self.channel = channel
        self.pid = _getpid()
        self.null = system.move_high(os.open(os.devnull, os.O_RDWR))
        self.spare = system.Spare(self.null, FDS + 1)  # one more for moving them
        self.is_prepared = False
        self.on_interrupt = signal.default_int_handler
        self.display = Display(channel)
        self.script = Script(self.display)
        figures.hook_pyplot(self.display)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def serve(self):
        while True:
            select.select([self.channel.socket], [], [])
            self.spare.give()
            data, fds = system.receive_with(self.channel.socket, REQUEST_MAX, FDS)
            if not data:
                os._exit(0)  # the watcher is gone
            self.run(Job(data, fds))

    def run(self, job):
        process.redirect(self.null, job.stdout, job.stderr)
        process.open_streams()
        source = job.read_code()
        job.close_streams()
        self.spare.take()
        self.display.begin(job)
        self.channel.tag = job.tag
        error = self.attempt(lambda: self.do(source, job))
        if _getpid() != self.pid:
            self.leave_as_child(error)
        if not isinstance(error, KeyboardInterrupt):
            late = self.attempt(self.display.show_open_figures)
            error = late if error is None else error
        end, code = self.tell(error, job)
        if not job.session:
            self.leave(error, end, code, job)
        process.flush_streams()
        process.redirect(self.null, self.null, self.null)
        self.channel.end(end, code)

    def do(self, source, job):
        if not self.is_prepared:
            prepare_process(job)
            self.is_prepared = True
        self.script.run(source, job.filename)

    def attempt(self, action):
        """What the action raised, or None. Here alone SIGINT interrupts; its handler is kept."""
        try:
            try:
                signal.signal(signal.SIGINT, self.on_interrupt)
                action()
            finally:
                handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
                self.on_interrupt = handler or signal.default_int_handler
        except BaseException as error:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            return error
        return None

    def tell(self, error, job):
        """Reports how it ended; (end, code) of the end frame."""
        if error is None:
            return "done", 0
        if isinstance(error, SystemExit):
            return "exit", process.exit_code(error)
        self.channel.send(wire.ERROR, wire.pack(trace.describe(error, job)))
        return "exception", 1

    def leave(self, error, end, code, job):
        """The end of a process without a session."""
        # Its one interrupt is used up when it was interrupted: it does not wait for threads then.
        if not isinstance(error, KeyboardInterrupt):
            late = self.attempt(process.finish)
            if error is None and late is not None:
                end, code = self.tell(late, job)
        process.flush_streams()
        self.channel.end(end, code)
        os._exit(code)

    def leave_as_child(self, error):
        """The code has called os.fork, and this is the child at the end of it."""
        code = 0
        if isinstance(error, SystemExit):
            code = process.exit_code(error)
        elif error is not None:
            sys.excepthook(type(error), error, trace.shortened(error.__traceback__))
            code = 1
        self.attempt(process.finish)
        process.flush_streams()
        os._exit(code)


def prepare_process(job):
    """What the first code of a process finds."""
    process.adopt_environment()
    os.chdir(job.cwd)
    sys.argv = [""]
    sys.path[:] = process.module_path(job.cwd)
    figures.prepare()
    process.reseed()
    if job.guard:
        guard.install([job.cwd, job.save_dir])
