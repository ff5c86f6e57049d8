"""What the tests share: a kernel for each class, and words for what is often asked of a result."""

import unittest

import host

HAS_NUMPY = host.has_module("numpy")
HAS_PANDAS = host.has_module("pandas")
HAS_MATPLOTLIB = host.has_module("matplotlib")
HAS_SYMPY = host.has_module("sympy")
HAS_PILLOW = host.has_module("PIL")


def needs(has, name):
    return unittest.skipUnless(has, "%s is not installed" % name)


class KernelTest(unittest.TestCase):
    options = {}
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.host = host.Host(**cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.host.stop()

    def run_code(self, code, **settings):
        return self.host.run(code, **settings)

    def check_end(self, result, end, number=0, state="none", timed_out=False):
        """number: the code of an exit, or the signal."""
        self.assertIsNotNone(result.end, "there is no end frame")
        said = (result.end["end"], result.end.get("signal", result.end.get("code")))
        self.assertEqual(said, (end, number), result.error)
        self.assertEqual((result.end["state"], result.end["timed_out"]), (state, timed_out))

    def check_done(self, result, text=None, state="none"):
        self.assertIsNone(result.error)
        self.check_end(result, "done", state=state)
        self.assertEqual(result.text, text)

    def check_error(self, result, kind, state="none", timed_out=False):
        self.check_end(result, "exception", 1, state=state, timed_out=timed_out)
        self.assertEqual(result.error["type"], kind)
        self.assertNotIn("_spoolbox", result.error["traceback"])
        self.assertNotIn("/driver/", result.error["traceback"])
