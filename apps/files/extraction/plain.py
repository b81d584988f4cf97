"""Text and Markdown: what encoding it is in, and its paragraphs, headings, lists, tables and code."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

from apps.files.extraction.content import Content, Scope
from apps.files.extraction.types import HEADING_MAX_CHARS, Category, Element

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[ \t]*\n+")
_BLANK = re.compile(r"\n[ \t\f]*\n\s*")

_ATX = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"^\s{0,12}(?:[-*+]|\d{1,9}[.)])\s+\S")
_ROW = re.compile(r"^\s{0,3}\|.*\|\s*$")
_RULE = re.compile(r"^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$")
_STARTS = (_ATX, _FENCE, _ITEM, _ROW, _RULE)


def _guess(data: bytes) -> str:
    """UTF-8 when it is that; UTF-16 by where its zero bytes are; else what its letters look like."""
    sample = data[:_SAMPLE]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) > 0.2 * len(sample) / 2:
        return "utf-16-be" if even > odd else "utf-16-le"
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best else "cp1252"


def decode(data: bytes) -> str:
    """The text of a file, whatever its encoding; what cannot be decoded becomes U+FFFD."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, "replace")
    if b"\x00" not in data[:_SAMPLE]:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass
    return data.decode(_guess(data), "replace")


def printable(text: str) -> str:
    """The text with line ends and control characters as the rest of the code expects them."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n\n")
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", text)


def paragraphs(text: str) -> Iterator[Element]:
    for part in _BLANK.split(text):
        if stripped := part.strip("\n").rstrip():
            yield Element(Category.NARRATIVE_TEXT, stripped)


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
            elif _ROW.match(line):
                yield Element(Category.TABLE, self._take_while(_ROW).strip())
            elif _ITEM.match(line):
                yield Element(Category.LIST_ITEM, self._prose())
            else:
                yield self._paragraph()

    def _paragraph(self) -> Element:
        text = self._prose()
        below = _SETEXT.match(self._lines[self._at]) if self._at < len(self._lines) else None
        if below and "\n" not in text:
            self._at += 1
            return Element(Category.TITLE, text, level=1 if below.group(1)[0] == "=" else 2)
        return Element(Category.NARRATIVE_TEXT, text)


def read_text(file: BinaryIO, scope: Scope) -> Content:
    return Content([list(paragraphs(printable(decode(file.read()))))])


def read_markdown(file: BinaryIO, scope: Scope) -> Content:
    elements = list(_Markdown(printable(decode(file.read()))).elements())
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
