"""What the caller is shown: the value of the last expression, what display() is called with, and
figures.
"""

import base64
import json
import sys

from . import figures, files, images, tables, text, wire

VALUE_MAX = 8 * 1024
DISPLAY_MAX = 16 * 1024  # a larger text is a file, with its beginning shown
SHOWS_MAX = 4  # plt.show() leaves room for three more of its kind

# Methods of IPython's display protocol, what comes first is shown. HTML is not among them: it is
# for values that have no better text.
METHODS = (
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("image/svg+xml", "_repr_svg_"),
    ("text/markdown", "_repr_markdown_"),
    ("application/json", "_repr_json_"),
)
HTML = ("text/html", "_repr_html_")
SUFFIXES = {
    "image/svg+xml": ".svg",
    "text/markdown": ".md",
    "application/json": ".json",
    "text/html": ".html",
    "text/plain": ".txt",
}


class Display:
    def __init__(self, channel):
        self.channel = channel
        self.saver = None
        self.images = None

    def begin(self, job):
        self.saver = files.Saver(self.channel, job.save_dir)
        self.images = images.Images(self.channel, self.saver, job.image_bytes)

    # --- values ------------------------------------------------------------------------------

    def show(self, *values):
        """Shows each value: images, figures, tables, or what else it can be shown as."""
        for value in values:
            if isinstance(value, str):
                self.show_text("text/plain", value)
            elif not self.show_rich(value):
                self.show_text("text/plain", self.text_of(value)[0])

    def show_value(self, value):
        """Of the last expression."""
        if self.show_rich(value) and has_no_text(value):
            return
        shown, truncated = self.text_of(value)
        members = {
            "text": wire.clean(shown),
            "type": wire.clean(text.type_name(type(value)))[:200],
            "truncated": truncated,
        }
        self.channel.send(wire.VALUE, wire.pack(members))

    def text_of(self, value):
        """(text, truncated)"""
        try:
            if tables.is_table(value):
                shown = tables.to_text(value)
                tables.save(value, self.saver)
                return text.cut(shown, VALUE_MAX)
            return text.bounded_repr(value, VALUE_MAX)
        except Exception as error:
            return "<its repr failed: %s>" % describe(error), False

    def show_rich(self, value):
        """False when a text is all that there is of it."""
        if isinstance(value, type) or tables.is_table(value):
            return False
        if figures.is_figure(value):
            self.show_figures([value])
            return True
        if is_pillow_image(value):
            self.show_picture(images.PillowPicture(value))
            return True
        return any(self.show_format(mime, data) for mime, data in self.formats(value))

    def formats(self, value):
        """(mime, data) of all that it can be shown as, the best first."""
        bundle = self.call(value, "_repr_mimebundle_")
        bundle = bundle[0] if isinstance(bundle, tuple) and bundle else bundle
        methods = METHODS + ((HTML,) if has_no_text(value) else ())
        for mime, name in methods:
            data = bundle.get(mime) if isinstance(bundle, dict) else None
            if data is None:
                data = self.call(value, name)
                data = data[0] if isinstance(data, tuple) and data else data  # with its metadata
            if data is not None:
                yield mime, data

    def call(self, value, name):
        """What the method returns; None when there is none, or with a note when it fails."""
        try:
            # Of the type: some values have every attribute that they are asked for.
            method = getattr(type(value), name, None)
            return method(value) if callable(method) else None
        except Exception as error:
            self.saver.note("%s failed: %s." % (name, describe(error)))
            return None

    def show_format(self, mime, data):
        """False when the data is not what it is said to be."""
        try:
            if mime in images.SUFFIXES:
                data = base64.b64decode(data) if isinstance(data, str) else data
                self.show_picture(images.BytesPicture(data, mime))
            elif mime == "image/svg+xml":
                self.show_file(mime, data, "SVG image")
            elif mime == "application/json":
                self.show_text(mime, data if isinstance(data, str) else json.dumps(data))
            else:
                self.show_text(mime, str(data))
        except Exception as error:
            self.saver.note("What was to be shown as %s is not: %s." % (mime, describe(error)))
            return False
        return True

    # --- texts and files ---------------------------------------------------------------------

    def show_text(self, mime, content):
        """A long one goes into a file, and HTML that was cut would show nothing of use."""
        shown, truncated = text.cut(content, DISPLAY_MAX)
        if truncated and mime == "text/html":
            self.show_file(mime, content, "HTML")
            return
        if truncated:
            self.save(mime, content, "all of a text that is shown in part")
        self.send_display(mime, shown)

    def show_file(self, mime, content, what):
        path = self.save(mime, content, what)
        if path:
            self.send_display("text/plain", "<%s, saved as %s>" % (what, path))

    def save(self, mime, content, about):
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
        stem = "image" if mime == "image/svg+xml" else "text"
        return self.saver.save(stem, SUFFIXES[mime], data, about)

    def send_display(self, mime, content):
        members = {"mime": mime, "text": wire.clean(content)}
        self.channel.send(wire.DISPLAY, wire.pack(members))

    # --- pictures ----------------------------------------------------------------------------

    def show_picture(self, picture):
        self.images.show(picture, self.images.left // SHOWS_MAX)

    def show_figures(self, shown):
        """Each one with room left for more that may come."""
        for i, figure in enumerate(shown):
            share = self.images.left // max(SHOWS_MAX, len(shown) - i)
            self.images.show(figures.FigurePicture(figure), share)
            figures.close(figure)

    def show_open_figures(self):
        """At the end nothing more comes, and an error is not one of the code."""
        left = figures.open_figures()
        for i, figure in enumerate(left):
            try:
                picture = figures.FigurePicture(figure)
                self.images.show(picture, self.images.left // (len(left) - i))
            except Exception as error:
                self.saver.note("A figure could not be drawn: %s." % describe(error))
            figures.close(figure)


def is_pillow_image(value):
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(value, getattr(module, "Image", ()))


def has_no_text(value):
    """Its repr would say no more than its type and address."""
    return type(value).__repr__ is object.__repr__


def describe(error):
    name = text.type_name(type(error))
    try:
        return text.cut("%s: %s" % (name, error), 200)[0]
    except Exception:
        return name
