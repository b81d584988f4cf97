"""Rich Text Format: paragraphs, headings, lists and tables, in whatever code pages its fonts switch between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from apps.files.extraction.assemble import clean
from apps.files.extraction.content import Content, Scope, bounded, table_text
from apps.files.extraction.readers import native
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed, Notice, Reason

_TOKEN = re.compile(rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|([^\\{}\r\n]+)")
_CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_UNSEEN = frozenset(
    b"""
    colortbl info pict fldinst sn sv xe tc themedata colorschememapping datastore latentstyles
    listtable listoverridetable rsidtbl generator filetbl revtbl atnid atnauthor atndate bkmkstart bkmkend upr
    shprslt nonshppict ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn private xmlnstbl mmathPr
    """.split()
)
_SEEN_THOUGH_OPTIONAL = frozenset((b"shpinst", b"shptxt", b"footnote", b"annotation", b"do", b"ud"))
_APART = (b"footnote", b"annotation", b"dptxbxtext", b"shptxt")
_PAGES = {b"mac": 10000, b"pc": 437, b"pca": 850}
_ALIASES = {10000: "mac_roman", 65001: "utf-8"}
_CHARACTERS = {
    b"tab": " ", b"line": "\n", b"emdash": "—", b"endash": "–", b"lquote": "‘", b"rquote": "’", b"ldblquote": "“",
    b"rdblquote": "”", b"bullet": "•", b"emspace": " ", b"enspace": " ", b"nestcell": " ", b"nestrow": " ",
}  # fmt: skip
_SYMBOLS = {b"~": " ", b"_": "-", b"-": "", b"\n": "\n", b"\r": "\n"}
_NO_DIGIT = re.compile(rb"[^0-9A-Fa-f]+")
_HEADING = re.compile(rb"heading (\d)", re.IGNORECASE)
_MAX_DEPTH = 500
_SETTINGS = frozenset(b"f s fcharset ansicpg cpg uc u htmlrtf deff".split())
_EDGES = {
    word + side: category
    for word, category in ((b"header", Category.HEADER), (b"footer", Category.FOOTER))
    for side in (b"", b"l", b"r", b"f")
}


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds until the group ends."""

    unseen: bool = False
    hidden: bool = False  # formatted as hidden, or deleted with changes tracked
    encoding: str = "cp1252"
    fallback: int = 1  # how many characters after \\u stand for the same one
    table: bytes = b""  # fonttbl or stylesheet
    edge: Category | None = None
    apart: int = 0  # how many texts are interrupted by this one: by a note, box, header or footer
    number: bool = False  # what stands before an item of a list
    packed: bool = False  # the bytes of an embedded object in hexadecimal

    @property
    def silent(self) -> bool:
        return self.unseen or self.hidden


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """The paragraph that a note or header stands in."""

    text: list[str]
    in_table: bool
    listed: bool
    level: int | None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fonts: dict[int, str] = {}
        self._headings: dict[int, int] = {}
        self._default = "cp1252"
        self._plain_font = -1  # what text is set in where nothing else is said
        self._group = _Group()
        self._stack: list[_Group] = []
        self._interrupted: list[_Interrupted] = []
        self._after: list[Element] = []  # what interrupted a table
        self._packed = bytearray()
        self.objects: list[bytes] = []
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
        if not self._group.silent:
            self._decode()
            self._text.append(text)

    def _bytes(self, data: bytes) -> None:
        taken = min(self._skip, len(data))
        self._skip -= taken
        if not self._group.silent:
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
        optional, at = False, 0
        while token := _TOKEN.search(self._data, at):
            word, number, code, symbol, brace, text = token.groups()
            at = token.end() + (max(0, int(number or 0)) if word == b"bin" else 0)
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
            if ended.packed and not outer.packed:
                self.objects.append(_unpacked(self._packed))
                self._packed.clear()
            if ended.apart > outer.apart:
                yield from self._resume(ended)
            self._group = outer
            if ended.table == b"fonttbl" and not outer.table:
                self._switch(self._fonts.get(self._plain_font, self._default))

    def _interrupt(self, **changes: Any) -> None:
        """What follows, to the end of the group, stands apart from the text around it."""
        self._decode()
        self._interrupted.append(_Interrupted(self._text, self._in_table, self._listed, self._level))
        self._text, self._in_table, self._listed, self._level = [], False, False, None
        self._group = replace(self._group, apart=len(self._interrupted), **changes)

    def _resume(self, ended: _Group) -> Iterator[Element]:
        number = self._take() if ended.number else ""
        yield from self._paragraph()
        before = self._interrupted.pop()
        self._text, self._in_table, self._listed, self._level = (
            before.text,
            before.in_table,
            before.listed or ended.number,
            before.level,
        )
        if not self._in_table and any(letter.isalnum() for letter in number):
            self._text.append(f"{number} ")

    def _plain(self, text: bytes) -> None:
        if self._group.table == b"stylesheet":
            if found := _HEADING.match(text.strip()):
                self._headings[self._number] = max(1, int(found.group(1)))
        elif self._group.packed:
            self._packed += text
        else:
            self._bytes(text)

    def _control(self, word: bytes, number: int | None, optional: bool) -> Iterator[Element]:
        if (optional and word not in _SEEN_THOUGH_OPTIONAL) or word in _UNSEEN:
            self._group = replace(self._group, unseen=True, packed=word == b"objdata" or self._group.packed)
        elif word in (b"listtext", b"pntext"):
            self._interrupt(number=True)
        elif word in (b"fonttbl", b"stylesheet"):
            self._group = replace(self._group, unseen=True, table=word)
        elif word == b"ud":  # the same again in Unicode
            self._group = replace(self._group, unseen=False)
        elif word in _SETTINGS or word in _PAGES:
            self._setting(word, number)
        elif word in (b"plain", b"v", b"deleted"):
            self._appearance(word, number)
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
        elif word in (b"ansicpg", b"cpg", *_PAGES):
            self._code_page(_PAGES.get(word, value))
        elif word == b"deff":
            self._plain_font = value
        elif self._group.table:
            self._number = value
        elif word == b"f":
            self._switch(self._fonts.get(value, self._default))
        elif word == b"s":
            self._level = self._headings.get(value)

    def _appearance(self, word: bytes, number: int | None) -> None:
        self._decode()
        self._group = replace(self._group, hidden=word != b"plain" and number != 0)
        if word == b"plain":
            self._switch(self._fonts.get(self._plain_font, self._default))

    def _code_page(self, number: int) -> None:
        name = _ALIASES.get(number, f"cp{number}")
        try:
            "".encode(name)
        except LookupError:
            return
        if self._group.table:
            self._fonts[self._number] = name
        else:
            self._default = name
            self._switch(self._default)

    def _switch(self, encoding: str) -> None:
        self._decode()
        self._group = replace(self._group, encoding=encoding)

    def _layout(self, word: bytes, number: int | None) -> Iterator[Element]:
        if word in (b"par", b"page", b"sect", b"column"):
            if self._in_table:
                self._write(" ")
            else:
                yield from self._paragraph()
        elif word == b"cell":
            self._cells.append(self._take())
        elif word == b"row":
            self._rows.append(self._cells)
            self._cells = []
        elif word in _APART or word in _EDGES:
            self._interrupt(edge=_EDGES.get(word, self._group.edge))
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
        if self._group.apart and (self._rows or self._cells):
            self._after.append(self._element(text))
            return
        yield from self._end_table()
        yield self._element(text)

    def _element(self, text: str) -> Element:
        if self._group.edge is not None:
            return Element(self._group.edge, text)
        if self._level is not None and len(text) <= HEADING_MAX_CHARS:
            return Element(Category.TITLE, text, level=self._level)
        return Element(Category.LIST_ITEM if self._listed else Category.NARRATIVE_TEXT, text)

    def _end_table(self) -> Iterator[Element]:
        rows, self._rows = self._rows, []
        after, self._after = self._after, []
        if text := table_text(rows):
            yield Element(Category.TABLE, text)
        yield from after


