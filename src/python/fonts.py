"""Makes matplotlib's list of fonts ahead: fonts.py DIRECTORY.

Looking at every font takes matplotlib up to a second, once in each new home. This runs on the
host, outside of sandboxes, and leaves fontlist-*.json in the directory, from where it is copied.
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


def main(directory):
    signal.alarm(TIME_MAX_S)
    remove_leftovers(directory)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=directory) as made:
        os.environ["MPLCONFIGDIR"] = made
        import matplotlib.font_manager  # noqa: F401 - importing it writes the list

        for name in os.listdir(made):
            if name.startswith("fontlist-"):
                os.replace(os.path.join(made, name), os.path.join(directory, name))


if __name__ == "__main__":
    main(sys.argv[1])
