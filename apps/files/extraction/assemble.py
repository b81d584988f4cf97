"""From blocks to the elements of a page: joined text, the box of each line, the running heading path."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from apps.files.extraction.layout import Block, Line
from apps.files.extraction.types import HEADING_MAX_CHARS, PAGE_MAX_CHARS, Box, Category, Element, Heading, LineBox

_LINEWISE = frozenset({Category.TABLE, Category.CODE_SNIPPET})
_CONTROL = re.compile(
    # Also marks without a width, and those that turn the direction of text: what they show is not what is written.
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
_PRESENTATION = re.compile(r"[\ufb00-\ufdff\ufe70-\ufefc]+")
_SPACES = re.compile(r"[ \t\u00a0\u2000-\u200a\u202f\u3000]+")
_BULLETS = str.maketrans("\uf0b7\uf0a7\uf0d8\uf0fc", "•▪➢✓")  # of Symbol and Wingdings, where the font is not known
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without control characters, with ligatures and presentation forms as the letters they stand for."""
    if text.isascii():
        if text.isprintable() and "  " not in text:
            return text.strip()
    else:
        text = legible(text)
    return _SPACES.sub(" ", _CONTROL.sub("", text)).strip()


def legible(text: str) -> str:
    """Letters as they are searched for: composed, ligatures and presentation forms as what they stand for."""
    text = _PRESENTATION.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    return unicodedata.normalize("NFC", _SURROGATE.sub("\ufffd", text.translate(_BULLETS)))


def _separator(previous: str, hyphenated: bool, following: str) -> tuple[str, str]:
    """`previous` as it should end, and what stands between it and the next line."""
    if not hyphenated:
        unspaced = ord(previous[-1]) >= 0x2E80 and ord(following[0]) >= 0x2E80  # CJK wraps without a space
        return previous, "" if unspaced else " "
    stem = previous.rstrip("-\u2010")
    word = stem.rsplit(" ", 1)[-1]
    # A hyphen that was there before the line broke ("Lucene-\nBM25", "state-of-the-\nart") is kept.
    kept = "-" in word or not following[0].islower() or not word.isalpha()
    return (stem + "-" if kept else stem), ""


def join_lines(lines: Sequence[Line], *, linewise: bool = False) -> tuple[str, list[LineBox]]:
    """The lines as one text, with where each line's characters and box are."""
    text = ""
    boxes: list[LineBox] = []
    hyphenated = False
    for line in lines:
        if not line.text:
            continue
        if text and linewise:
            text += "\n"
        elif text:
            text, joint = _separator(text, hyphenated, line.text)
            if boxes and boxes[-1][1] > len(text):
                boxes[-1] = (boxes[-1][0], len(text), *boxes[-1][2:])
            text += joint
        boxes.append((len(text), len(text) + len(line.text), *line.box))
        text += line.text
        hyphenated = line.hyphenated
    return text, boxes


def union(boxes: Iterable[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def element_of(block: Block) -> Element | None:
    text, lines = join_lines(block.lines, linewise=block.category in _LINEWISE)
    if not text:
        return None
    box = union(line.box for line in block.lines if line.text)
    return Element(category=block.category, text=text, box=box, level=block.level, lines=tuple(lines))


def within_bounds(elements: Iterable[Element]) -> tuple[Element, ...]:
    """As many of the elements as fit a page's bound on characters."""
    kept: list[Element] = []
    room = PAGE_MAX_CHARS
    for element in elements:
        room -= len(element.text) + 2
        if room < 0:
            break
        kept.append(element)
    return tuple(kept)


def page_text(elements: Iterable[Element]) -> str:
    return "\n\n".join(element.text for element in elements if element.text)


class Outline:
    """The heading path while pages are read in order."""

    def __init__(self, path: Iterable[Heading] = ()) -> None:
        self._path = list(path)

    @property
    def path(self) -> tuple[Heading, ...]:
        return tuple(self._path)

    def pass_over(self, elements: Iterable[Element]) -> None:
        for element in elements:
            if element.category is Category.TITLE:
                self._path = with_heading(self._path, element.level or 1, element.text)


def with_heading(path: Iterable[Heading], level: int, text: str) -> list[Heading]:
    """`path` after a heading of `level`: deeper and equal ones end."""
    return [heading for heading in path if heading.level < level] + [Heading(level, text[:HEADING_MAX_CHARS])]
