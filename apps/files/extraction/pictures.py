"""Pictures that stand in documents: which of them are worth recognising, and their bytes until those are handed on.

Nothing is decoded here. What is not one of the formats that recognition reads (drawings, formulas) is passed over.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from hashlib import sha256
from typing import IO

from apps.files.extraction.types import (
    MAX_PIXELS,
    PICTURE_MAX_BYTES,
    PICTURES_MAX,
    PICTURES_MAX_BYTES,
    ExtractionFailed,
    Reason,
)

_PICTURE = re.compile(
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|BM.{4}\0{4}|II\*\0|MM\0\*|RIFF.{4}WEBP|.{4}ftyp(?:heic|heix|hevc|mif1|msf1)",
    re.DOTALL,
)
_LEAST_SIDE = 40  # pixels: a line of small print is half as high
_LEAST_PIXELS = 30_000  # an icon or a button has fewer
_KEY_CHARS = 32


def is_picture(data: bytes) -> bool:
    return _PICTURE.match(data) is not None


def _is_large(size: tuple[int, int]) -> bool:
    return min(size) >= _LEAST_SIDE and size[0] * size[1] >= _LEAST_PIXELS


class Pictures:
    """The pictures of one file and of everything inside it, each once. Their bytes lie in the child's folder."""

    def __init__(self, pictured: bool = True) -> None:
        self._places: dict[str, tuple[int, int]] = {}
        self._room = PICTURES_MAX_BYTES if pictured else 0
        self._count = 0
        self._file: IO[bytes] | None = None

    @property
    def full(self) -> bool:
        return self._count >= PICTURES_MAX or self._room <= 0

    def add(self, size: int, load: Callable[[], bytes], *, most: int = 1) -> list[str]:
        """Names (`Element.picture`) of the first `most` pages of a picture; none when it is small, no picture, or known
        already. Raises ExtractionFailed for what should have been recognised and cannot be."""
        if size > min(PICTURE_MAX_BYTES, self._room):
            raise ExtractionFailed(Reason.TOO_LARGE)
        self._room -= size
        data = load()
        self._room -= max(0, len(data) - size)
        if len(data) > PICTURE_MAX_BYTES:
            raise ExtractionFailed(Reason.TOO_LARGE)
        key = sha256(data).hexdigest()[:_KEY_CHARS]
        if not is_picture(data) or key in self._places:
            return []
        from apps.files.extraction import image  # late: most documents have no pictures

        sizes = image.sizes_inside(data, max_pixels=MAX_PIXELS, most=PICTURES_MAX)[:most]
        numbers = [number for number, size in enumerate(sizes, start=1) if _is_large(size)]
        if self._count + len(numbers) > PICTURES_MAX:
            raise ExtractionFailed(Reason.TOO_LARGE)
        self._places[key] = self._store(data) if numbers else (0, 0)
        self._count += len(numbers)
        return [f"{key}/{number}" for number in numbers]

    def _store(self, data: bytes) -> tuple[int, int]:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=os.curdir)  # noqa: SIM115 - as long as the child
        at = self._file.seek(0, os.SEEK_END)
        self._file.write(data)
        return at, len(data)

    def take(self, key: str) -> bytes:
        """The bytes of a picture, to be handed on; nothing when they were before."""
        at, size = self._places.pop(key, (0, 0))
        if self._file is None or not size:
            return b""
        self._file.seek(at)
        return self._file.read(size)
