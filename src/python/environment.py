"""The sandbox's variables. They come under names with a prefix, so that none of them has a meaning
to the kernel, where LD_PRELOAD and the like would run what lies in the workspace; the runner gives
them their names back.
"""

import os

PREFIX = "SPOOLBOX_ENV_"  # as in src/run/kernel.h


def get(name, default):
    """What code will find under this name."""
    return os.environ.get(PREFIX + name, os.environ.get(name, default))


def adopt():
    """Makes them this process's own."""
    given = [name for name in os.environ if name.startswith(PREFIX)]
    values = {name[len(PREFIX) :]: os.environ.pop(name) for name in given}
    os.environ.update(values)
