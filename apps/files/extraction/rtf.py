"""Rich Text Format: paragraphs, headings, lists and tables, in whatever code pages its fonts switch between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, bounded, table_text
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Reason

_TOKEN = re.compile(rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)")
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_UNSEEN = frozenset(
    b"""
    colortbl info pict object fldinst sn sv listtext pntext xe tc themedata colorschememapping datastore latentstyles
    listtable listoverridetable rsidtbl generator filetbl revtbl annotation atnid atnauthor bkmkstart bkmkend
    nonshppict ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn private xmlnstbl mmathPr
    """.split()
)
_SEEN_THOUGH_OPTIONAL = frozenset((b"shpinst", b"shptxt", b"footnote"))
_CHARACTERS = {
    b"tab": " ", b"line": "\n", b"emdash": "—", b"endash": "–", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“",
    b"rdblquote": "”", b"bullet": "•", b"emspace": " ", b"enspace": " ", b"nestcell": " ", b"nestrow": " ",
}  # fmt: skip
_SYMBOLS = {b"~": " ", b"_": "-", b"-": "", b"\n": "\n", b"\r": "\n"}
_HEADING = re.compile(rb"heading (\d)", re.IGNORECASE)
_MAX_DEPTH = 500
_EDGES = {
    word + side: category
    for word, category in ((b"header", Category.HEADER), (b"footer", Category.FOOTER))
    for side in (b"", b"l", b"r", b"f")
}


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds until the group ends."""

    unseen: bool = False
    encoding: str = "cp1252"
    fallback: int = 1  # how many characters after \\u stand for the same one
    table: bytes = b""  # fonttbl or stylesheet
    edge: Category | None = None
    apart: bool = False  # a footnote, header or footer: it interrupts the text


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fonts: dict[int, str] = {}
        self._headings: dict[int, int] = {}
        self._default = "cp1252"
        self._group = _Group()
        self._stack: list[_Group] = []
        self._interrupted: list[str] = []  # the paragraph that a footnote or header stands in
        self._raw = bytearray()
        self._text: list[str] = []
        self._high = 0  # first half of a character beyond the basic plane
        self._skip = self._number = 0
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._in_table = self._listed = False
        self._level: int | None = None

    # Characters

    def _decode(self) -> None:
        if self._raw:
            self._text.append(self._raw.decode(self._group.encoding, "replace"))
            self._raw.clear()

    def _write(self, text: str) -> None:
        if not self._group.unseen:
            self._decode()
            self._text.append(text)

    def _bytes(self, data: bytes) -> None:
        taken = min(self._skip, len(data))
        self._skip -= taken
        if not self._group.unseen:
            self._raw += data[taken:]

    def _unicode(self, code: int) -> None:
        code &= 0xFFFF
        if 0xD800 <= code < 0xDC00:
            self._high = code
        elif 0xDC00 <= code < 0xE000:
            if self._high:
                self._write(chr(0x10000 + ((self._high - 0xD800) << 10) + (code - 0xDC00)))
            self._high = 0
        else:
            self._write(chr(code))
        self._skip = self._group.fallback

    def _take(self) -> str:
        self._decode()
        text = "".join(self._text)
        self._text.clear()
        return "\n".join(line for part in text.split("\n") if (line := clean(part)))

    # Structure

    def elements(self) -> Iterator[Element]:
        optional = False
        for token in _TOKEN.finditer(self._data):
            word, number, code, symbol, brace, text = token.groups()
            if brace:
                yield from self._brace(brace)
            elif word:
                yield from self._control(word, int(number) if number else None, optional)
            elif code:
                self._bytes(bytes((int(code, 16),)))
            elif text:
                self._plain(text)
            elif symbol and symbol != b"*":
                self._write(_SYMBOLS.get(symbol, symbol.decode("latin-1")))
            optional = symbol == b"*"
        yield from self._paragraph()
        yield from self._end_table()

    def _brace(self, brace: bytes) -> Iterator[Element]:
        self._decode()
        self._skip = 0
        if brace == b"{":
            if len(self._stack) >= _MAX_DEPTH:
                raise ExtractionFailed(Reason.DAMAGED)
            self._stack.append(self._group)
        elif self._stack:
            ended, outer = self._group, self._stack.pop()
            if ended.apart and not outer.apart:
                yield from self._paragraph()
                self._text, self._interrupted = self._interrupted, []
            self._group = outer

    def _plain(self, text: bytes) -> None:
        if self._group.table == b"stylesheet":
            if found := _HEADING.match(text.strip()):
                self._headings[self._number] = max(1, int(found.group(1)))
        else:
            self._bytes(text)

    def _control(self, word: bytes, number: int | None, optional: bool) -> Iterator[Element]:
        if (optional and word not in _SEEN_THOUGH_OPTIONAL) or word in _UNSEEN:
            self._group = replace(self._group, unseen=True)
            self._listed |= word in (b"listtext", b"pntext")
        elif word in (b"fonttbl", b"stylesheet"):
            self._group = replace(self._group, unseen=True, table=word)
        elif word in (b"f", b"s", b"fcharset", b"ansicpg", b"cpg", b"uc", b"u", b"htmlrtf", b"plain"):
            self._setting(word, number)
        elif word in _CHARACTERS:
            self._write(_CHARACTERS[word])
        elif not self._group.unseen:
            yield from self._layout(word, number)

    def _setting(self, word: bytes, number: int | None) -> None:
        value = number or 0
        if word == b"u":
            self._unicode(value)
        elif word == b"uc":
            self._group = replace(self._group, fallback=max(0, min(value, 16)))
        elif word == b"htmlrtf":  # the RTF side of a mail that was HTML
            self._group = replace(self._group, unseen=number != 0)
        elif word == b"fcharset":
            self._fonts[self._number] = _CHARSETS.get(value, self._default)
        elif word in (b"ansicpg", b"cpg"):
            self._code_page(value)
        elif self._group.table:
            self._number = value
        elif word == b"f":
            self._switch(self._fonts.get(value, self._default))
        elif word == b"s":
            self._level = self._headings.get(value)

    def _code_page(self, number: int) -> None:
        try:
            "".encode(f"cp{number}")
        except LookupError:
            return
        if self._group.table:
            self._fonts[self._number] = f"cp{number}"
        else:
            self._default = f"cp{number}"
            self._switch(self._default)

    def _switch(self, encoding: str) -> None:
        self._decode()
        self._group = replace(self._group, encoding=encoding)

    def _layout(self, word: bytes, number: int | None) -> Iterator[Element]:
        if word in (b"par", b"page", b"sect"):
            if self._in_table:
                self._write(" ")
            else:
                yield from self._paragraph()
        elif word == b"cell":
            self._cells.append(self._take())
        elif word == b"row":
            self._rows.append(self._cells)
            self._cells = []
        elif word in (b"footnote", *_EDGES):
            self._decode()
            self._text, self._interrupted = [], self._text
            self._group = replace(self._group, apart=True, edge=_EDGES.get(word))
        else:
            self._format(word, number)

    def _format(self, word: bytes, number: int | None) -> None:
        if word == b"pard":
            self._in_table = self._listed = False
            self._level = None
        elif word == b"intbl":
            self._in_table = True
        elif word == b"outlinelevel" and number is not None:
            self._level = min(9, number + 1) if number < 9 else None
        elif word in (b"ls", b"pnlvlblt", b"pnlvlbody"):
            self._listed = True

    def _paragraph(self) -> Iterator[Element]:
        text = self._take()
        if not text:
            return
        yield from self._end_table()
        if self._group.edge is not None:
            yield Element(self._group.edge, text)
        elif self._level is not None and len(text) <= HEADING_MAX_CHARS:
            yield Element(Category.TITLE, text, level=self._level)
        else:
            yield Element(Category.LIST_ITEM if self._listed else Category.NARRATIVE_TEXT, text)

    def _end_table(self) -> Iterator[Element]:
        rows, self._rows = self._rows, []
        if text := table_text(rows):
            yield Element(Category.TABLE, text)


def elements_of(data: bytes) -> list[Element]:
    """Raises ExtractionFailed."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise ExtractionFailed(Reason.DAMAGED)
    return list(bounded(_Reader(data).elements()))


def read(file: BinaryIO, scope: Scope) -> Content:
    return Content([elements_of(file.read())])
