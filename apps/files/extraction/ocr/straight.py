"""A picture made easier to recognise: lines level, and the ground of one shade where a shadow lies on it."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageFilter

from apps.files.extraction.ocr.levels import MOST

_LEAST = 1.0
_WIDTH = 500  # of the picture that the slope is looked for in
_DARKER = 40
_CLEARLY = 1.15  # times as sharp as the lines are without turning
_SHADOW = 60  # shades between the lightest and the darkest part of the ground
_CELL = 16
_EDGE = 16


def _sharpness(dark: Image.Image, degrees: float) -> float:
    """How clearly rows of ink and rows without take turns, once the picture is turned counter-clockwise."""
    rows = np.asarray(dark.rotate(degrees, Image.Resampling.BILINEAR), dtype=np.float32).sum(axis=1)
    return float(np.square(np.diff(rows)).sum())


def slope(picture: Image.Image) -> float:
    """By how many degrees counter-clockwise the grey picture is to be turned for its lines to lie level, often 0."""
    small = picture.copy()
    small.thumbnail((_WIDTH, 4 * _WIDTH), Image.Resampling.BOX)
    grey = np.asarray(small, dtype=np.int16)
    ground = int(np.median(grey))
    dark = Image.fromarray(((np.abs(grey - ground) > _DARKER) * 255).astype(np.uint8))
    level = _sharpness(dark, 0.0)
    best = max((float(step) for step in range(-int(MOST), int(MOST) + 1)), key=lambda angle: _sharpness(dark, angle))
    best = max((best + step / 4 for step in range(-3, 4)), key=lambda angle: _sharpness(dark, angle))
    clear = abs(best) >= _LEAST and _sharpness(dark, best) > _CLEARLY * level
    return max(-MOST, min(MOST, best)) if clear else 0.0


def levelled(picture: Image.Image, degrees: float) -> Image.Image:
    """The picture turned counter-clockwise about its middle, in its own size."""
    ground = int(np.median(np.asarray(picture)[::4, ::4]))
    return picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=ground) if degrees else picture


def without_shadow(picture: Image.Image) -> Image.Image:
    """The grey picture with its ground evened out, where that is far from even and lighter than the ink."""
    size = (max(1, picture.width // _CELL), max(1, picture.height // _CELL))
    ground = (
        picture.resize(size, Image.Resampling.BOX).filter(ImageFilter.MaxFilter(3)).filter(ImageFilter.MedianFilter(5))
    )
    shades = np.percentile(np.asarray(ground), (2, 50, 98))
    if shades[2] - shades[0] < _SHADOW or np.median(np.asarray(picture)[::4, ::4]) < shades[1] - _SHADOW:
        return picture
    cells = np.asarray(ground, dtype=np.int16)
    steps = [np.abs(np.diff(cells, axis=axis)) for axis in (0, 1)]
    if any(step.size and np.percentile(step, 99.5) > _EDGE for step in steps):
        return picture  # areas of another colour have edges, shadows do not
    even = np.asarray(ground.resize(picture.size, Image.Resampling.BILINEAR), dtype=np.float32)
    lifted = np.asarray(picture, dtype=np.float32) * 240.0 / np.maximum(even, 32.0)
    return Image.fromarray(np.clip(lifted, 0, 255).astype(np.uint8))
