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
from PIL import Image, ImageOps, TiffImagePlugin, WebPImagePlugin

from apps.files.extraction.types import ExtractionFailed, Reason

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "HEIF", "GIF", "BMP")
# Named, so that Pillow does not load all of its plug-ins to find them.
_PLUGINS = (TiffImagePlugin, WebPImagePlugin)
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


def pixels(source: int, page: int, *, max_pixels: int, longest: int, grey: bool) -> tuple[Image.Image, int, int]:
    """The upright picture, at most `longest` on its longer side, on white; and its own width and height.

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
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        ground = Image.new("RGBA", upright.size, "white")
        ground.alpha_composite(upright)
        upright = ground
    upright = upright.convert("L" if grey else "RGB")
    if max(upright.size) > longest:
        upright.thumbnail((longest, longest), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return upright, width, height
