"""Where a box of a picture that was turned a little to be read lies on the picture itself."""

from __future__ import annotations

import math

from apps.files.extraction.types import Box

MOST = 15.0  # degrees: a page that lies further off is not a skewed one


def unlevelled(box: Box, degrees: float, width: float, height: float) -> Box:
    """The box around where `box`, in fractions of the levelled picture, was before that was turned."""
    if not degrees:
        return box
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    xs, ys = [], []
    for x, y in ((box[0], box[1]), (box[2], box[1]), (box[0], box[3]), (box[2], box[3])):
        across, down = (x - 0.5) * width, (y - 0.5) * height
        xs.append(min(1.0, max(0.0, (across * cosine - down * sine) / width + 0.5)))
        ys.append(min(1.0, max(0.0, (across * sine + down * cosine) / height + 0.5)))
    return min(xs), min(ys), max(xs), max(ys)
