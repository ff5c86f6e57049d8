"""Makes what matplotlib should know of this machine's fonts ahead: fonts.py DIRECTORY.

Looking at every font takes matplotlib up to a second, once in each new home. This runs on the
host, outside of sandboxes, and leaves fontlist-*.json in the directory, from where it is copied,
and a matplotlibrc for programs that are run without the driver (cjk.py is for those with it).
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time

PREFIX = ".new-"
TIME_MAX_S = 300  # a hundred times what it takes; a run that hangs must not stay


def remove_leftovers(directory):
    """Those of runs that were killed; younger ones may be going on."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(FileNotFoundError):  # another run has just ended
            if name.startswith(PREFIX) and os.stat(path).st_mtime < time.time() - TIME_MAX_S:
                shutil.rmtree(path, ignore_errors=True)


def write_settings(path, manager):
    """Behind matplotlib's own font those that have Chinese, Japanese and Korean letters."""
    families = ["DejaVu Sans"] + [family for family, _ in cjk.installed(manager)]
    with open(path, "w") as file:
        file.write("backend: Agg\nfont.family: %s\n" % ", ".join(families))


def main(directory):
    signal.alarm(TIME_MAX_S)
    remove_leftovers(directory)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=directory) as made:
        os.environ["MPLCONFIGDIR"] = made
        from matplotlib import font_manager  # importing it writes the list

        write_settings(os.path.join(made, "matplotlibrc"), font_manager.fontManager)
        for name in os.listdir(made):
            if name.startswith("fontlist-") or name == "matplotlibrc":
                os.replace(os.path.join(made, name), os.path.join(directory, name))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import cjk

    main(sys.argv[1])
