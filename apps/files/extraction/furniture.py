"""Running headers, footers and page numbers: lines at a page's edges that its neighbours have in the same place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from apps.files.extraction.types import FURNITURE, Category, Element

TOP, BOTTOM = 0.12, 0.88
_DIGITS = re.compile(r"\d+")
_ROMAN = re.compile(r"^[ivxlc]+$")
_NUMBER_ONLY = re.compile(
    r"^(?:page|seite|p\.)?\s*[-–—(\[]?\s*(?:\d{1,5}|[ivxlc]{1,7})\s*[)\]–—-]?(?:\s*(?:of|/|von)\s*\d+)?$", re.I
)

Mark = tuple[str, int]


def _mark(element: Element) -> Mark | None:
    """What to compare with other pages: the text with its numbers blanked, and where it stands."""
    if element.box is None or len(element.text) > 200:
        return None
    _, y0, _, y1 = element.box
    if y1 <= TOP or y0 >= BOTTOM:
        return _DIGITS.sub("#", _ROMAN.sub("#", element.text.lower())), round(y0 * 60)
    return None


def marks(elements: Iterable[Element]) -> frozenset[Mark]:
    return frozenset(mark for element in elements if (mark := _mark(element)) is not None)


def _recurs(mark: Mark, neighbours: Iterable[frozenset[Mark]]) -> bool:
    text, place = mark
    return any((text, near) in page for page in neighbours for near in (place - 1, place, place + 1))


def set_apart(elements: tuple[Element, ...], neighbours: list[frozenset[Mark]]) -> tuple[Element, ...]:
    """`elements` with those that recur on a neighbouring page, or are a page's number, marked as such and out of the
    way of the text: those at the top before it, those at the bottom behind it."""
    boxes = [element.box for element in elements if element.box is not None]
    # Above or below everything else: the number of a footnote is not.
    outermost = {min(boxes, key=lambda box: box[1]), max(boxes, key=lambda box: box[3])} if boxes else set()
    result = []
    for element in elements:
        category = element.category
        mark = _mark(element)
        if mark is not None and element.box is not None:
            if element.box in outermost and _NUMBER_ONLY.match(element.text):
                category = Category.PAGE_NUMBER
            elif _recurs(mark, neighbours):
                category = Category.HEADER if element.box[3] <= TOP else Category.FOOTER
        changed = category is not element.category
        result.append(replace(element, category=category, level=None) if changed else element)
    return tuple(sorted(result, key=_edge))


def _edge(element: Element) -> int:
    if element.category not in FURNITURE or element.box is None:
        return 0
    return -1 if element.box[3] <= TOP else 1 if element.box[1] >= BOTTOM else 0
