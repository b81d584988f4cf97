"""Text and Markdown: what encoding it is in, and its paragraphs, headings, lists, tables and code."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from apps.files.extraction import charsets
from apps.files.extraction.assemble import legible
from apps.files.extraction.content import Content, Scope, table_text
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element, ExtractionFailed

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_UNSEEN = re.compile("[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n+")
_BLANK = re.compile(r"\n[ \t\f]*\n\s*")

_ATX = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"^\s{0,12}(?:[-*+]|\d{1,9}[.)])\s+\S")
_ROW = re.compile(r"^\s{0,3}\|.*\|\s*$")
_RULE = re.compile(r"^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
_TABLE_RULE = re.compile(r"^ {0,3}\|?[\s:|-]*-[\s:|-]*$")
_BAR, _ESCAPED_BAR = re.compile(r"(?<!\\)\|"), re.compile(r"\\\|")
_DASHES = re.compile(r"^\s*:?-+:?\s*$")
_QUOTED = re.compile(r"^ {0,3}(?:> ?)+")
_HTML = re.compile(r"^<(?:[a-z][a-z0-9]*(?:\s[^<>]*)?|/[a-z][a-z0-9]*\s*|!--.*)>", re.IGNORECASE)
_STARTS = (_ATX, _FENCE, _ITEM, _ROW, _RULE)


def decode(data: bytes) -> str:
    """The text of a file, whatever its encoding; what cannot be decoded becomes U+FFFD."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if not charsets.is_coded(data):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return data.decode(charsets.guess(data), "replace")


def printable(text: str) -> str:
    """The text with line ends and control characters as the rest of the code expects them."""
    return visible(_LINE_ENDS.sub("\n", text).replace("\x0c", "\n\n"))


def visible(text: str) -> str:
    """The text without control characters; line ends stay as they are."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", text)


def prose(text: str) -> str:
    """Printable text that is meant to be read: letters composed, without marks that have no width."""
    text = printable(text)
    return text if text.isascii() else _UNSEEN.sub("", legible(text))


def paragraphs(text: str) -> Iterator[Element]:
    for part in _BLANK.split(text):
        if stripped := part.strip("\n").rstrip():
            yield Element(Category.NARRATIVE_TEXT, stripped)


def _table(lines: Iterable[str]) -> str:
    rows = ([_ESCAPED_BAR.sub("|", cell) for cell in _BAR.split(line.strip())] for line in lines)
    sides = (row[not row[0] : len(row) - (len(row) > 1 and not row[-1])] for row in rows)
    return table_text(row for row in sides if not all(_DASHES.match(cell) for cell in row))


class _Markdown:
    """Blocks of a Markdown text, line by line. Inline marks are left as they were written."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._at = 0

    def _take_while(self, wanted: re.Pattern[str]) -> str:
        start = self._at
        while self._at < len(self._lines) and wanted.match(self._lines[self._at]):
            self._at += 1
        return "\n".join(self._lines[start : self._at])

    def _code(self, fence: str) -> str:
        start = self._at = self._at + 1
        closing = re.compile(rf"^ {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}\s*$")
        while self._at < len(self._lines) and not closing.match(self._lines[self._at]):
            self._at += 1
        code = "\n".join(self._lines[start : self._at])
        self._at += 1
        return code.strip("\n")

    def _begins_table(self) -> bool:
        """Whether this line is the head of a table without bars at its sides: a rule of as many cells follows."""
        if "|" not in self._lines[self._at] or self._at + 1 >= len(self._lines):
            return False
        rule = self._lines[self._at + 1]
        return bool("|" in rule and _TABLE_RULE.match(rule))

    def _table_lines(self) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and "|" in self._lines[self._at]:
            self._at += 1
        return self._lines[start : self._at]

    def _starts_other(self, line: str) -> bool:
        return not line.strip() or any(mark.match(line) for mark in _STARTS)

    def _prose(self) -> str:
        start = self._at
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _SETEXT.match(line) or self._starts_other(line):
                break
            self._at += 1
        return "\n".join(self._lines[start : self._at]).strip()

    def _front_matter(self) -> Iterator[Element]:
        if self._lines and self._lines[0].strip() == "---":
            for end in range(1, min(len(self._lines), 200)):
                if self._lines[end].strip() in ("---", "..."):
                    self._at = end + 1
                    if text := "\n".join(self._lines[1:end]).strip():
                        yield Element(Category.UNCATEGORIZED_TEXT, text)
                    return

    def elements(self) -> Iterator[Element]:
        yield from self._front_matter()
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip() or _RULE.match(line):
                self._at += 1
            elif heading := _ATX.match(line):
                self._at += 1
                if heading.group(2):
                    yield Element(Category.TITLE, heading.group(2), level=len(heading.group(1)))
            elif fence := _FENCE.match(line):
                if code := self._code(fence.group(1)):
                    yield Element(Category.CODE_SNIPPET, code)
            elif _ROW.match(line) or self._begins_table():
                yield Element(Category.TABLE, _table(self._table_lines()))
            elif _ITEM.match(line):
                yield Element(Category.LIST_ITEM, self._prose())
            else:
                yield from self._paragraph()

    def _paragraph(self) -> Iterator[Element]:
        text = "\n".join(_QUOTED.sub("", line) for line in self._prose().split("\n"))
        below = _SETEXT.match(self._lines[self._at]) if self._at < len(self._lines) else None
        if below and "\n" not in text:
            self._at += 1
            yield Element(Category.TITLE, text, level=1 if below.group(1)[0] == "=" else 2)
        elif _HTML.match(text):
            yield from _of_html(text)
        elif text:
            yield Element(Category.NARRATIVE_TEXT, text)


def _of_html(text: str) -> list[Element]:
    from apps.files.extraction.markup import elements_of  # late: that module reads plain text too

    try:
        return elements_of(text)[0]
    except ExtractionFailed:
        return []


def read_text(file: BinaryIO, scope: Scope) -> Content:
    return Content([list(paragraphs(prose(decode(file.read()))))])


def read_markdown(file: BinaryIO, scope: Scope) -> Content:
    elements = list(_Markdown(prose(decode(file.read()))).elements())
    title = next((item.text for item in elements if item.category is Category.TITLE and item.level == 1), "")
    return Content([elements], title[:HEADING_MAX_CHARS])


def read_code(file: BinaryIO, scope: Scope) -> Content:
    """Source code and data in text form: stretches between blank lines, as they are written."""
    text = printable(decode(file.read()))
    return Content(
        [
            [
                Element(Category.CODE_SNIPPET, part.strip("\n").rstrip())
                for part in _BLANK_LINES.split(text)
                if part.strip()
            ]
        ]
    )
