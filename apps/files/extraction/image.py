"""Pictures: their size, and their pixels for recognition and viewing. Decoded in the child only."""

from __future__ import annotations

import os
import warnings

from PIL import Image, ImageOps, UnidentifiedImageError

from apps.files.extraction.types import ExtractionFailed, Reason

_FORMATS = ("PNG", "JPEG")
_TURNED = frozenset({5, 6, 7, 8})
_ORIENTATION = 0x0112


def _open(source: int, max_pixels: int) -> Image.Image:
    """The picture, not decoded yet. Raises ExtractionFailed."""
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = max_pixels
    try:
        picture = Image.open(os.fdopen(source, "rb", closefd=False), formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise ExtractionFailed(Reason.TOO_LARGE) from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    if picture.width * picture.height > max_pixels:
        raise ExtractionFailed(Reason.TOO_LARGE)
    return picture


def size(source: int, *, max_pixels: int) -> tuple[int, int]:
    """Width and height as displayed. Raises ExtractionFailed."""
    picture = _open(source, max_pixels)
    width, height = picture.size
    try:
        turned = picture.getexif().get(_ORIENTATION) in _TURNED
    except (OSError, ValueError, SyntaxError, EOFError):  # behind pixels that are not all there
        turned = False
    return (height, width) if turned else (width, height)


def pixels(source: int, *, max_pixels: int, longest: int, grey: bool) -> Image.Image:
    """The upright picture, at most `longest` on its longer side, on white. Raises ExtractionFailed."""
    picture = _open(source, max_pixels)
    try:
        picture.draft("L" if grey else "RGB", (longest, longest))  # JPEG decodes to a fraction of its size
        picture.load()
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    upright: Image.Image = ImageOps.exif_transpose(picture)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        ground = Image.new("RGBA", upright.size, "white")
        ground.alpha_composite(upright)
        upright = ground
    upright = upright.convert("L" if grey else "RGB")
    if max(upright.size) > longest:
        upright.thumbnail((longest, longest), Image.Resampling.LANCZOS, reducing_gap=2.0)
    return upright
