"""Runs the tests of this directory and prints TAP. Names of tests are sentences."""

import os
import sys
import time
import unittest

STRICT = os.environ.get("STRICT") == "1"


class TapResult(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.begun = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def say(self, good, test, more="", details=""):
        self.count += 1
        name = str(getattr(test, "_testMethodName", test))
        name = name[len("test_") :].replace("_", " ") if name.startswith("test_") else name
        print("%sok %d - %s%s" % ("" if good else "not ", self.count, name, more))
        print("# %.1f s" % (time.monotonic() - self.begun))
        for line in details.splitlines():
            print("# " + line)
        sys.stdout.flush()

    def addSuccess(self, test):
        self.say(True, test)

    def addFailure(self, test, error):
        self.say(False, test, details=self._exc_info_to_string(error, test))

    addError = addFailure

    def addSkip(self, test, reason):
        if STRICT:
            self.say(False, test, " (skipped, which STRICT=1 forbids: %s)" % reason)
        else:
            self.say(True, test, " # SKIP " + reason)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    suite = unittest.defaultTestLoader.discover(here, "test_*.py")
    result = TapResult()
    suite.run(result)
    print("1..%d" % result.count)


if __name__ == "__main__":
    main()
