"""The kernel itself: start, importing ahead, idle end."""

import os
import shutil
import subprocess
import unittest

import host
from kit import HAS_MATPLOTLIB, HAS_NUMPY, HAS_PANDAS, HAS_SYMPY, KernelTest, needs

LOADED = "import sys\nsorted({'numpy', 'pandas', 'matplotlib', 'random'} & set(sys.modules))"


class Start(KernelTest):
    def test_the_starter_ends_with_0_and_says_nothing(self):
        self.assertEqual((self.host.started.returncode, self.host.started.stdout), (0, b""))

    def test_the_kernel_ends_when_nothing_was_run_for_so_long(self):
        other = host.Host(idle_ms=300)
        self.assertTrue(other.answers())
        self.assertTrue(host.wait_until(lambda: not other.answers()))
        shutil.rmtree(other.directory)

    def test_a_kernel_whose_session_lives_does_not_end(self):
        other = host.Host(idle_ms=300)
        session = other.session()
        session.run("x = 1")
        self.assertFalse(host.wait_until(lambda: not other.answers(), 1))
        session.end()
        self.assertTrue(host.wait_until(lambda: not other.answers()))
        shutil.rmtree(other.directory)

    def test_watchers_are_reaped(self):
        kernel = self.host.kernel_pid()
        for _ in range(3):
            self.run_code("pass")

        def children():
            with open("/proc/%d/task/%d/children" % (kernel, kernel)) as file:
                return file.read().split()

        self.assertTrue(host.wait_until(lambda: not children()))

    def test_a_connection_that_asks_nothing_does_no_harm(self):
        host.connect(self.host.path).close()
        self.check_done(self.run_code("1"), "1")

    def test_what_is_no_request_is_dropped(self):
        with host.connect(self.host.path) as sock:
            sock.send(b"\xff{")
            self.assertEqual(sock.recv(10), b"")
        self.check_done(self.run_code("1"), "1")

    def test_many_runs_at_once_keep_apart(self):
        calls = [self.host.call("x = %d\nprint(x)\nx" % i) for i in range(20)]
        for i, call in enumerate(calls):
            result = call.wait()
            self.check_done(result, str(i))
            self.assertEqual(result.stdout, "%d\n" % i)

    def test_the_code_is_no_child_of_the_kernel_and_has_its_own_session(self):
        result = self.run_code("import os\n[os.getsid(0), os.getpgid(0)] == [os.getpid()] * 2")
        self.check_done(result, "True")

    def test_the_kernel_survives_a_kill_of_every_process_that_a_run_made(self):
        self.run_code("import os\nos.kill(0, 9)")
        self.check_done(self.run_code("1"), "1")

    def limit_processes(self, pid, soft):
        program = (
            "import resource as r\nhard = r.prlimit(%d, r.RLIMIT_NPROC)[1]\n"
            "r.prlimit(%d, r.RLIMIT_NPROC, (%s, hard))" % (pid, pid, soft)
        )
        subprocess.run([host.PYTHON, "-c", program], check=True, **host.AS_USER)

    def test_a_kernel_that_cannot_fork_says_so(self):
        other = host.Host()
        kernel = other.kernel_pid()
        self.limit_processes(kernel, 0)
        result = other.run("print('ran')")
        self.assertEqual((result.end["end"], result.error["type"]), ("exception", "OSError"))
        self.assertIn("no room for another process", result.error["message"])
        self.assertEqual((result.started, result.stdout), (False, ""))
        self.limit_processes(kernel, "hard")
        self.check_done(other.run("1"), "1")
        other.stop()

    def test_variables_of_the_sandbox_reach_the_code_and_not_the_kernel(self):
        given = {
            "PYTHONPATH": "/var/tmp/a:/var/tmp/b",
            "HOME": "/var/tmp/home",
            "TZ": "Asia/Tokyo",
            "LD_PRELOAD": "/var/tmp/none.so",
            "SPOOLBOX_ENV_TZ": "twice",
        }
        other = host.Host(environment=given)
        kernel = other.kernel_pid()
        names = "[os.environ[name] for name in %r]" % sorted(given)
        wanted = [given[name] for name in sorted(given)]
        self.check_done(other.run("import os\n" + names), repr(wanted))
        self.check_done(other.run("import sys\nsys.path[1:3]"), "['/var/tmp/a', '/var/tmp/b']")
        self.check_done(other.run("import time\ntime.localtime(0).tm_hour"), "9")
        site = "import site\nsite.getusersitepackages().startswith('/var/tmp/home/.local')"
        self.check_done(other.run(site), "True")
        child = "import subprocess\nsubprocess.run(['env'], capture_output=True).stdout.decode()"
        self.assertIn("LD_PRELOAD=/var/tmp/none.so", other.run(child).text)
        with open("/proc/%d/environ" % kernel, "rb") as file:
            plain = [item for item in file.read().split(b"\0") if item.startswith(b"LD_PRELOAD")]
        self.assertEqual(plain, [])
        other.stop()

    def test_an_old_python_is_refused_with_words(self):
        program = "import sys, runpy\nsys.version_info = (3, 7, 1)\n"
        program += "runpy.run_path(sys.argv[1], run_name='__main__')"
        command = [host.PYTHON, "-I", "-c", program, os.path.join(self.host.driver, "kernel.py")]
        done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"3.7 is too old", done.stderr)


