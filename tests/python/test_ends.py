"""How a run ends, and that what it printed is not lost."""

import os
import signal
import subprocess
import sys
import time
import unittest

import host
from kit import KernelTest


class Ends(KernelTest):
    def test_output_and_the_end_of_the_code_are_told(self):
        result = self.run_code("import sys\nprint('out')\nprint('err', file=sys.stderr)")
        self.check_done(result)
        self.assertTrue(result.started)
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))
        self.assertGreater(result.end["max_rss_kib"], 1000)

    def test_sys_exit_gives_its_code_without_an_error(self):
        for argument, code in (("", 0), ("0", 0), ("3", 3), ("256 + 7", 7), ("None", 0)):
            result = self.run_code("import sys\nprint('x')\nsys.exit(%s)" % argument)
            self.check_end(result, "exit", code)
            self.assertIsNone(result.error)

    def test_sys_exit_with_a_text_says_it_on_stderr(self):
        result = self.run_code("import sys\nsys.exit('that was it')")
        self.check_end(result, "exit", 1)
        self.assertEqual(result.stderr, "that was it\n")

    def test_os_exit_loses_no_output(self):
        result = self.run_code("import os\nprint('half a line', end='')\nos._exit(4)")
        self.check_end(result, "exit", 4)
        self.assertEqual(result.stdout, "half a line")

    def test_os_exit_with_0_is_not_taken_for_the_end_of_the_code(self):
        self.check_end(self.run_code("import os\nos._exit(0)"), "exit", 0)

    def test_a_segmentation_fault_is_a_signal_and_loses_no_output(self):
        result = self.run_code("import ctypes\nprint('before', end='')\nctypes.string_at(0)")
        self.check_end(result, "signal", signal.SIGSEGV)
        self.assertEqual((result.stdout, result.stderr), ("before", ""))

    def test_endless_code_is_interrupted(self):
        result = self.run_code("print('x')\nwhile True: pass", timeout_ms=300)
        self.check_error(result, "KeyboardInterrupt", timed_out=True)
        self.assertIn("0.3 s", result.error["message"])
        self.assertIn("while True: pass", result.error["traceback"])
        self.assertEqual(result.stdout, "x\n")

    def test_code_that_does_not_hear_the_interrupt_is_killed(self):
        deaf = "import signal\nsignal.signal(2, lambda *a: 0)\nwhile 1: 0"
        for code in ("sum(range(10**13))", deaf):
            result = self.run_code("print('x', end='')\n" + code, timeout_ms=200, grace_ms=300)
            self.check_end(result, "signal", signal.SIGKILL, timed_out=True)
            self.assertEqual(result.stdout, "x")

    def test_a_thread_that_goes_on_is_waited_for_up_to_the_time_limit(self):
        code = (
            "import threading, time\ndef work():\n    time.sleep(%s)\n    print('t')\n"
            "threading.Thread(target=work).start()"
        )
        self.assertEqual(self.run_code(code % "0.2").stdout, "t\n")
        result = self.run_code(code % "60", timeout_ms=300)
        self.check_error(result, "KeyboardInterrupt", timed_out=True)

    def test_exit_handlers_run(self):
        result = self.run_code("import atexit\natexit.register(print, 'bye')\n1/0")
        self.check_error(result, "ZeroDivisionError")
        self.assertEqual(result.stdout, "bye\n")

    def test_a_child_left_running_is_killed_before_the_end_is_told(self):
        result = self.run_code(
            "import subprocess\nprint(subprocess.Popen(['sleep', '60']).pid)", timeout_ms=5000
        )
        self.check_done(result)
        self.assertFalse(os.path.exists("/proc/%s" % result.stdout.strip()))

    def test_a_grandchild_that_has_made_itself_a_daemon_is_killed_too(self):
        result = self.run_code(
            "import os, time, signal\n"
            "r, w = os.pipe()\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "        os.write(w, str(os.getpid()).encode())\n"
            "        time.sleep(60)\n"
            "    os._exit(0)\n"
            "print(os.read(r, 20).decode())"
        )
        self.check_done(result)
        self.assertFalse(os.path.exists("/proc/%s" % result.stdout.strip()))

    def test_the_child_of_a_fork_ends_as_a_process_of_its_own(self):
        result = self.run_code(
            "import os, sys\npid = os.fork()\nif pid == 0:\n    print('child', flush=True)\n"
            "    sys.exit(5)\nprint(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))\n'parent'"
        )
        self.check_done(result, "'parent'")
        self.assertEqual(result.stdout, "child\n5\n")

    def test_a_host_that_closes_ends_the_run(self):
        pid_file = os.path.join(self.host.workspace, "pid")
        call = self.host.call("import os\nopen('pid', 'w').write(str(os.getpid()))\nwhile 1: pass")
        host.wait_until(lambda: os.path.exists(pid_file) and os.path.getsize(pid_file))
        with open(pid_file) as file:
            pid = file.read()
        call.socket.close()
        self.assertTrue(host.wait_until(lambda: not os.path.exists("/proc/" + pid)))
        for thread in call.threads:
            thread.join()

    def test_a_packet_of_the_host_interrupts(self):
        call = self.host.call("print('x')\nwhile 1: pass")
        host.wait_until(lambda: call.result.sizes[0])
        call.socket.send(b"c")
        result = call.wait()
        self.check_error(result, "KeyboardInterrupt")

    def test_the_end_of_the_watcher_is_the_end_of_the_runner(self):
        begun = time.monotonic()
        code = "import os, time\nprint('x')\nos.kill(os.getppid(), 9)\ntime.sleep(30)"
        result = self.run_code(code)
        self.assertTrue(result.started)
        self.assertIsNone(result.end)
        self.assertEqual(result.stdout, "x\n")
        self.assertLess(time.monotonic() - begun, 20)

    def test_a_runner_that_stops_itself_is_killed(self):
        result = self.run_code(
            "import os\nos.kill(os.getpid(), 19)", timeout_ms=200, grace_ms=200
        )
        self.check_end(result, "signal", signal.SIGKILL, timed_out=True)

    def test_a_host_that_reads_no_frames_does_not_keep_the_watcher(self):
        call = self.host.call(
            "import os\nprint(os.getppid())\nwhile True: display('x' * 16000)",
            timeout_ms=300,
            grace_ms=300,
        )
        host.wait_until(lambda: call.result.stdout.endswith("\n"))
        path = "/proc/" + call.result.stdout.strip()
        self.assertTrue(host.wait_until(lambda: not os.path.exists(path)))
        call.socket.close()
        for thread in call.threads:
            thread.join()

    def test_200_mb_of_prints_arrive_whole(self):
        code = "line = 'x' * 9999\nfor _ in range(20000): print(line)"
        result = self.run_code(code, timeout_ms=60000)
        self.check_done(result)
        self.assertEqual(result.sizes[0], 200 * 1000 * 1000)
        self.assertLess(result.end["max_rss_kib"], 200 * 1024)

    def test_handlers_of_signals_cut_no_output_short(self):
        result = self.run_code(
            "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
            "for i in range(30): print('x' * 999999)"
        )
        self.check_done(result)
        self.assertEqual(result.sizes[0], 30 * 1000 * 1000)

    def test_a_pipe_made_non_blocking_loses_no_output(self):
        result = self.run_code(
            "import array, os, sys\nos.set_blocking(1, False)\nprint('x' * 9999999)\n"
            "sys.stdout.buffer.write(array.array('i', range(1000000)))"
        )
        self.check_done(result, "4000000")
        self.assertEqual(result.sizes[0], 14 * 1000 * 1000)

    def test_an_exception_whose_message_raises_anything_is_told(self):
        for kind in ("SystemExit", "KeyboardInterrupt", "BaseException"):
            result = self.run_code(
                "class E(Exception):\n    def __str__(self): raise %s\nraise E" % kind
            )
            self.check_error(result, "E")
            result = self.run_code(
                "import sys\nclass E:\n    def __str__(self): raise %s\nsys.exit(E())" % kind
            )
            self.check_end(result, "exit", 1)
            self.assertEqual(result.notes, [])

    def test_a_stream_that_cannot_be_flushed_does_no_harm(self):
        result = self.run_code(
            "import io, sys\nclass S(io.StringIO):\n    def flush(self): raise SystemExit(7)\n"
            "sys.stdout = S()"
        )
        self.check_done(result)

    def test_code_that_breaks_the_report_of_its_end_is_told_so(self):
        for code in (
            "import json\njson.dumps = None\n1/0",
            "import builtins\nbuiltins.len = None",
            "import signal\nsignal.signal = None",
            "import os\nos._exit = None",
        ):
            result = self.run_code(code)
            self.check_end(result, "exit", 1)
            self.assertIn("changed", result.notes[0]["text"])
            self.assertIn("TypeError", result.stderr)

    def test_code_that_closes_every_descriptor_is_told_so(self):
        for code in ("os.closerange(0, 4096)", "for i in range(1, 4096): os.dup2(0, i)"):
            result = self.run_code("import os\n" + code)
            self.assertIn(result.end["end"], ("exit", "signal"))
            self.assertIn("changed", result.notes[0]["text"])

    def test_os_exit_is_named_in_a_note_and_sys_exit_is_not(self):
        self.assertIn("os._exit", self.run_code("import os\nos._exit(3)").notes[0]["text"])
        self.assertEqual(self.run_code("import sys\nsys.exit(3)").notes, [])
        self.assertEqual(self.run_code("1/0").notes, [])

    def test_code_that_is_nested_too_deeply_does_not_blame_the_memory_alone(self):
        result = self.run_code("-" * 100000 + "1")
        if result.error["type"] == "MemoryError":
            self.assertIn("nested too deeply", result.error["hint"])

    def test_the_code_yields_to_its_watcher(self):
        result = self.run_code("import os\nos.nice(0)")
        self.assertGreater(int(result.text), os.nice(0))

    def test_a_process_to_be_killed_is_stopped_before_others_are_looked_at(self):
        """Those that fork or spin would else outrun it."""
        sys.path.insert(0, os.path.join(host.DRIVER, ".."))
        from python import children

        events = []
        programs = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
        stat, signal_one = children._stat, children._signal
        try:
            children._stat = lambda pid: events.append(pid) or stat(pid)
            children._signal = lambda pid, number: events.append((pid, number))
            found = children.stop_descendants()
        finally:
            children._stat, children._signal = stat, signal_one
            for program in programs:
                program.kill()
                program.wait()
        for program in programs:
            self.assertIn(program.pid, found)
            seen = events.index(program.pid)
            self.assertEqual(events[seen + 1], (program.pid, signal.SIGSTOP))

    def test_many_short_prints_take_no_minutes(self):
        result = self.run_code("for i in range(200000): print(i)", timeout_ms=60000)
        self.check_done(result)
        self.assertTrue(result.seconds < 55)


class Memory(KernelTest):
    options = {"limit_data": 256 * 1024 * 1024}

    def test_a_memory_error_is_told_and_a_session_goes_on(self):
        session = self.host.session()
        self.check_done(session.run("x = 5"), state="kept")
        result = session.run("block = bytearray(10**9)")
        self.check_error(result, "MemoryError", state="kept")
        self.assertIn("memory", result.error["hint"])
        self.check_error(
            session.run("parts = []\nwhile True: parts.append('x' * 10**6)"), "MemoryError", "kept"
        )
        self.check_done(session.run("del parts\nx"), "5", state="kept")


if __name__ == "__main__":
    unittest.main()
