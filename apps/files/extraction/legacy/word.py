"""Word 97 to 2003 (DOC): the text by its piece table, and what its paragraphs are by their properties.

Structures are those of [MS-DOC]: the FIB says where things are, CLX where the text is, PlcfBtePapx which
properties a paragraph has. Text of fields' codes is left out, their results are kept.
"""

from __future__ import annotations

import bisect
import re
import struct
from collections.abc import Iterator
from typing import BinaryIO

import olefile

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, bounded, opened_ole, table_text
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_MAGIC = 0xA5EC
_ENCRYPTED, _TABLE_1 = 0x0100, 0x0200
_CLX, _PAPX = 33, 13  # numbers of pairs of offset and size in the FIB
_PAGE = 512
_IN_TABLE, _ROW_ENDS, _LIST, _OUTLINE = 0x2416, 0x2417, 0x460B, 0x2640
_OPERAND = {0: 1, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2, 7: 3}
_FIELD = re.compile("\x13[^\x13\x14\x15]*\x14|\x13[^\x13\x14\x15]*\x15")
_ENDS = re.compile("[\r\x07\x0c]")
_SYMBOLS = str.maketrans(
    {"\x0b": "\n", "\x1e": "-", "\x1f": "", "\x15": "", "\x01": "", "\x08": "", "\x02": "", "\x05": ""}
)
_TEXT_PARTS = 8  # main text, footnotes, headers, macros, annotations, endnotes, text boxes, those of headers
_CAPTION = re.compile(r"^(?:figure|table|abbildung|tabelle|tableau)\s+\d+", re.IGNORECASE)