@needs(HAS_NUMPY and HAS_PANDAS and HAS_MATPLOTLIB, "numpy, pandas or matplotlib")
class Preload(KernelTest):
    def loaded(self, kernel, name):
        return name in kernel.run(LOADED).text

    def test_usual_modules_are_there_when_they_were_asked_for(self):
        other = host.Host(preload=True)
        self.assertTrue(host.wait_until(lambda: self.loaded(other, "matplotlib")))
        for name in ("numpy", "pandas"):
            self.assertIn(name, other.run(LOADED).text)
        code = "import numpy as np\nnp.random.rand()"
        self.assertNotEqual(other.run(code).text, other.run(code).text)
        self.check_done(other.run("import threading\nthreading.active_count()"), "1")
        code = "import os\nos.environ.get('OPENBLAS_NUM_THREADS', '')"
        self.check_done(other.run(code), "''")
        other.stop()

    def test_what_code_has_imported_is_imported_ahead_afterwards(self):
        other = host.Host()
        self.assertFalse(self.loaded(other, "numpy"))
        other.run("def f():\n    from numpy import array")
        self.assertTrue(host.wait_until(lambda: self.loaded(other, "numpy"), pause=1))
        self.assertFalse(self.loaded(other, "pandas"))
        other.stop()

    def test_what_has_crashed_is_not_imported_ahead(self):
        other = host.Host()
        other.run("import os\nimport numpy\nos.abort()")
        self.assertFalse(host.wait_until(lambda: self.loaded(other, "numpy"), 1.5, pause=0.7))
        other.stop()

    def test_a_module_of_the_user_is_never_hidden(self):
        other = host.Host(preload=True)
        self.assertTrue(host.wait_until(lambda: self.loaded(other, "matplotlib")))
        folder = other.run("import site\nsite.getusersitepackages()").text.strip("'")
        os.makedirs(os.path.join(folder, "numpy"))
        with open(os.path.join(folder, "numpy", "__init__.py"), "w") as file:
            file.write("own = 42\n")
        self.check_done(other.run("import numpy\nnumpy.own"), "42")
        other.run("import numpy")
        self.assertFalse(host.wait_until(lambda: self.loaded(other, "numpy"), 1, pause=0.6))
        other.stop()

    def test_a_module_in_the_working_directory_is_never_hidden(self):
        other = host.Host(preload=True)
        self.assertTrue(host.wait_until(lambda: self.loaded(other, "matplotlib")))
        for name in ("calendar.csv", "numpy.txt"):  # no modules
            open(os.path.join(other.workspace, name), "w").close()
        os.mkdir(os.path.join(other.workspace, "pandas"))
        self.assertIn("pandas", other.run(LOADED).text)
        with open(os.path.join(other.workspace, "calendar.py"), "w") as file:
            file.write("own = 42\n")
        self.check_done(other.run("import calendar\ncalendar.own"), "42")
        other.stop()

    def test_settings_of_matplotlib_count_though_it_was_imported_ahead(self):
        code = "import matplotlib\nmatplotlib.rcParams['lines.linewidth']"
        other = host.Host(preload=True)
        self.assertTrue(host.wait_until(lambda: self.loaded(other, "matplotlib")))
        self.check_done(other.run(code), "1.5")
        path = os.path.join(other.workspace, "matplotlibrc")
        with open(path, "w") as file:
            file.write("lines.linewidth: 33\nbackend: TkAgg\n")
        self.check_done(other.run(code), "33.0")
        with open(path, "wb") as file:
            file.write(b"\xff\xfe\0")
        result = other.run(code)
        self.check_done(result, "1.5")
        self.assertIn("matplotlibrc is not used", result.stderr)
        other.stop()

    @needs(HAS_SYMPY, "sympy")
    def test_random_numbers_of_sympy_differ(self):
        other = host.Host()
        code = "import sympy.core.random as r, sys\nr.rng.random()"
        ahead = "import sys\n'sympy' in sys.modules"
        other.run("import sympy")
        self.assertTrue(host.wait_until(lambda: other.run(ahead).text == "True", 30, pause=1))
        self.assertNotEqual(other.run(code).text, other.run(code).text)
        other.stop()

    def test_the_workspace_is_not_imported_by_the_kernel(self):
        other = host.Host()
        for name in ("numpy.py", "pandas.py", "sitecustomize.py"):
            with open(os.path.join(other.workspace, name), "w") as file:
                file.write("import os\nopen(__file__ + str(os.getpid()), 'w')\n")
        result = other.run("import os\nimport numpy, pandas\nos.getpid()")
        self.assertFalse(host.wait_until(lambda: self.loaded(other, "pandas"), 2, pause=1))
        made = {name for name in os.listdir(other.workspace) if not name.endswith(".py")}
        made.discard("__pycache__")
        self.assertEqual(made, {"numpy.py" + result.text, "pandas.py" + result.text})
        other.stop()


if __name__ == "__main__":
    unittest.main()
