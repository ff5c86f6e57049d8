"""Figures of matplotlib: shown where a window would come up, and at the end of the code.

Nothing here imports matplotlib: pyplot is changed when code imports it, or at once when the kernel
has imported it ahead.
"""

import importlib.machinery
import io
import os
import sys

from . import cjk, images, preload

PYPLOT = "matplotlib.pyplot"
SETTINGS = "/tmp/.matplotlib"
NAME = "matplotlibrc"


def prepare():
    """For matplotlib in this process and in those that it starts."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    if "MPLCONFIGDIR" not in os.environ:
        os.environ["MPLCONFIGDIR"] = SETTINGS
        preload.copy_fonts(SETTINGS)
    if "matplotlib" in sys.modules:
        apply_settings(sys.modules["matplotlib"])


def apply_settings(matplotlib):
    """Those that it would have found, had it not been imported ahead by the kernel."""
    path = settings_file()
    if path is None:
        return
    try:
        settings = dict(matplotlib.rc_params_from_file(path, use_default_template=False))
    except Exception as error:
        print("%s is not used: %s" % (path, error), file=sys.stderr)
        return
    settings.pop("backend", None)  # the environment, which always names one, goes first
    matplotlib.rcParams.update(settings)
    matplotlib.rcParamsOrig.update(settings)


def settings_file():
    """Where matplotlib looks for it; None when it would take its own."""
    named = os.environ.get("MATPLOTLIBRC", "")
    config = os.environ["MPLCONFIGDIR"]
    candidates = [NAME, named, os.path.join(named, NAME), os.path.join(config, NAME)]
    found = [path for path in candidates if path and os.path.isfile(path)]
    return found[0] if found else None


def hook_pyplot(display):
    if PYPLOT in sys.modules:
        change_pyplot(sys.modules[PYPLOT], display)
    else:
        sys.meta_path.insert(0, PyplotFinder(display))


class PyplotFinder:
    """Finds pyplot where it is, with one more step behind its import."""

    def __init__(self, display):
        self.display = display

    def find_spec(self, name, path=None, target=None):
        if name != PYPLOT:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        exec_module = spec.loader.exec_module

        def exec_and_change(module):
            exec_module(module)
            change_pyplot(module, self.display)

        spec.loader.exec_module = exec_and_change
        return spec


def change_pyplot(pyplot, display):
    def show(*args, block=None, **kwargs):
        """Shows all open figures, and closes them."""
        if block is not False:  # else they are wanted later, and shown at the end
            display.show_figures(open_figures())

    def show_one(self, warn=True):
        """Shows the figure, and closes it."""
        display.show_figures([self])

    pyplot.show = show
    sys.modules["matplotlib.figure"].Figure.show = show_one
    cjk.add_fonts(sys.modules["matplotlib.font_manager"])


def is_figure(value):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, getattr(module, "Figure", ()))


def open_figures():
    """Those with something on them, oldest first; empty ones are closed."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None or PYPLOT not in sys.modules:
        return []
    found = [manager.canvas.figure for manager in helpers.Gcf.get_all_fig_managers()]
    for figure in found:
        if is_empty(figure):
            close(figure)
    return [figure for figure in found if not is_empty(figure)]


def is_empty(figure):
    return len(figure.get_children()) <= 1  # the patch in the background


def close(figure):
    if PYPLOT in sys.modules:
        sys.modules[PYPLOT].close(figure)


class FigurePicture:
    stem = "figure"

    def __init__(self, figure):
        self.figure = figure
        self.dpi = figure.get_dpi()
        self.side = max(figure.get_size_inches()) * self.dpi

    def full(self):
        width, height = self.figure.get_size_inches() * self.dpi
        if width * height > images.PIXELS_MAX:
            return None
        # A large one becomes a file: half the time matters more than its size.
        options = {"compress_level": 3} if self.side > images.SIDE_MAX else {}
        return self._render(self.dpi, images.PNG, options)

    def scaled(self, side, mime):
        options = {"quality": images.JPEG_QUALITY} if mime == images.JPEG else {}
        return self._render(self.dpi * min(1, side / self.side), mime, options)

    def _render(self, dpi, mime, options):
        stream = io.BytesIO()
        kind = "png" if mime == images.PNG else "jpg"
        self.figure.savefig(stream, format=kind, dpi=dpi, pil_kwargs=options)
        return images.encoded(stream.getvalue(), mime)
