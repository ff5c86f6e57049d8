"""Sessions: state that stays, and what becomes of it."""

import os
import signal
import subprocess
import time
import unittest

import host
from kit import HAS_MATPLOTLIB, KernelTest, needs


class Sessions(KernelTest):
    def setUp(self):
        self.session = self.host.session()

    def check(self, code, text=None, **settings):
        result = self.session.run(code, **settings)
        self.check_done(result, text, state="kept")
        return result

    def test_names_imports_and_definitions_stay(self):
        self.check("import math\nx = 3\ndef f(y): return x * y")
        self.check("x += 1")
        self.check("f(2) + math.floor(1.5)", "9")
        self.check("_", "9")
        result = self.check("import os\nos.getcwd() == %r" % self.host.workspace, "True")
        self.assertEqual(result.end["runs"], 5)

    def test_the_working_directory_and_a_closed_stdout_last_no_longer_than_they_should(self):
        self.check("import os, sys\nos.mkdir('deep')\nos.chdir('deep')\nsys.stdout.close()")
        result = self.check("print(os.path.basename(os.getcwd()))")
        self.assertEqual(result.stdout, "deep\n")

    def test_closed_standard_descriptors_are_there_again(self):
        for closed in ("0", "1", "2", "0, 1, 2"):
            self.check("import os, sys\nfor fd in (%s,): os.close(fd)" % closed)
            code = "print('out')\nprint('err', file=sys.stderr)\nsys.stdin.read()"
            result = self.check(code, "''")
            self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))

    def test_code_that_keeps_every_descriptor_keeps_its_session(self):
        self.check(
            "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))\nfiles = []\n"
            "try:\n    while True: files.append(open('/dev/null'))\nexcept OSError: pass"
        )
        for _ in range(3):
            result = self.check("print(len(files))")
            self.assertGreater(int(result.stdout), 200)
        self.check("files.clear()\nopen('/dev/null').read()", "''")

    def test_a_changed_getpid_does_not_end_it(self):
        self.check("import os\nos.getpid = lambda: 1\nx = 1")
        self.check("x", "1")

    def test_children_go_on_and_their_output_between_the_runs_is_dropped(self):
        """More of it than a pipe holds, to each of the two."""
        command = "read line; seq 100000 && seq 100000 >&2 && touch written; read line"
        call = self.session.call(
            "import os, subprocess\n"
            "child = subprocess.Popen([\"sh\", \"-c\", %r], stdin=subprocess.PIPE)" % command
        )
        self.check_done(call.leave(), state="kept")
        self.assertEqual(call.result.stdout, "")
        # Once while code runs, once between two runs.
        self.check("child.stdin.write(b'\\n')\nchild.stdin.flush()")
        written = os.path.join(self.host.workspace, "written")
        self.assertTrue(host.wait_until(lambda: os.path.exists(written)))
        self.check("child.poll()\nchild.communicate()\nchild.returncode", "1")

    def test_a_child_may_write_to_an_old_pipe_while_code_waits_for_it(self):
        call = self.session.call(
            "import subprocess\n"
            "child = subprocess.Popen(['sh', '-c', 'read line; seq 100000'], stdin=subprocess.PIPE)"
        )
        self.check_done(call.leave(), state="kept")
        result = self.check("child.communicate()\nchild.returncode", "0")
        self.assertEqual(result.stdout, "")

    def test_tracebacks_name_the_run(self):
        self.check("def f(x):\n    return 1 / x")
        result = self.session.run("\nf(0)")
        self.check_error(result, "ZeroDivisionError", state="kept")
        trace = result.error["traceback"]
        self.assertIn('File "run-2.py", line 2, in <module>\n    f(0)', trace)
        self.assertIn('File "run-1.py", line 2, in f\n    return 1 / x', trace)

    def test_an_interrupt_keeps_the_state(self):
        self.check("x = 1")
        result = self.session.run("x = 2\nwhile True: pass", timeout_ms=300)
        self.check_error(result, "KeyboardInterrupt", state="kept", timed_out=True)
        self.check("x", "2")
        result = self.session.run("import time\ntime.sleep(30)", timeout_ms=200)
        self.check_error(result, "KeyboardInterrupt", state="kept", timed_out=True)
        self.check("x", "2")

    def test_a_kill_loses_the_state_and_ends_the_session(self):
        self.check("x = 1")
        result = self.session.run("sum(range(10**13))", timeout_ms=200, grace_ms=200)
        self.check_end(result, "signal", signal.SIGKILL, state="lost", timed_out=True)
        self.assertTrue(host.wait_until(lambda: not self.session.answers()))

    def test_sys_exit_keeps_the_state_and_os_exit_loses_it(self):
        self.check("import sys, os\nx = 1")
        self.check_end(self.session.run("sys.exit(3)"), "exit", 3, state="kept")
        self.check_end(self.session.run("exit()"), "exit", 0, state="kept")
        self.check("x", "1")
        self.check_end(self.session.run("os._exit(3)"), "exit", 3, state="lost")

    def test_a_deep_recursion_keeps_the_state(self):
        result = self.session.run("x = 1\ndef f(): f()\nf()")
        self.check_error(result, "RecursionError", state="kept")
        self.check("x", "1")

    def test_children_go_on_between_runs_and_their_output_is_dropped(self):
        self.check(
            "import subprocess\ncommand = 'sleep 0.2; echo late'\n"
            "p = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE)"
        )
        self.check("p.communicate()[0]", "b'late\\n'")

    def test_a_thread_between_runs_shows_nothing_and_blocks_nothing(self):
        self.check(
            "import threading, time\n"
            "def work():\n"
            "    for i in range(40):\n        display('x' * 16000)\n        time.sleep(0.005)\n"
            "thread = threading.Thread(target=work)\nthread.start()"
        )
        time.sleep(0.3)
        result = self.check("thread.join()\n1", "1")
        self.assertEqual(result.displays, [])

    def test_the_event_loop_stays(self):
        self.check("import asyncio\nqueue = asyncio.Queue()\nawait queue.put(1)")
        self.check("task = asyncio.create_task(queue.get())\nNone\nawait asyncio.sleep(0)")
        self.check("await task", "1")

    def test_future_imports_stay(self):
        self.check("from __future__ import annotations")
        self.check("def f(x: nothing): pass\nf.__annotations__", "{'x': 'nothing'}")

    def test_the_session_ends_when_it_was_idle_for_so_long(self):
        session = self.host.session(idle_ms=300)
        result = session.run("import os\nos.getpid()")
        self.assertTrue(host.wait_until(lambda: not session.answers()))
        self.assertTrue(host.wait_until(lambda: not os.path.exists("/proc/" + result.text)))

    def test_the_host_can_end_it_with_all_that_runs_in_it(self):
        result = self.session.run(
            "import subprocess\nnull = subprocess.DEVNULL\n"
            "subprocess.Popen(['sleep', '60'], stdout=null, stderr=null).pid"
        )
        self.session.end()
        self.assertTrue(host.wait_until(lambda: not os.path.exists("/proc/" + result.text)))
        self.assertTrue(host.wait_until(lambda: not self.session.answers()))

    def test_a_connection_that_asks_nothing_does_no_harm(self):
        self.check("x = 1")
        host.connect(self.session.path).close()
        self.check("x", "1")

    def test_a_host_that_has_gone_before_the_code_begins_does_no_harm(self):
        self.check("import os\nx = os.getppid()")
        watcher = int(self.session.run("x").text)
        self.signal(watcher, signal.SIGSTOP)
        call = self.session.call("x = 2")
        call.is_left = True
        call.socket.close()
        for thread in call.threads:
            thread.join()
        self.signal(watcher, signal.SIGCONT)
        self.check("x", str(watcher))

    def signal(self, pid, number):
        program = "import os\nos.kill(%d, %d)" % (pid, number)
        subprocess.run([host.PYTHON, "-c", program], check=True, **host.AS_USER)

    def test_a_runner_that_dies_between_runs_ends_the_session(self):
        result = self.session.run("import os\nos.getpid()")
        os.kill(int(result.text), signal.SIGKILL)
        self.assertTrue(host.wait_until(lambda: not self.session.answers()))

    def test_the_code_of_the_session_has_no_listening_socket(self):
        result = self.session.run("import os\nsorted(map(int, os.listdir('/proc/self/fd')))[:3]")
        self.assertEqual(result.text, "[0, 1, 2]")
        unix = "open('/proc/net/unix').read()"
        listed = self.session.run(
            "import os\npaths = ['/proc/self/fd/' + fd for fd in os.listdir('/proc/self/fd')]\n"
            "links = [os.readlink(path) for path in paths if os.path.islink(path)]\n"
            "[line for line in %s.splitlines() if %r in line and 'socket:[%%s]' %% line.split()[6]"
            " in links]" % (unix, self.host.directory)
        )
        self.check_done(listed, "[]", state="kept")

    def test_thirty_sessions_keep_their_own_state(self):
        sessions = [self.host.session() for _ in range(30)]
        for call in [session.call("x = %d" % i) for i, session in enumerate(sessions)]:
            self.check_done(call.wait(), state="kept")
        calls = [session.call("x += 100\nx") for session in sessions]
        for i, call in enumerate(calls):
            self.check_done(call.wait(), str(i + 100), state="kept")
        for session in sessions:
            session.end()

    @needs(HAS_MATPLOTLIB, "matplotlib")
    def test_a_figure_is_shown_once_and_may_be_used_on(self):
        plot = "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1])\nNone"
        self.assertEqual(len(self.session.run(plot).images), 1)
        self.assertEqual(len(self.session.run("1").images), 0)
        self.assertEqual(len(self.session.run("ax.plot([2])\nfig").images), 1)


if __name__ == "__main__":
    unittest.main()
