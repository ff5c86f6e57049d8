"""The kernel itself: start, importing ahead, idle end."""

import os
import shutil
import subprocess
import unittest

import host
from kit import HAS_MATPLOTLIB, HAS_NUMPY, HAS_PANDAS, KernelTest, needs

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

    def test_the_workspace_is_not_imported_by_the_kernel(self):
        other = host.Host()
        for name in ("numpy.py", "pandas.py", "sitecustomize.py"):
            with open(os.path.join(other.workspace, name), "w") as file:
                file.write("import os\nopen(__file__ + str(os.getpid()), 'w')\n")
        result = other.run("import os\nimport numpy, pandas\nos.getpid()")
        self.assertTrue(host.wait_until(lambda: self.loaded(other, "pandas"), pause=1))
        made = {name for name in os.listdir(other.workspace) if not name.endswith(".py")}
        made.discard("__pycache__")
        self.assertEqual(made, {"numpy.py" + result.text, "pandas.py" + result.text})
        other.stop()


if __name__ == "__main__":
    unittest.main()