class _Document:
    """Offsets and streams of a document. Raises ExtractionFailed."""

    def __init__(self, ole: olefile.OleFileIO) -> None:
        if not ole.exists("WordDocument"):
            raise ExtractionFailed(Reason.ENCRYPTED if ole.exists("EncryptedPackage") else Reason.DAMAGED)
        self.main = bytes(ole.openstream("WordDocument").read())
        magic, version, flags = struct.unpack_from("<HH6xH", self.main)
        if magic != _MAGIC or version < 101:  # Word 95 and before keep their text elsewhere
            raise ExtractionFailed(Reason.UNSUPPORTED)
        if flags & _ENCRYPTED:
            raise ExtractionFailed(Reason.ENCRYPTED)
        self.table = bytes(ole.openstream("1Table" if flags & _TABLE_1 else "0Table").read())
        words = struct.unpack_from("<H", self.main, 32)[0]
        longs_at = 34 + 2 * words
        longs = struct.unpack_from("<H", self.main, longs_at)[0]
        self._pairs_at = longs_at + 2 + 4 * longs + 2
        self.lengths = struct.unpack_from(f"<{_TEXT_PARTS}i", self.main, longs_at + 2 + 12)

    def part(self, number: int) -> bytes:
        offset, size = struct.unpack_from("<II", self.main, self._pairs_at + 8 * number)
        return self.table[offset : offset + size]

    def pieces(self) -> Iterator[tuple[int, int, bool]]:
        """Number of characters, offset in the main stream, whether a character takes one byte."""
        data, at = self.part(_CLX), 0
        while at < len(data) and data[at] == 1:
            at += 3 + struct.unpack_from("<H", data, at + 1)[0]
        size = struct.unpack_from("<I", data, at + 1)[0]
        table = data[at + 5 : at + 5 + size]
        count = (len(table) - 4) // 12
        positions = struct.unpack_from(f"<{count + 1}I", table)
        for number in range(count):
            where = struct.unpack_from("<I", table, 4 * (count + 1) + 8 * number + 2)[0]
            packed = bool(where & 0x40000000)
            offset = where & 0x3FFFFFFF
            yield max(0, positions[number + 1] - positions[number]), offset // 2 if packed else offset, packed

    def paragraphs(self) -> tuple[list[int], list[bytes]]:
        """Where runs of paragraphs begin in the main stream, and their properties (style, then modifiers)."""
        data = self.part(_PAPX)
        count = max(0, (len(data) - 4) // 8)
        starts: list[int] = []
        properties: list[bytes] = []
        for (page,) in struct.iter_unpack("<I", data[4 * (count + 1) : 4 * (count + 1) + 4 * count]):
            block = self.main[(page & 0x3FFFFF) * _PAGE :][:_PAGE]
            if len(block) < _PAGE:
                continue
            runs = min(block[-1], 29)
            for run in range(runs):
                starts.append(struct.unpack_from("<I", block, 4 * run)[0])
                at = 2 * block[4 * (runs + 1) + 13 * run]
                size = 2 * block[at] - 1 if block[at] else 2 * block[at + 1]
                begin = at + 1 if block[at] else at + 2
                properties.append(block[begin : begin + size] if at else b"\0\0")
        order = sorted(range(len(starts)), key=starts.__getitem__)
        return [starts[index] for index in order], [properties[index] for index in order]


def _modifiers(properties: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at + 3 <= len(properties):
        code = struct.unpack_from("<H", properties, at)[0]
        size = _OPERAND.get(code >> 13)
        if size is None:
            size = 1 + properties[at + 2]
        yield code, int.from_bytes(properties[at + 2 : at + 2 + size], "little")
        at += 2 + size


class _Text:
    """The characters of the document, and the offset in the stream that each came from."""

    def __init__(self, document: _Document) -> None:
        parts: list[str] = []
        self._starts: list[int] = []  # by character
        self._pieces: list[tuple[int, bool]] = []
        total = 0
        for count, offset, packed in document.pieces():
            width = 1 if packed else 2
            data = document.main[offset : offset + count * width]
            text = data.decode("latin-1").translate(_CP1252) if packed else _utf16(data)
            self._starts.append(total)
            self._pieces.append((offset, packed))
            parts.append(text)
            total += len(text)
        self.text = "".join(parts)

    def offset(self, character: int) -> int:
        piece = max(0, bisect.bisect_right(self._starts, character) - 1)
        offset, packed = self._pieces[piece]
        return offset + (character - self._starts[piece]) * (1 if packed else 2)


def _utf16(data: bytes) -> str:
    """One character a unit, so that offsets can be counted; halves of pairs are joined in `_visible`."""
    return "".join(map(chr, struct.unpack(f"<{len(data) // 2}H", data[: len(data) // 2 * 2])))


_CP1252 = {code: bytes((code,)).decode("cp1252", "replace") for code in range(0x80, 0xA0)}


def _visible(text: str) -> str:
    """Without the codes of fields; nested ones end from the inside out."""
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    while True:
        shorter = _FIELD.sub("", text)
        if shorter == text:
            break
        text = shorter
    return "\n".join(line for part in text.translate(_SYMBOLS).split("\n") if (line := clean(part)))


class _Reader:
    def __init__(self, document: _Document) -> None:
        self._text = _Text(document)
        self._starts, self._properties = document.paragraphs()
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._cell: list[str] = []

    def _properties_at(self, character: int) -> bytes:
        at = bisect.bisect_right(self._starts, self._text.offset(character)) - 1
        return self._properties[at] if 0 <= at < len(self._properties) else b"\0\0"

    def elements(self, start: int, end: int) -> Iterator[Element]:
        for found in _ENDS.finditer(self._text.text, start, end):
            text = _visible(self._text.text[start : found.start()])
            properties = self._properties_at(found.start())
            kinds = dict(_modifiers(properties))
            start = found.end()
            if kinds.get(_ROW_ENDS):
                self._rows.append(self._cells)
                self._cells, self._cell = [], []
            elif kinds.get(_IN_TABLE) or found.group() == "\x07":
                self._cell.append(text)
                if found.group() == "\x07":
                    self._cells.append(" ".join(self._cell))
                    self._cell = []
            else:
                yield from self._end_table()
                yield from _paragraph(text, struct.unpack_from("<H", properties.ljust(2, b"\0"))[0], kinds)
        yield from self._end_table()

    def _end_table(self) -> Iterator[Element]:
        rows, self._rows = self._rows, []
        if text := table_text(rows):
            yield Element(Category.TABLE, text)


def _paragraph(text: str, style: int, kinds: dict[int, int]) -> Iterator[Element]:
    if not text:
        return
    outline = kinds.get(_OUTLINE, 9)
    level = style if 1 <= style <= 9 else outline + 1 if outline < 9 else None  # built-in headings are styles 1 to 9
    if level is not None and len(text) <= HEADING_MAX_CHARS:
        yield Element(Category.TITLE, text, level=level)
    elif kinds.get(_LIST):
        yield Element(Category.LIST_ITEM, text)
    else:
        yield Element(Category.FIGURE_CAPTION if _CAPTION.match(text) else Category.NARRATIVE_TEXT, text)


def _parts(document: _Document) -> Iterator[tuple[int, int, Category | None]]:
    """Stretches of the text: the body, then footnotes, comments, endnotes and boxes; headers and footers apart."""
    main, footnotes, headers, macros, annotations, endnotes, boxes, _ = (max(0, length) for length in document.lengths)
    ends = [main]
    for length in (footnotes, headers, macros, annotations, endnotes, boxes):
        ends.append(ends[-1] + length)
    yield 0, ends[0], None
    yield ends[0], ends[1], None
    yield ends[3], ends[4], None
    yield ends[4], ends[5], None
    yield ends[5], ends[6], None
    yield ends[1], ends[2], Category.HEADER


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    elements: list[Element] = []
    with opened_ole(file) as ole:
        document = _Document(ole)
        reader = _Reader(document)
        for start, end, apart in _parts(document):
            found = bounded(reader.elements(start, end))
            elements += [Element(apart, element.text) if apart else element for element in found]
        title = clean((ole.get_metadata().title or b"").decode("cp1252", "replace"))
    return Content([elements], title[:HEADING_MAX_CHARS])
