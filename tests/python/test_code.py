"""What code can do, and how its values and exceptions are told."""

import ast
import glob
import os
import unittest

import host
from kit import HAS_NUMPY, KernelTest, needs


class Values(KernelTest):
    def test_the_last_expression_is_the_value(self):
        for code, text in (
            ("1 + 1", "2"),
            ("x = 3", None),
            ("None", None),
            ("'a'", "'a'"),
            ("5;", None),
            ("5  ;  # hidden", None),
            ("'a;'  # ; not hidden", "'a;'"),
            ("(1,\n2)", "(1, 2)"),
            ("x = 1; x", "1"),
            ("if True:\n    5", None),
            ("'中文'", "'中文'"),
            ("'ä'; 1\r\n2;\r\n", None),
            ("", None),
        ):
            self.check_done(self.run_code(code), text)

    def test_a_value_has_its_type(self):
        self.assertEqual(self.run_code("{}").value["type"], "dict")
        code = "import collections\ncollections.OrderedDict()"
        self.assertEqual(self.run_code(code).value["type"], "collections.OrderedDict")
        self.assertEqual(self.run_code("class A: pass\nA()").value["type"], "A")

    def test_huge_values_are_cut_without_being_written_out(self):
        for code in (
            "list(range(5000000))",
            "'x' * 50000000",
            "{i: [i] * 1000 for i in range(100000)}",
            "b'x' * 50000000",
        ):
            result = self.run_code(code)
            self.assertTrue(result.value["truncated"])
            self.assertEqual(len(result.text), 8192)
            self.assertLess(result.end["cpu_ms"], 8000)
        self.assertIn("digits", self.run_code("1 << 10000000").text)

    def test_nested_values_look_as_usual(self):
        code = "a = [1, (2,), {3}, {'a': [None, set(), {}, ()]}, 'x', b'y', 1.5, True]\n"
        result = self.run_code(code + "a.append(a)\nprint(a)\na")
        self.assertEqual(result.text + "\n", result.stdout)

    def test_a_repr_that_fails_is_told_as_the_value(self):
        result = self.run_code("class A:\n    def __repr__(self): return 1 / 0\nA()")
        self.check_done(result, "<its repr failed: ZeroDivisionError: division by zero>")

    def test_lone_surrogates_and_nul_arrive_as_text(self):
        result = self.run_code("print('a\\udc80')\ndisplay('b\\ud800\\0')\n1")
        self.check_done(result, "1")
        self.assertEqual(result.stdout, "a\\udc80\n")
        self.assertEqual(result.displays[0]["text"], "b\\ud800\ufffd")


