"""Removes ruled lines from a picture: recognition takes boxes for pictures and leaves out what is inside."""

from __future__ import annotations

import numpy as np
from PIL import Image

_DARKER = 48  # than the ground, of 256 shades
_SHARE = 0.1  # of the picture's shorter side: longer than any letter
_THICKEST = 9


def _opened(dark: np.ndarray, length: int) -> np.ndarray:
    """Pixels of runs along rows of at least `length` dark ones."""
    if dark.shape[1] <= length:
        return np.zeros_like(dark)
    counts = np.zeros((dark.shape[0], dark.shape[1] + 1), dtype=np.int32)
    np.cumsum(dark, axis=1, out=counts[:, 1:])
    begins = np.zeros((dark.shape[0], dark.shape[1] + 1), dtype=np.int32)
    full = (counts[:, length:] - counts[:, :-length]) == length
    begins[:, : full.shape[1]] += full
    begins[:, length : length + full.shape[1]] -= full
    return np.cumsum(begins, axis=1)[:, :-1] > 0


def without_rules(picture: Image.Image) -> Image.Image:
    """The grey picture with long thin lines, horizontal and vertical, painted as the ground."""
    grey = np.asarray(picture)
    ground = int(np.median(grey[::4, ::4]))
    dark = grey < ground - _DARKER
    length = max(60, int(_SHARE * min(grey.shape)))
    lines = np.zeros_like(dark)
    for turned in (False, True):
        side = dark.T if turned else dark
        runs = _opened(side, length)
        runs &= ~_opened(runs.T, _THICKEST + 1).T  # thick ones are areas, not lines
        lines |= runs.T if turned else runs
    if not lines.any():
        return picture
    cleared = grey.copy()
    grown = lines.copy()  # with the grey edges that scanning leaves
    grown[1:] |= lines[:-1]
    grown[:-1] |= lines[1:]
    grown[:, 1:] |= lines[:, :-1]
    grown[:, :-1] |= lines[:, 1:]
    cleared[grown] = ground
    return Image.fromarray(cleared)
