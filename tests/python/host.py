"""The host's side of src/run/kernel.h, for tests: starts a kernel, runs code, reads the answer.

There is no sandbox: everything runs as the current user, root as nobody, in directories below
/var/tmp.
"""

import array
import atexit
import errno
import functools
import glob
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

PYTHON = os.environ.get("SPOOLBOX_TEST_PYTHON", "/usr/bin/python3")
DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "python")
USER = 65534 if os.getuid() == 0 else os.getuid()
AS_USER = {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
PACKET_MAX = 65536
ANSWER_S = 40  # a test that takes longer has hung


class Result:
    """What came of a run: the frames by kind, the output, and the end frame's members."""

    def __init__(self):
        self.started = False
        self.value = None
        self.error = None
        self.displays = []
        self.images = []
        self.files = []
        self.notes = []
        self.end = None  # None: the connection was closed without an end frame
        self.packets = []
        self.streams = [bytearray(), bytearray()]
        self.sizes = [0, 0]
        self.seconds = 0

    @property
    def stdout(self):
        return self.streams[0].decode("utf-8", "replace")

    @property
    def stderr(self):
        return self.streams[1].decode("utf-8", "replace")

    @property
    def text(self):
        return self.value and self.value["text"]

    def add(self, letter, payload):
        if letter == b"I":
            head, _, data = payload.partition(b"\n")
            self.images.append(dict(json.loads(head), data=data))
            return
        members = json.loads(payload) if payload else None
        if letter == b"S":
            self.started = True
        elif letter in b"VEX":
            setattr(self, {b"V": "value", b"E": "error", b"X": "end"}[letter], members)
        else:
            {b"D": self.displays, b"F": self.files, b"N": self.notes}[letter].append(members)


class Call:
    """A run under way."""

    def __init__(self, path, settings, code, listener=None):
        self.result = Result()
        self.begun = time.monotonic()
        self.is_left = False
        self.socket = connect(path)
        memory = os.memfd_create("code")
        os.write(memory, code.encode("utf-8"))
        self.pipes, ends = [], []
        for _ in range(2):
            reader, writer = os.pipe()
            os.fchown(reader, USER, -1)  # the kernel of a sandbox runs as the host's user
            self.pipes.append(reader)
            ends.append(writer)
        fds = [memory] + ends + ([listener.fileno()] if listener else [])
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
        self.socket.sendmsg([json.dumps(settings).encode()], [rights])
        for fd in [memory] + ends:
            os.close(fd)
        self.threads = [threading.Thread(target=self.read_pipe, args=(i,)) for i in range(2)]
        for thread in self.threads:
            thread.start()

    def read_pipe(self, which):
        """Keeps the first MiB and counts all."""
        poll = select.poll()
        poll.register(self.pipes[which], select.POLLIN)
        while True:
            while not poll.poll(20) and not self.is_left:
                pass
            data = b"" if self.is_left else os.read(self.pipes[which], PACKET_MAX)
            if not data:
                os.close(self.pipes[which])
                return
            self.result.sizes[which] += len(data)
            stream = self.result.streams[which]
            stream += data[: max(0, 1048576 - len(stream))]

    def read_frames(self):
        self.socket.settimeout(ANSWER_S)
        payload = b""
        while self.result.end is None:
            try:
                packet = self.socket.recv(PACKET_MAX + 1)
            except ConnectionResetError:
                return
            if not packet:
                return
            assert len(packet) <= PACKET_MAX, "a packet of %d bytes" % len(packet)
            payload += packet[2:]
            if packet[1:2] == b"0":
                self.result.add(packet[:1], payload)
                payload = b""

    def leave(self):
        """Closes all at the end frame, whoever still holds a pipe."""
        self.read_frames()
        self.is_left = True
        return self.wait()

    def wait(self):
        self.read_frames()
        self.result.seconds = time.monotonic() - self.begun
        for thread in self.threads:
            thread.join(ANSWER_S)
            assert not thread.is_alive(), "somebody still holds a pipe"
        self.socket.close()
        return self.result


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(path)
    return sock


def listen(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.bind(path)
    sock.listen(8)
    return sock


class Host:
    """A kernel and a workspace."""

    def __init__(self, preload=False, idle_ms=60000, limit_data=0, environment=None):
        self.directory = tempfile.mkdtemp(prefix="python-test-", dir="/var/tmp")
        os.chown(self.directory, USER, -1)
        self.driver = os.path.join(self.directory, "driver")
        shutil.copytree(DRIVER, self.driver, ignore=shutil.ignore_patterns("__pycache__"))
        self.workspace = self.make("workspace")
        self.save_dir = None  # of the last run
        self.runs = 0
        self.path = os.path.join(self.directory, "python.sock")
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": self.make("home"),
            "TMPDIR": self.make("tmp"),
            "MPLCONFIGDIR": self.make_settings(),
            "LANG": "C.UTF-8",
        }
        # As src/box/python.c hands a sandbox's own variables over.
        self.environment.update({"SPOOLBOX_ENV_" + k: v for k, v in (environment or {}).items()})
        self.sessions = 0
        self.start(preload, idle_ms, limit_data)
        assert self.started.returncode == 0, self.started.stdout.decode()

    def make(self, name):
        path = os.path.join(self.directory, name)
        os.makedirs(path, exist_ok=True)
        os.chown(path, USER, -1)
        return path

    def make_settings(self):
        """With the list of fonts that this run of the tests has made once, see fonts()."""
        directory = self.make("settings")
        for path in fonts():
            shutil.copy(path, directory)
        return directory

    def start(self, preload, idle_ms, limit_data):
        listener = listen(self.path)
        kernel = os.path.join(self.driver, "kernel.py")
        command = [PYTHON, "-I", kernel, "--idle-ms", str(idle_ms)]
        if limit_data:
            limit = 'ulimit -d %d; exec "$@"' % (limit_data // 1024)
            command = ["/bin/sh", "-c", limit, "sh"] + command
        with listener:
            self.started = subprocess.run(
                command + (["--preload"] if preload else []),
                stdin=listener.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self.environment,
                cwd=self.workspace,
                timeout=ANSWER_S,
                **AS_USER,
            )

    def call(self, code, path=None, listener=None, **settings):
        self.runs += 1
        self.save_dir = os.path.join(self.workspace, ".python", str(self.runs))
        request = {
            "cwd": self.workspace,
            "timeout_ms": 20000,
            "grace_ms": 1000,
            "image_bytes": 786432,
            "save_dir": self.save_dir,
            "guard": False,
            "inputs": [],
            "session": listener is not None,
            "idle_ms": 30000,
        }
        request.update(settings)
        return Call(path or self.path, request, code, listener)

    def run(self, code, **settings):
        return self.call(code, **settings).wait()

    def session(self, **settings):
        self.sessions += 1
        return Session(self, os.path.join(self.directory, "py-%d.sock" % self.sessions), settings)

    def answers(self):
        return is_held(self.path)

    def kernel_pid(self):
        """Found by the socket: the first process of the session that the kernel made."""
        result = self.run("import os\nprint(open('/proc/%d/stat' % os.getppid()).read())")
        return int(result.stdout.rpartition(")")[2].split()[1])

    def stop(self):
        try:
            os.kill(self.kernel_pid(), signal.SIGTERM)
        except (OSError, ValueError, AssertionError):
            pass
        shutil.rmtree(self.directory, ignore_errors=True)


class Session:
    def __init__(self, host, path, settings):
        self.host = host
        self.path = path
        self.settings = settings
        self.begun = False

    def call(self, code, **settings):
        settings = dict(self.settings, **settings)
        if self.begun:
            return self.host.call(code, path=self.path, **settings)
        self.begun = True
        with listen(self.path) as listener:
            return self.host.call(code, listener=listener, **settings)

    def run(self, code, **settings):
        return self.call(code, **settings).wait()

    def answers(self):
        return is_held(self.path)

    def end(self):
        with connect(self.path) as sock:
            sock.send(b'{"end": true}')


@functools.lru_cache(maxsize=None)
def fonts():
    """matplotlib's list of fonts, made once for all tests of a file."""
    directory = tempfile.mkdtemp(prefix="python-test-", dir="/var/tmp")
    atexit.register(shutil.rmtree, directory)
    program = [PYTHON, "-c", "import matplotlib.font_manager"]
    environment = {"MPLCONFIGDIR": directory, "PATH": "/usr/bin"}
    subprocess.run(program, env=environment, stderr=subprocess.DEVNULL, check=False)
    return glob.glob(os.path.join(directory, "fontlist-*.json"))


def has_module(name):
    find = "import importlib.util, sys; sys.exit(not importlib.util.find_spec(sys.argv[1]))"
    return subprocess.run([PYTHON, "-I", "-c", find, name], check=False).returncode == 0


def is_held(path):
    """Whether somebody listens there; a socket of another type asks without disturbing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        return sock.connect_ex(path) == errno.EPROTOTYPE


def wait_until(condition, seconds=30, pause=0.02):
    """Whether it became true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
    return True