class Programs(KernelTest):
    def test_the_main_guard_holds(self):
        self.check_done(self.run_code("if __name__ == '__main__': print('x')"))
        self.assertEqual(self.run_code("__name__").text, "'__main__'")

    def test_the_namespace_has_nothing_but_display(self):
        result = self.run_code("sorted(n for n in globals() if not n.startswith('__'))")
        self.check_done(result, "['display']")

    def test_modules_of_the_driver_do_not_hide_those_of_the_workspace(self):
        for name in ("display", "files", "run"):
            with open(os.path.join(self.host.workspace, name + ".py"), "w") as file:
                file.write("here = True\n")
        self.check_done(self.run_code("import files, run\nimport display as d\nd.here"), "True")

    def test_arguments_and_paths_are_those_of_a_program(self):
        result = self.run_code("import sys, os\n(sys.argv, sys.path[0] == os.getcwd())")
        self.check_done(result, "([''], True)")

    def test_dataclasses_and_pickles_of_own_classes_work(self):
        self.check_done(
            self.run_code(
                "import dataclasses, pickle, typing\n"
                "@dataclasses.dataclass\nclass P:\n    x: int\n    y: 'typing.Any' = 2\n"
                "pickle.loads(pickle.dumps(P(1))) == P(1)"
            ),
            "True",
        )

    def test_pools_of_processes_and_threads_work(self):
        result = self.run_code(
            "import multiprocessing, concurrent.futures as f\n"
            "class Square:\n    def __init__(self, x): self.x = x * x\n"
            "def square(x): return Square(x)\n"
            "def show(map): print([s.x for s in map(square, range(4))])\n"
            "with multiprocessing.Pool(2) as pool: show(pool.map)\n"
            "with f.ProcessPoolExecutor(2) as pool: show(pool.map)\n"
            "with f.ThreadPoolExecutor(2) as pool: show(pool.map)"
        )
        self.check_done(result)
        self.assertEqual(result.stdout, "[0, 1, 4, 9]\n" * 3)

    def test_output_of_programs_and_of_c_is_caught(self):
        result = self.run_code(
            "import subprocess, os, ctypes\nprint('a')\nsubprocess.run(['echo', 'b'])\n"
            "os.system('echo c')\nos.write(1, b'd\\n')\n"
            "libc = ctypes.CDLL(None)\nlibc.puts(b'e')\nlibc.fflush(None)\nprint('f')"
        )
        self.assertEqual(result.stdout, "a\nb\nc\nd\ne\nf\n")

    def test_await_works_at_the_top_level(self):
        self.check_done(
            self.run_code("import asyncio\nawait asyncio.sleep(0.01)\nawait asyncio.sleep(0, 42)"),
            "42",
        )
        code = "import asyncio\nasync def f(): return 7\nasyncio.run(f())"
        self.check_done(self.run_code(code), "7")

    def test_await_is_interrupted_with_its_cleaning_up(self):
        result = self.run_code(
            "import asyncio\ntry:\n    await asyncio.sleep(30)\nfinally:\n    print('cleaned')",
            timeout_ms=400,
        )
        self.check_error(result, "KeyboardInterrupt", timed_out=True)
        self.assertEqual(result.stdout, "cleaned\n")

    def test_source_lines_are_found(self):
        code = "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))"
        self.assertEqual(self.run_code(code).stdout, "def f():\n    return 1\n\n")

    def test_future_imports_hold_for_the_last_expression(self):
        code = "from __future__ import annotations\n(lambda: f.__annotations__)()"
        code = code.replace("(", "def f(x: nothing): pass\n(", 1)
        self.check_done(self.run_code(code), "{'x': 'nothing'}")

    def test_random_numbers_differ_between_runs(self):
        code = "import random\nrandom.random()"
        self.assertNotEqual(self.run_code(code).text, self.run_code(code).text)

    def test_a_user_site_is_found(self):
        name = "import site\nsite.getusersitepackages()"
        folder = self.run_code(name).text.strip("'")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "own_module.py"), "w") as file:
            file.write("answer = 42\n")
        self.check_done(self.run_code("import own_module\nown_module.answer"), "42")

    def test_the_environment_is_given_on(self):
        result = self.run_code("import os\nos.environ['HOME'], os.environ['MPLBACKEND']")
        self.check_done(result, repr((self.host.environment["HOME"], "Agg")))
        self.check_done(self.run_code("import os\nos.environ.get('OMP_NUM_THREADS', '')"), "''")