def _unpacked(digits: bytes | bytearray) -> bytes:
    whole = _NO_DIGIT.sub(b"", digits)
    return bytes.fromhex(whole[: len(whole) // 2 * 2].decode("ascii"))


def _embedded(data: bytes) -> tuple[str, bytes]:
    """Name and bytes of an embedded object ([MS-OLEDS]): its class, two more names, and what that class keeps."""
    at, names = 8, []
    for _ in range(3):
        size = int.from_bytes(data[at : at + 4], "little")
        names.append(clean(data[at + 4 : at + 4 + size].rstrip(b"\0").decode("latin-1")))
        at += 4 + size
    size = int.from_bytes(data[at : at + 4], "little")
    kept = data[at + 4 : at + 4 + size]
    if names[0] == "Package":
        return native(bytes(4) + kept)
    return names[0], kept


def _read(data: bytes) -> tuple[list[Element], list[bytes]]:
    if not data.lstrip().startswith(b"{\\rtf"):
        raise ExtractionFailed(Reason.DAMAGED)
    reader = _Reader(data)
    return list(bounded(reader.elements())), reader.objects


def elements_of(data: bytes) -> list[Element]:
    """The text, without embedded objects. Raises ExtractionFailed."""
    return _read(data)[0]


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    elements, objects = _read(file.read())
    sections = [elements]
    for number, data in enumerate(objects, start=1):
        name, kept = _embedded(data)
        if not kept:
            scope.notice(Notice.PARTS_UNREAD)
            continue
        scope.spend(len(kept))
        sections += scope.inside(name or f"object {number}", lambda kept=kept: kept)  # type: ignore[misc]
    return Content(sections)
