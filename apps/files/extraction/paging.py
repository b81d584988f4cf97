"""Pages for kinds that have none: elements cut into pages of about 3,000 characters, at their borders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from apps.files.extraction.assemble import Outline, page_text
from apps.files.extraction.types import Category, Element, PageRecord

PAGE_CHARS = 3_000
_LONGEST = 4_500
_BORDERS = (re.compile(r"\n\s*"), re.compile(r"(?<=[.!?。！？])\s*"), re.compile(r"\s+"))


def _border(text: str, limit: int) -> int:
    """Where to cut `text` so that the first part has at most `limit` characters: a line, a sentence, a word."""
    for border in _BORDERS:
        ends = [found.end() for found in border.finditer(text, limit // 2, limit) if found.end() <= limit]
        if ends:
            return ends[-1]
    return limit


def split_text(text: str, limit: int) -> Iterator[str]:
    """Parts of at most `limit` characters that together are the text but for the space between them."""
    return (part for part, _ in split_lines(text, limit))


def split_lines(text: str, limit: int) -> Iterator[tuple[str, slice]]:
    """The parts of `split_text`, and which of the text's lines each has: a line that is cut is in both."""
    line = at = start = 0
    while start < len(text):
        end = start + _border(text[start : start + limit], limit) if len(text) - start > limit else len(text)
        if part := text[start:end].strip():
            begin = text.index(part[0], start)
            first = line + text.count("\n", at, begin)
            line, at = first + part.count("\n"), begin + len(part)
            yield part, slice(first, line + 1)
        start = end


def _pieces(elements: Iterable[Element]) -> Iterator[Element]:
    for element in elements:
        if len(element.text) <= _LONGEST:
            yield element
        else:
            for part, lines in split_lines(element.text, PAGE_CHARS):
                yield replace(element, text=part, rows=element.rows[lines])


def _groups(elements: Iterable[Element]) -> list[list[Element]]:
    """A heading is not left behind at the end of a page."""
    groups: list[list[Element]] = [[]]
    size = 0
    for element in _pieces(elements):
        length = len(element.text) + 2
        if size and size + length > PAGE_CHARS:
            carried: list[Element] = []
            while groups[-1] and groups[-1][-1].category is Category.TITLE:
                carried.insert(0, groups[-1].pop())
            if not groups[-1]:  # nothing but headings: they stay where they are
                groups[-1], carried = carried, []
            groups.append(carried)
            size = sum(len(heading.text) + 2 for heading in carried)
        groups[-1].append(element)
        size += length
    return groups


def cut_pages(*sections: Iterable[Element]) -> list[PageRecord]:
    """Pages in order; each section begins one, so that the third slide is page 3, also where the second is empty."""
    outline = Outline()
    pages = []
    for number, group in enumerate((group for section in sections for group in _groups(section)), start=1):
        kept = tuple(group)
        pages.append(
            PageRecord(
                number=number,
                source="digital",
                text=page_text(kept),
                elements=kept,
                headings=outline.path,
                needs_ocr=any(element.picture for element in kept),
            )
        )
        outline.pass_over(kept)
    return pages
