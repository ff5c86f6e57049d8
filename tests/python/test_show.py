"""Figures, images, tables and what else is shown."""

import io
import os
import struct
import unittest
import zlib

from kit import HAS_MATPLOTLIB, HAS_NUMPY, HAS_PANDAS, HAS_PILLOW, KernelTest, needs

PLOT = "import matplotlib.pyplot as plt\n"


def pixels(data):
    """(width, height, rows of bytes) of a PNG with 8 bits per channel and no interlace."""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8
    channels = {0: 1, 2: 3, 6: 4}[kind]
    packed, at = b"", 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        packed += data[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += length + 12
    stream = io.BytesIO(zlib.decompress(packed))
    rows, before = [], bytearray(width * channels)
    for _ in range(height):
        kind, row = stream.read(1)[0], bytearray(stream.read(width * channels))
        before = unfilter(kind, row, before, channels)
        rows.append(before)
    return width, height, rows


def unfilter(kind, row, before, step):
    for i in range(len(row)) if kind else ():
        left = row[i - step] if i >= step else 0
        corner = before[i - step] if i >= step else 0
        guess = left + before[i] - corner
        nearest = min((left, before[i], corner), key=lambda value: abs(guess - value))
        added = (0, left, before[i], (left + before[i]) // 2, nearest)[kind]
        row[i] = (row[i] + added) & 255
    return row


def ink(data):
    """How many bytes of an image are dark."""
    return sum(sum(1 for byte in row if byte < 100) for row in pixels(data)[2])


@needs(HAS_MATPLOTLIB, "matplotlib")
class Figures(KernelTest):
    options = {"preload": True}

    def test_a_figure_left_open_is_shown_at_the_end(self):
        result = self.run_code(PLOT + "plt.plot([1, 2, 3]);")
        self.check_done(result)
        (image,) = result.images
        self.assertEqual((image["width"], image["height"], image["scaled"]), (640, 480, False))
        self.assertEqual(pixels(image["data"])[:2], (640, 480))
        self.assertGreater(ink(image["data"]), 1000)

    def test_show_shows_what_is_open_each_figure_once(self):
        result = self.run_code(
            PLOT + "plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()\nplt.show()\n"
            "plt.figure(figsize=(2, 1)); plt.plot([1]); plt.show()\n"
            "fig, ax = plt.subplots(figsize=(3, 1)); ax.plot([1]); fig.show()\n"
            "fig, ax = plt.subplots(figsize=(4, 1)); ax.plot([1]); display(fig)\n"
            "fig, ax = plt.subplots(figsize=(5, 1)); ax.plot([1])\nplt.show(block=False)\nfig"
        )
        widths = [image["width"] for image in result.images]
        self.assertEqual(widths, [640, 640, 200, 300, 400, 500])
        self.assertEqual(result.stderr, "")

    def test_closed_and_empty_figures_are_not_shown(self):
        result = self.run_code(
            PLOT + "plt.plot([1]); plt.savefig('a.png'); plt.close()\nplt.figure()\nNone"
        )
        self.assertEqual(result.images, [])
        self.assertTrue(os.path.exists(os.path.join(self.host.workspace, "a.png")))

    def test_a_figure_shown_before_a_crash_is_not_lost(self):
        result = self.run_code(PLOT + "plt.plot([1]); plt.show()\nimport os\nos.abort()")
        self.check_end(result, "signal", 6)
        self.assertEqual(len(result.images), 1)

    def test_figures_open_at_an_exception_are_shown(self):
        result = self.run_code(PLOT + "plt.plot([1])\n1 / 0")
        self.check_error(result, "ZeroDivisionError")
        self.assertEqual(len(result.images), 1)

    def test_an_error_while_drawing_is_told(self):
        code = PLOT + "plt.plot([1]); plt.title('$\\\\nothing$')\n"
        self.assertIn("could not be drawn", self.run_code(code + "None").notes[0]["text"])
        self.check_error(self.run_code(code + "plt.show()"), "ValueError")

    def test_names_imported_from_pyplot_show_as_well(self):
        code = "from matplotlib.pyplot import *\nplot([1])\nshow()\nprint('shown')"
        self.assertEqual(len(self.run_code(code).images), 1)

    def test_chinese_japanese_and_korean_are_drawn(self):
        has_font = self.run_code(
            "import matplotlib.font_manager as m\n"
            "any('CJK' in f.name or 'WenQuanYi' in f.name for f in m.fontManager.ttflist)"
        )
        if has_font.text != "True":
            self.skipTest("there is no font for them")
        for style in ("", "plt.style.use('ggplot')\n", "plt.rcdefaults()\n"):
            shapes = set()
            for text in ("中", "文", "語", "日", "한", "국", "あ", "\U000f0000"):
                result = self.run_code(
                    PLOT + style + "plt.figure(figsize=(1, 1), facecolor='w')\n"
                    "plt.figtext(0.2, 0.2, %r, size=40, color='k');" % text
                )
                if text < "\U000f0000":
                    self.assertEqual(result.stderr, "")
                shapes.add(bytes(b"".join(pixels(result.images[0]["data"])[2])))
            self.assertEqual(len(shapes), 8, "two of them look the same")

    def test_a_large_figure_is_scaled_and_its_full_size_is_a_file(self):
        result = self.run_code(PLOT + "plt.figure(figsize=(20, 10)); plt.plot([1, 2]);")
        (image,) = result.images
        self.assertEqual((image["width"], image["height"], image["scaled"]), (1568, 784, True))
        self.assertEqual(image["file"], os.path.join(self.host.save_dir, "figure-1.png"))
        shown = result.files[0]
        self.assertEqual(shown["path"], image["file"])
        self.assertEqual(shown["about"], "full size of image 1, 2000 x 1000")
        with open(image["file"], "rb") as file:
            self.assertEqual(struct.unpack(">II", file.read(24)[16:]), (2000, 1000))

    def test_a_figure_of_absurd_size_is_shown_small(self):
        result = self.run_code(PLOT + "plt.figure(figsize=(300, 300)); plt.plot([1, 2]);")
        self.assertEqual([image["width"] for image in result.images], [1568])
        self.assertEqual(result.files, [])

    @needs(HAS_NUMPY, "numpy")
    def test_20_figures_of_4000_x_3000_fit_the_budget(self):
        result = self.run_code(
            PLOT + "import numpy as np\nfor i in range(20):\n"
            "    plt.figure(figsize=(20, 15), dpi=200); plt.plot(np.random.rand(500))",
            timeout_ms=60000,
        )
        self.check_done(result)
        self.assertEqual((len(result.images), len(result.files)), (20, 20))
        self.assertLessEqual(sum(len(image["data"]) for image in result.images), 786432)
        for image in result.images:
            self.assertTrue(image["scaled"])
            self.assertGreaterEqual(image["width"], 400)

    @needs(HAS_NUMPY, "numpy")
    def test_without_room_there_are_files_and_a_note(self):
        result = self.run_code(
            PLOT + "plt.plot([1, 2]); plt.show()\nplt.plot([2, 1]); plt.show()", image_bytes=100
        )
        self.assertEqual((result.images, len(result.files)), ([], 2))
        self.assertIn("no room", result.notes[0]["text"])


@needs(HAS_MATPLOTLIB, "matplotlib")
class Cold(KernelTest):
    def test_pyplot_is_hooked_when_code_imports_it(self):
        code = "plt.plot([1]); plt.title('中文'); plt.show()\nplt.__name__"
        result = self.run_code(PLOT + code)
        self.check_done(result, "'matplotlib.pyplot'")
        self.assertEqual((len(result.images), result.stderr), (1, ""))


class Shown(KernelTest):
    def show(self, body, call="A()"):
        return self.run_code("class A:\n    %s\n%s" % (body, call))

    def test_display_shows_texts_and_values(self):
        result = self.run_code("display('text', 5, [1])\ndisplay()")
        shown = [(one["mime"], one["text"]) for one in result.displays]
        self.assertEqual(shown, [("text/plain", text) for text in ("text", "5", "[1]")])

    def test_representations_are_shown_as_what_they_are(self):
        for body, mime, text in (
            ("_repr_markdown_ = lambda s: '# x'", "text/markdown", "# x"),
            ("_repr_json_ = lambda s: {'a': 1}", "application/json", '{"a": 1}'),
            ("_repr_html_ = lambda s: '<b>x</b>'", "text/html", "<b>x</b>"),
            ("_repr_mimebundle_ = lambda s: {'text/markdown': 'm'}", "text/markdown", "m"),
        ):
            for call in ("A()", "display(A())"):
                result = self.show(body, call)
                self.assertEqual(result.displays, [{"mime": mime, "text": text}])
                self.assertIsNone(result.value)

    def test_html_gives_way_to_a_text(self):
        result = self.show("_repr_html_ = lambda s: '<b>x</b>'\n    __repr__ = lambda s: 'an x'")
        self.assertEqual((result.text, result.displays), ("an x", []))

    def test_svg_and_large_html_become_files(self):
        result = self.show("_repr_svg_ = lambda s: '<svg/>'")
        path = os.path.join(self.host.save_dir, "image-1.svg")
        self.assertEqual(result.files, [{"path": path, "about": "SVG image"}])
        self.assertIn(path, result.displays[0]["text"])
        result = self.show("_repr_html_ = lambda s: '<b>' * 9999")
        self.assertTrue(result.files[0]["path"].endswith(".html"))
        self.assertEqual(os.path.getsize(result.files[0]["path"]), 29997)

    def test_a_long_text_is_shown_in_part_and_saved_whole(self):
        result = self.run_code("display('x' * 50000)")
        self.assertEqual(len(result.displays[0]["text"]), 16384)
        self.assertEqual(os.path.getsize(result.files[0]["path"]), 50000)

    def test_representations_that_fail_are_noted_and_not_fatal(self):
        result = self.show("_repr_png_ = lambda s: 1 / 0")
        self.check_done(result, result.text)
        self.assertIn("ZeroDivisionError", result.notes[0]["text"])
        result = self.show("_repr_png_ = lambda s: b'no image'")
        self.assertIn("no PNG", result.notes[0]["text"])
        self.assertEqual(result.images, [])

    def test_values_that_have_every_attribute_are_texts(self):
        result = self.run_code("from unittest.mock import MagicMock\nMagicMock(name='m')")
        self.assertIn("MagicMock", result.text)
        self.assertEqual(result.notes, [])

    def test_files_that_cannot_be_written_are_noted(self):
        result = self.run_code("display('x' * 50000)", save_dir="/proc/nowhere")
        self.assertIn("could not be saved", result.notes[0]["text"])

    @needs(HAS_PILLOW, "Pillow")
    def test_images_of_pillow_are_shown(self):
        result = self.run_code("from PIL import Image\nImage.new('RGB', (30, 20), 'red')")
        (image,) = result.images
        self.assertEqual((image["mime"], image["width"], image["height"]), ("image/png", 30, 20))
        self.assertEqual(bytes(pixels(image["data"])[2][0][:3]), b"\xff\0\0")
        for mode in ("1", "L", "LA", "P", "RGBA", "CMYK", "I", "F", "HSV", "YCbCr"):
            code = "from PIL import Image\ndisplay(Image.new(%r, (%d, 20)))"
            for width in (30, 2000):
                result = self.run_code(code % (mode, width))
                self.assertEqual((len(result.images), result.notes), (1, []), mode)

    @needs(HAS_PILLOW and HAS_NUMPY, "Pillow or numpy")
    def test_a_photo_is_scaled_as_jpeg(self):
        result = self.run_code(
            "from PIL import Image\nimport numpy as np\n"
            "Image.fromarray(np.random.randint(0, 255, (1200, 1600, 3), 'uint8'))"
        )
        (image,) = result.images
        self.assertEqual((image["mime"], image["scaled"]), ("image/jpeg", True))
        self.assertLessEqual(len(image["data"]), 786432 // 4)
        self.assertGreater(image["width"], 400)
        self.assertAlmostEqual(image["width"] / image["height"], 4 / 3, delta=0.01)


@needs(HAS_PANDAS, "pandas")
class Tables(KernelTest):
    def test_a_small_frame_is_its_text(self):
        result = self.run_code("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
        self.check_done(result, "   a  b\n0  1  x\n1  2  y\n\n[2 rows x 2 columns]")
        self.assertEqual(result.value["type"], "pandas.core.frame.DataFrame")
        self.assertEqual(result.files, [])

    def test_a_large_frame_is_shown_in_part_and_saved(self):
        result = self.run_code(
            "import pandas as pd\npd.DataFrame({'c%d' % i: range(1000) for i in range(12)})"
        )
        self.assertLessEqual(len(result.text), 8192)
        self.assertIn("[1000 rows x 12 columns]", result.text)
        self.assertEqual([one["about"] for one in result.files], ["DataFrame 1000 x 12"] * 2)
        with open(result.files[0]["path"], encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual((len(lines), lines[-1]), (1001, ",".join(["999"] * 13)))
        with open(result.files[1]["path"], encoding="utf-8") as file:
            self.assertIn("<table", file.read())

    def test_series_and_wide_cells_are_bounded(self):
        result = self.run_code("import pandas as pd\npd.Series(range(100), name='s')")
        self.assertIn("Name: s, Length: 100, dtype: int64", result.text)
        self.assertEqual(len(result.files), 2)
        result = self.run_code("import pandas as pd\npd.DataFrame({'a': ['x' * 100000]})")
        self.assertLess(len(result.text), 300)

    def test_display_shows_tables(self):
        result = self.run_code("import pandas as pd\ndisplay(pd.Series([5]))")
        self.assertIn("0    5", result.displays[0]["text"])


if __name__ == "__main__":
    unittest.main()
