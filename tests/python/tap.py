"""Runs the tests of this directory and prints TAP. Names of tests are sentences.

Each file of tests runs in a process of its own (tap.py NAME), as many at once as there are
processors.
"""

import concurrent.futures
import glob
import os
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
STRICT = os.environ.get("STRICT") == "1"


class Result(unittest.TestResult):
    """Says each result at once, without its number."""

    begun = 0

    def startTest(self, test):
        super().startTest(test)
        self.begun = time.monotonic()

    def say(self, good, test, more="", details=""):
        name = str(getattr(test, "_testMethodName", test))
        name = name[len("test_") :].replace("_", " ") if name.startswith("test_") else name
        print("%s - %s%s" % ("ok" if good else "not ok", name, more))
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


def run_here(name):
    sys.path.insert(0, HERE)
    unittest.defaultTestLoader.loadTestsFromName(name).run(Result())


def run_apart(name):
    command = [sys.executable, "-B", os.path.abspath(__file__), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, encoding="utf-8")
    status = "" if done.returncode == 0 else "not ok - %s ends with %d\n" % (name, done.returncode)
    return done.stdout + status


def main():
    paths = sorted(glob.glob(os.path.join(HERE, "test_*.py")))
    names = [os.path.basename(path)[: -len(".py")] for path in paths]
    count = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for output in pool.map(run_apart, names):
            for line in output.splitlines():
                status, dash, rest = line.partition(" - ")
                if dash and status in ("ok", "not ok"):
                    count += 1
                    line = "%s %d - %s" % (status, count, rest)
                print(line, flush=True)
    print("1..%d" % count)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_here(sys.argv[1])
    else:
        main()
