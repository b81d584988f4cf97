"""A page that has text of its own beside pictures of text: both are kept, and nothing twice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from apps.files.extraction.assemble import page_text, within_bounds
from apps.files.extraction.types import Box, Category, Element, PageRecord

_HALF_TRUSTED = 0.5
_LEAST_CONFIDENCE = 0.5
_LEAST_CHARACTERS = 8  # letters and digits: fewer are decoration
_DOUBTFUL = re.compile("[\ufffd\ue000-\uf8ff]")


def _covered(box: Box, others: Iterable[Box]) -> bool:
    """Whether the middle of `box` lies in one of the others."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in others)


def combined(own: PageRecord, seen: PageRecord) -> PageRecord:
    """What was recognised, with the page's own text where that can be trusted: it is never less exact.

    Own text has a confidence only where some of it is in doubt. Then what looks sound is kept beside all that was
    recognised, and text that is hardly to be trusted goes.
    """
    kept, added = own.elements, seen.elements
    if own.confidence is None:
        boxes = [element.box for element in own.elements if element.box is not None]
        added = tuple(element for element in added if element.box is None or not _covered(element.box, boxes))
    elif own.confidence < _HALF_TRUSTED:
        return seen
    else:
        kept = tuple(item for item in kept if not _DOUBTFUL.search(item.text) and item.text not in seen.text)
    if not kept:
        return seen
    elements = within_bounds(sorted([*kept, *added], key=_place))
    return replace(seen, elements=elements, text=page_text(elements))


def _place(element: Element) -> float:
    return element.box[1] if element.box is not None else 1.0


def with_picture(own: PageRecord, picture: str, seen: PageRecord) -> PageRecord:
    """The page with what was recognised in a picture on it in that one's place; nothing where it says little, and
    nothing twice."""
    said = page_text(own.elements)
    kept = [element for element in _worth_keeping(seen) if element.text not in said]
    elements: list[Element] = []
    for element in own.elements:
        elements += kept if element.picture == picture else [element]
    within = within_bounds(elements)
    page = replace(own, elements=within, text=page_text(within))
    if not kept:
        return page
    known = [value for value in (own.confidence, seen.confidence) if value is not None]
    return replace(page, source="ocr", confidence=min(known))


def _worth_keeping(seen: PageRecord) -> list[Element]:
    """Elements of a picture, without their boxes, which are on the picture and not on the page."""
    characters = sum(character.isalnum() for character in seen.text)
    if (seen.confidence or 0.0) < _LEAST_CONFIDENCE or characters < _LEAST_CHARACTERS:
        return []
    return [
        Element(
            element.category if element.category is Category.TABLE else Category.IMAGE,
            element.text,
            language=element.language,
        )
        for element in seen.elements
    ]
