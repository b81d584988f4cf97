"""Texts that PDFium hands out in UTF-16, the size asked for first."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_MAX_UNITS = 20_000


def wide_text(get: Callable[[object, int], int]) -> str:
    size = min(int(get(None, 0)), 2 * _MAX_UNITS)
    if size <= 2:
        return ""
    buffer = (ctypes.c_ushort * (size // 2))()
    get(buffer, size)
    return bytes(buffer).decode("utf-16-le", "replace").partition("\0")[0].replace("\r", " ")
