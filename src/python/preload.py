"""What is worth importing ahead, and how: into the kernel, from the system's directories alone.

A directory of the user (that of the code, PYTHONPATH, the user site) may have another version of a
module. is_shadowed tells, so that what was imported ahead never hides what an import would find
there.
"""

import contextlib
import functools
import gc
import glob
import importlib
import importlib.machinery
import os
import re
import shutil
import sys
import sysconfig
import tempfile

from . import environment

# Named by code, then imported ahead. The submodules are what a first plot would import.
SLOW = {
    "numpy": ("numpy",),
    "pandas": ("pandas",),
    "matplotlib": ("matplotlib.pyplot", "matplotlib.backends.backend_agg"),
    "PIL": ("PIL.Image", "PIL.PngImagePlugin", "PIL.JpegImagePlugin"),
    "scipy": ("scipy", "scipy.stats", "scipy.optimize"),
    "sklearn": ("sklearn", "sklearn.linear_model"),
    "seaborn": ("seaborn",),
    "sympy": ("sympy",),
    "networkx": ("networkx",),
    "statsmodels": ("statsmodels.api",),
    "openpyxl": ("openpyxl",),
    "lxml": ("lxml.etree",),
    "bs4": ("bs4",),
    "requests": ("requests",),
    "docx": ("docx",),
    "pypdf": ("pypdf",),
    "PyPDF2": ("PyPDF2",),
    "asyncio": ("asyncio",),
    "multiprocessing": ("multiprocessing.pool",),
}
USUAL = ("numpy", "pandas", "matplotlib", "PIL")

FONTS = "/.python-fonts"  # matplotlib's list of fonts, made ahead by fonts.py

_SUFFIXES = importlib.machinery.all_suffixes()
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(.+)", re.MULTILINE)
# A pool of threads would not survive the fork, and code may want another size.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def named(code):
    """Names in SLOW that import statements of the code name; a word too many does no harm."""
    words = set()
    for match in _IMPORT.finditer(code):
        words.update(re.findall(r"\w+", match.group(1)))
    return [name for name in SLOW if name in words]


def copy_fonts(directory):
    """Unless there is one, gives the directory the list of fonts that was made ahead."""
    try:
        os.makedirs(directory, exist_ok=True)
        for path in glob.glob(os.path.join(FONTS, "fontlist-*.json")):
            target = os.path.join(directory, os.path.basename(path))
            if not os.path.lexists(target):
                shutil.copyfile(path, target)
    except OSError:
        pass  # matplotlib makes its own, or works without


@functools.lru_cache(maxsize=None)
def _settings_directory():
    """For matplotlib in the kernel: one that nobody has written settings into. It stays, because
    matplotlib remembers its name."""
    directory = tempfile.mkdtemp(prefix=".matplotlib-")
    copy_fonts(directory)
    return directory


@contextlib.contextmanager
def _quiet_environment():
    """While importing: one thread, and no settings of matplotlib that code can write."""
    before = os.environ.copy()
    settings = _settings_directory()
    try:
        os.environ.update(dict.fromkeys(_THREADS, "1"), MPLBACKEND="Agg", MPLCONFIGDIR=settings)
        os.environ.pop("MATPLOTLIBRC", None)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def import_ahead(name):
    """Imports what SLOW has for the name; what is missing or broken is left to the code."""
    try:
        with _quiet_environment():
            for module in SLOW[name]:
                importlib.import_module(module)
    except Exception:
        pass
    gc.collect()
    gc.freeze()


def python_path():
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


def user_site():
    home = environment.get("HOME", os.path.expanduser("~"))
    base = environment.get("PYTHONUSERBASE", os.path.join(home, ".local"))
    return sysconfig.get_path("purelib", "posix_user", {"userbase": base})


def is_shadowed(names, cwd):
    """Whether a directory where imports of the code look first has a module of one of the names."""
    directories = [cwd] + python_path() + [user_site()]
    return any(_has_module(path, name) for path in directories for name in names)


def _has_module(directory, name):
    """Asks for its files by their names: the directory may have any number of others."""
    path = os.path.join(directory, name)
    package = os.path.join(path, "__init__")
    paths = [path] + ([package] if os.access(path, os.F_OK) else [])
    return any(os.access(path + suffix, os.F_OK) for path in paths for suffix in _SUFFIXES)


def top_names():
    """The modules that are there, without those inside of packages."""
    return {name for name in sys.modules if "." not in name}