class Errors(KernelTest):
    def test_a_traceback_has_the_lines_of_the_code_alone(self):
        result = self.run_code("def f(x):\n    return 1 / x\n\nf(0)")
        self.check_error(result, "ZeroDivisionError")
        trace = result.error["traceback"]
        self.assertIn('File "main.py", line 4, in <module>\n    f(0)', trace)
        self.assertIn('File "main.py", line 2, in f\n    return 1 / x', trace)
        self.assertEqual(trace.count("File "), 2)
        self.assertEqual(result.stderr, "")

    def test_of_a_library_only_the_last_line_is_shown(self):
        code = "import json\ndef f(text):\n    return json.loads(text)\nlist(map(f, ['{']))"
        result = self.run_code(code)
        self.check_error(result, "json.decoder.JSONDecodeError")
        trace = result.error["traceback"]
        self.assertEqual(trace.count("File "), 3)
        self.assertRegex(trace, r'(?s)line 4, in <module>.*line 3, in f.*/json/decoder.py", line')
        code = "import functools, re\nre.sub('a', lambda m: 1 / 0, 'a')"
        trace = self.run_code(code).error["traceback"]
        self.assertEqual(trace.count("File "), trace.count('File "main.py"'))

    def test_chained_exceptions_are_clean_too(self):
        result = self.run_code(
            "class A:\n    def _repr_png_(self): pass\n    def __repr__(self): return 1 / 0\n"
            "import json\n"
            "try:\n    json.loads('{')\nexcept ValueError as e:\n    raise KeyError('k') from e"
        )
        self.check_error(result, "KeyError")
        self.assertIn("direct cause", result.error["traceback"])

    def test_groups_of_exceptions_are_clean_too(self):
        result = self.run_code("raise ExceptionGroup('two', [ValueError(1), TypeError(2)])")
        if result.error["type"] == "NameError":
            self.skipTest("Python is older than 3.11")
        self.check_error(result, "ExceptionGroup")
        self.assertIn("TypeError: 2", result.error["traceback"])

    def test_a_syntax_error_shows_the_line_and_the_place(self):
        result = self.run_code("x = 1\ny = (2 +\nz = 3")
        self.check_error(result, "SyntaxError")
        self.assertIn('File "main.py", line', result.error["traceback"])
        self.assertIn("^", result.error["traceback"])

    def test_an_infinite_recursion_is_told_briefly(self):
        result = self.run_code("def f(n):\n    return f(n + 1)\nf(0)")
        self.check_error(result, "RecursionError")
        self.assertLess(len(result.error["traceback"]), 2000)
        code = "def f(n): return g(n)\ndef g(n): return f(n)\nf(0)"
        self.assertLessEqual(len(self.run_code(code).error["traceback"]), 8192)

    def test_a_huge_message_is_cut_in_the_middle(self):
        result = self.run_code("raise ValueError('a' * 10**6 + 'end')")
        self.assertLess(len(result.error["message"]), 2100)
        self.assertTrue(result.error["message"].endswith("end"))
        self.assertLessEqual(len(result.error["traceback"]), 8192)

    def test_an_exception_that_cannot_be_told_is_told_by_its_type(self):
        code = "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E"
        self.assertEqual(self.run_code(code).error["type"], "E")

    def test_exceptions_of_threads_go_to_stderr(self):
        code = "import threading\nthreading.Thread(target=lambda: 1 / 0).start()"
        result = self.run_code(code)
        self.check_done(result)
        self.assertIn("ZeroDivisionError", result.stderr)
        self.assertNotIn("/driver/", result.stderr)

    def test_input_meets_the_end_of_the_file_at_once(self):
        result = self.run_code("input('name? ')")
        self.check_error(result, "EOFError")
        self.assertIn("input()", result.error["hint"])

    def test_hints_tell_what_is_there(self):
        with open(os.path.join(self.host.workspace, "data.csv"), "w"):
            pass
        for code, hint in (
            ("import no_such_module", "no network"),
            ("import pillow", "import PIL"),
            ("from IPython.display import display", "without an import"),
            ("open('nothing.csv')", "data.csv"),
            ("%matplotlib inline", "notebook"),
            ("!ls", "notebook"),
            ("print(__file__)", "no file"),
            ("```python\n1\n```", "without the lines"),
            ("unknown", "session_id"),
            ("b'\\xff'.decode()", "gb18030"),
            ("import socket\nsocket.gethostbyname('no.such.host.invalid')", "no internet"),
            ("raise ImportError('Cannot load backend')", "no screen"),
            ("import asyncio\nasync def f(): pass\nawait f()\nasyncio.run(f())", "await"),
        ):
            self.assertIn(hint, self.run_code(code).error.get("hint", ""), code)

    def test_a_module_that_is_missing_names_those_that_are_there(self):
        hint = self.run_code("import no_such_module").error["hint"]
        for name in ("numpy", "pandas"):
            self.assertEqual(host.has_module(name), name in hint)

    def test_a_working_directory_that_is_gone_is_an_error(self):
        self.check_error(self.run_code("1", cwd="/nonexistent"), "FileNotFoundError")


class Guard(KernelTest):
    def run_guarded(self, code):
        return self.run_code(code, guard=True)

    def check_refused(self, code):
        result = self.run_guarded(code)
        self.check_error(result, "PermissionError")
        self.assertIn("SMCP_PYTHON_GUARD", result.error["message"])

    def test_programs_and_c_are_refused(self):
        for code in (
            "import os\nos.system('true')",
            "import subprocess\nsubprocess.run(['true'])",
            "import os\nos.execv('/bin/true', ['true'])",
            "import ctypes\nctypes.CDLL(None)",
            "exec('import os; os.system(\"true\")')",
        ):
            self.check_refused(code)

    def test_writing_outside_is_refused(self):
        outside = os.path.join(self.host.make("home"), "f")
        for code in (
            "open(%r, 'w')" % outside,
            "import pathlib\npathlib.Path(%r).write_text('x')" % outside,
            "import os\nos.mkdir(%r)" % outside,
            "import os\nos.rename('x', %r)" % outside,
            "open('../home/f', 'a')",
        ):
            self.check_refused(code)

    def test_work_in_the_directory_goes_on(self):
        self.check_done(
            self.run_guarded(
                "import os, tempfile, shutil, multiprocessing\n"
                "open('a', 'w').write('x')\nos.rename('a', 'b')\nos.remove('b')\n"
                "with tempfile.TemporaryDirectory() as d: open(d + '/x', 'w').close()\n"
                "with multiprocessing.Pool(1) as pool: n = pool.map(abs, [-1])\n"
                "open('/dev/null', 'w').close()\nn"
            ),
            "[1]",
        )

    @needs(HAS_NUMPY, "numpy")
    def test_libraries_may_use_c(self):
        code = "import numpy as np\nimport numpy.ctypeslib\nnp.arange(3).ctypes.data > 0"
        self.check_done(self.run_guarded(code), "True")


class Syntax(unittest.TestCase):
    def test_the_driver_parses_as_python_3_8(self):
        paths = glob.glob(os.path.join(host.DRIVER, "*.py"))
        self.assertGreater(len(paths), 15)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                ast.parse(file.read(), path, feature_version=(3, 8))


if __name__ == "__main__":
    unittest.main()
