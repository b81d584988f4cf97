"""Pictures: their size, and their pixels for recognition and viewing. Decoded in the child only."""

from __future__ import annotations

import io
import os
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import pi_heif
from PIL import BmpImagePlugin, GifImagePlugin, Image, ImageOps, ImageStat, TiffImagePlugin, WebPImagePlugin

from apps.files.extraction.types import ExtractionFailed, Reason

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "HEIF", "GIF", "BMP")
# Named, so that Pillow does not load all of its plug-ins to find them.
_PLUGINS = (TiffImagePlugin, WebPImagePlugin, GifImagePlugin, BmpImagePlugin)
pi_heif.register_heif_opener()
_TURNED = frozenset({5, 6, 7, 8})
_ORIENTATION = 0x0112
# What Pillow ends with where a picture's bytes make no sense.
_DAMAGE = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    struct.error,
)
_BRIGHT = 192  # of 255: what is brighter is not seen on white
_LONGEST_SIDE = 1_000_000  # fewer pixels than allowed may still be no picture that anyone could look at


@contextmanager
def _decoding() -> Iterator[None]:
    """Raises ExtractionFailed for what decoding ends with."""
    try:
        yield
    except Image.DecompressionBombError as error:
        raise ExtractionFailed(Reason.TOO_LARGE) from error
    except _DAMAGE as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


def _descriptor(source: int) -> BinaryIO:
    return os.fdopen(source, "rb", closefd=False)


def _open(file: BinaryIO, max_pixels: int) -> Image.Image:
    """The picture, not decoded yet. Raises ExtractionFailed."""
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = max_pixels
    with _decoding():
        picture = Image.open(file, formats=_FORMATS)
    if picture.width * picture.height > max_pixels or max(picture.size) > _LONGEST_SIDE:
        raise ExtractionFailed(Reason.TOO_LARGE)
    return picture


def _oriented(picture: Image.Image) -> tuple[int, int]:
    width, height = picture.size
    try:
        turned = picture.getexif().get(_ORIENTATION) in _TURNED
    except _DAMAGE:  # behind pixels that are not all there
        turned = False
    return (height, width) if turned else (width, height)


def _upright(picture: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(picture)
    except _DAMAGE:  # a note of which way up it is that makes no sense
        return picture


def sizes(source: int, *, max_pixels: int, most: int) -> list[tuple[int, int]]:
    """Width and height as displayed of each page: a TIFF may have many. Raises ExtractionFailed."""
    return _sizes(_descriptor(source), max_pixels=max_pixels, most=most)


def sizes_inside(data: bytes, *, max_pixels: int, most: int) -> list[tuple[int, int]]:
    """The same of a picture inside another file."""
    return _sizes(io.BytesIO(data), max_pixels=max_pixels, most=most)


def _sizes(file: BinaryIO, *, max_pixels: int, most: int) -> list[tuple[int, int]]:
    picture = _open(file, max_pixels)
    found = [_oriented(picture)]
    if picture.format != "TIFF":
        return found
    with suppress(*_DAMAGE, Image.DecompressionBombError):  # pages behind a damaged one cannot be found
        while len(found) <= most:
            picture.seek(len(found))
            found.append(_oriented(picture))
    if len(found) > most:
        raise ExtractionFailed(Reason.TOO_MANY_PAGES)
    return found


def _shallow(picture: Image.Image) -> Image.Image:
    """The picture in bytes a channel, as bright as its brightest point asks for where that is beyond a byte."""
    if picture.mode == "LAB":
        return picture.getchannel("L")
    if picture.mode != "F" and not picture.mode.startswith("I"):
        return picture
    _, brightest = picture.convert("F").getextrema()
    scale = 255 / brightest if isinstance(brightest, float) and brightest > 255 else 1.0
    return picture.convert("F").point(lambda value: value * scale + 0).convert("L")


def _opaque(picture: Image.Image) -> Image.Image:
    """The picture on white, or on black where it is mostly transparent and the rest is bright."""
    if picture.mode not in ("RGBA", "LA", "PA") and "transparency" not in picture.info:
        return picture
    picture = picture.convert("RGBA")
    alpha = picture.getchannel("A")
    drawn = ImageStat.Stat(alpha).mean[0]
    bright = (
        0 < drawn < 128
        and ImageStat.Stat(picture.convert("L"), alpha.point(lambda value: 255 * (value > 0))).mean[0] > _BRIGHT
    )
    ground = Image.new("RGBA", picture.size, "black" if bright else "white")
    ground.alpha_composite(picture)
    return ground


def pixels(source: int, page: int, *, max_pixels: int, longest: int, grey: bool) -> tuple[Image.Image, int, int]:
    """The upright picture, at most `longest` on its longer side, on a ground that it is seen on; and its own width and
    height.

    Raises ExtractionFailed.
    """
    picture = _open(_descriptor(source), max_pixels)
    with _decoding():
        if page > 1:
            picture.seek(page - 1)
        if picture.width * picture.height > max_pixels:
            raise ExtractionFailed(Reason.TOO_LARGE)
        width, height = _oriented(picture)
        picture.draft("L" if grey else "RGB", (longest, longest))  # JPEG decodes to a fraction of its size
        picture.load()
    upright = _upright(picture)
    upright = _opaque(_shallow(upright)).convert("L" if grey else "RGB")
    if max(upright.size) > longest:
        upright.thumbnail((longest, longest), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return upright, width, height
