"""Images within a budget: each as it is when it fits, else smaller, with its full size as a file.

A picture is anything with stem (of the name of its file), full() and scaled(side, mime), which make
an Encoded; full() may return None when that would be too much.
"""

import collections
import io
import struct

from . import wire

PNG = "image/png"
JPEG = "image/jpeg"
SUFFIXES = {PNG: ".png", JPEG: ".jpg"}

SIDE_MAX = 1568  # what clients scale larger images down to
SIDE_MIN = 48  # less shows nothing
PART_MIN = 24 * 1024  # for each image, as long as there is something left
COUNT_MAX = 64  # KERNEL_IMAGES_MAX
PIXELS_MAX = 64 * 1000 * 1000  # of a full size; 256 MB while it is drawn
JPEG_QUALITY = 85
PALETTE_SIZE = 128
FAST_OCTREE = 2  # Image.Quantize.FASTOCTREE of newer versions; the one method that knows alpha

Encoded = collections.namedtuple("Encoded", "data mime width height")


def encoded(data, mime):
    """With the size that is in the bytes. ValueError: they are no such image."""
    width, height = (png_size if mime == PNG else jpeg_size)(data)
    return Encoded(data, mime, width, height)


def png_size(data):
    if data[:8] != b"\x89PNG\r\n\x1a\n" or data[12:16] != b"IHDR" or len(data) < 24:
        raise ValueError("this is no PNG image")
    return struct.unpack(">II", data[16:24])


def jpeg_size(data):
    """From the first start of a frame (SOF0 to SOF15 but DHT, JPG and DAC)."""
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], struct.unpack_from(">H", data, at + 2)[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    raise ValueError("this is no JPEG image")


class PillowPicture:
    stem = "image"

    def __init__(self, image):
        self.image = image

    def full(self):
        if self.image.width * self.image.height > PIXELS_MAX:
            return None
        return self._encode(self.image, JPEG if self.image.format == "JPEG" else PNG)

    def scaled(self, side, mime):
        image = self.image
        if image.mode not in ("L", "RGB", "RGBA"):
            image = image.convert("RGBA" if "A" in image.mode or image.mode == "P" else "RGB")
        image = image.copy()
        image.thumbnail((side, side))
        return self._encode(image, mime)

    @staticmethod
    def _encode(image, mime):
        stream = io.BytesIO()
        if mime == JPEG:
            on_white(image).save(stream, "JPEG", quality=JPEG_QUALITY)
        else:
            is_png_mode = image.mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16")
            (image if is_png_mode else image.convert("RGB")).save(stream, "PNG")
        return encoded(stream.getvalue(), mime)


def on_white(image):
    """What JPEG can hold."""
    if image.mode != "RGBA":
        return image if image.mode in ("L", "RGB", "CMYK") else image.convert("RGB")
    from PIL import Image

    white = Image.new("RGB", image.size, "white")
    white.paste(image, mask=image.getchannel("A"))
    return white


def with_palette(image):
    """For drawings: a third of the bytes, and hardly a difference to be seen."""
    from PIL import Image

    stream = io.BytesIO()
    opened = Image.open(io.BytesIO(image.data)).convert("RGBA")
    opened.quantize(PALETTE_SIZE, method=FAST_OCTREE).save(stream, "PNG")
    return encoded(stream.getvalue(), PNG)


class BytesPicture:
    stem = "image"

    def __init__(self, data, mime):
        self.encoded = encoded(bytes(data), mime)

    def full(self):
        return self.encoded

    def scaled(self, side, mime):
        from PIL import Image

        return PillowPicture(Image.open(io.BytesIO(self.encoded.data))).scaled(side, mime)


class Images:
    """All images of a run."""

    def __init__(self, channel, saver, total):
        self.channel = channel
        self.saver = saver
        self.left = total
        self.count = 0

    def show(self, picture, share):
        """share: how much of what is left it may use."""
        room = min(self.left, max(share, PART_MIN)) if self.count < COUNT_MAX else 0
        full = picture.full()
        if full and max(full.width, full.height) <= SIDE_MAX and len(full.data) <= room:
            self._send(full, False, None)
            return
        path = self._save(picture, full) if full else None
        smaller = self._fit(picture, full, room)
        if smaller:
            self._send(smaller, True, path)
        elif path:
            self.saver.note("There was no room for an image: it is in %s only." % path)
        else:
            self.saver.note("An image could not be shown: it is too large.")

    def _save(self, picture, full):
        size = "%d x %d" % (full.width, full.height)
        about = "full size of image %d, %s" % (self.count + 1, size)
        return self.saver.save(picture.stem, SUFFIXES[full.mime], full.data, about)

    def _fit(self, picture, full, room):
        side = min(SIDE_MAX, max(full.width, full.height)) if full else SIDE_MAX
        while side >= SIDE_MIN and room > 0:
            try:
                image = picture.scaled(side, PNG)
                if len(image.data) > room:
                    image = self._denser(picture, side, image)
            except Exception:
                return None  # without Pillow, or what it cannot read
            if len(image.data) <= room:
                return image
            side = int(side * min(0.8, max(0.3, (room / len(image.data)) ** 0.6)))
        return None

    @staticmethod
    def _denser(picture, side, image):
        """The same size in fewer bytes. More than one for two pixels: it is rather a photo."""
        if len(image.data) > image.width * image.height / 2:
            return picture.scaled(side, JPEG)
        return with_palette(image)

    def _send(self, image, scaled, path):
        self.count += 1
        self.left -= len(image.data)
        members = {
            "mime": image.mime,
            "width": image.width,
            "height": image.height,
            "scaled": scaled,
        }
        if path:
            members["file"] = wire.clean(path)
        self.channel.send(wire.IMAGE, wire.pack(members) + b"\n" + image.data)
