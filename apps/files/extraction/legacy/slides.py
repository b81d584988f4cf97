"""PowerPoint 97 to 2003 (PPT): the text of each slide, by its records ([MS-PPT])."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, as_slides, opened_ole
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_DOCUMENT, _SLIDE, _LIST, _PERSIST, _HEADER = 0x03E8, 0x03EE, 0x0FF0, 0x03F3, 0x0F9F
_WIDE, _NARROW = 0x0FA0, 0x0FA8
_CRYPT = 0x2F14
_TITLES = (0, 6)  # kinds of text: title, centred title
_MAX_DEPTH = 24
_MAX_RECORDS = 500_000


def _records(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Type, instance, and where the contents begin and end, of each record in a row."""
    while start + 8 <= end:
        head, kind, size = struct.unpack_from("<HHI", data, start)
        stop = min(start + 8 + size, end)
        yield kind, head >> 4 if head & 0xF != 0xF else -1, start + 8, stop
        start = start + 8 + size


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _MAX_RECORDS

    def _texts(self, start: int, end: int, depth: int = 0) -> Iterator[tuple[int, str]]:
        """Kind and text of every text below, in order; a slide's begin is kind -1."""
        kind_of_text = 4
        for kind, instance, begin, stop in _records(self._data, start, end):
            self._left -= 1
            if self._left < 0 or depth > _MAX_DEPTH:
                raise ExtractionFailed(Reason.DAMAGED)
            if kind == _PERSIST:
                yield -1, ""
            elif kind == _HEADER and stop - begin >= 4:
                kind_of_text = struct.unpack_from("<I", self._data, begin)[0]
            elif kind == _WIDE:
                yield kind_of_text, self._data[begin:stop].decode("utf-16-le", "replace")
            elif kind == _NARROW:
                yield kind_of_text, self._data[begin:stop].decode("latin-1")
            elif instance == -1:
                yield from self._texts(begin, stop, depth + 1)

    def slides(self) -> list[list[Element]]:
        """Texts of placeholders are in the document's list of slides, those of drawn boxes in the slides themselves."""
        listed: list[list[Element]] = []
        drawn: list[list[Element]] = []
        for kind, instance, begin, stop in _records(self._data, 0, len(self._data)):
            if kind == _CRYPT:
                raise ExtractionFailed(Reason.ENCRYPTED)
            if kind == _DOCUMENT and instance == -1:
                listed = self._listed(begin, stop)
            elif kind == _SLIDE:
                drawn.append([element for of, text in self._texts(begin, stop) for element in _elements(of, text)])
        count = max(len(listed), len(drawn))
        listed += [[] for _ in range(count - len(listed))]
        drawn += [[] for _ in range(count - len(drawn))]
        return [[*first, *second] for first, second in zip(listed, drawn, strict=True)]

    def _listed(self, start: int, end: int) -> list[list[Element]]:
        for kind, _, begin, stop in _records(self._data, start, end):
            if kind == _LIST and struct.unpack_from("<H", self._data, begin - 8)[0] >> 4 == 0:  # 1: masters, 2: notes
                slides: list[list[Element]] = []
                for of, text in self._texts(begin, stop):
                    if of == -1:
                        slides.append([])
                    elif slides:
                        slides[-1] += _elements(of, text)
                return slides
        return []


def _elements(kind: int, text: str) -> Iterator[Element]:
    for part in text.replace("\x0b", " ").split("\r"):
        if cleaned := clean(part):
            if kind in _TITLES and len(cleaned) <= HEADING_MAX_CHARS:
                yield Element(Category.TITLE, cleaned, level=1)
            else:
                yield Element(Category.LIST_ITEM if kind == 1 else Category.NARRATIVE_TEXT, cleaned)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    with opened_ole(file) as ole:
        if ole.exists("EncryptedSummary") or ole.exists("EncryptedPackage"):
            raise ExtractionFailed(Reason.ENCRYPTED)
        data = ole.openstream("PowerPoint Document").read()
    return Content(as_slides(_Reader(bytes(data)).slides()))
