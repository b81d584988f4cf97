"""Cutting a page into passages of about 400 tokens, at the borders of its elements, without overlap. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.files.extraction.assemble import with_heading
from apps.files.extraction.paging import split_lines
from apps.files.extraction.types import FURNITURE, Box, Category, Heading, Locator
from apps.files.indexing.tokens import CHARS_PER_TOKEN, estimate_tokens

TARGET_TOKENS = 400
MAX_TOKENS = 520
"""An element is taken whole up to here; a longer one is cut at its lines or sentences."""
SECTION_MIN_TOKENS = 150
"""A heading begins a new passage once the present one is this long; shorter sections share one."""
MAX_BOXES = 200
MAX_HEADING_CHARS = 300
_SEPARATOR, _ARROW = "\n\n", " > "
_FURNITURE = frozenset(category.value for category in FURNITURE)


@dataclass(frozen=True, slots=True)
class Draft:
    """A passage before it is stored. `heading` is the path it stands under, its own first heading included."""

    heading: str
    text: str
    boxes: tuple[Box, ...]
    token_count: int
    locator: Locator | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """An element, or a part of a long one."""

    text: str
    boxes: tuple[Box, ...]
    tokens: int
    title_level: int | None
    locator: Locator | None = None


def _line_boxes(element: Mapping[str, Any]) -> tuple[Box, ...]:
    lines = element.get("lines") or ()
    if lines:
        return tuple((line[2], line[3], line[4], line[5]) for line in lines)
    box = element.get("box")
    return ((box[0], box[1], box[2], box[3]),) if box else ()


def _lines_of(element: Mapping[str, Any], text: str) -> Iterator[_Piece]:
    """Parts of a long element along its lines. What stands outside any line goes with the one before."""
    lines = element["lines"]
    ends = [line[0] for line in lines[1:]] + [len(text)]
    first = start = 0
    for index, end in enumerate(ends):
        last = index == len(ends) - 1
        following = ends[index + 1] if not last else end
        if last or estimate_tokens(text[start:following]) > TARGET_TOKENS:
            part = text[start:end].strip()
            boxes = tuple((line[2], line[3], line[4], line[5]) for line in lines[first : index + 1])
            if part:
                yield from _bounded(part, boxes, {})
            first, start = index + 1, end


def _bounded(text: str, boxes: tuple[Box, ...], element: Mapping[str, Any]) -> Iterator[_Piece]:
    """`text` is the element's; without one, that of lines that say where they are by their boxes."""
    rows = element.get("rows", ())
    if estimate_tokens(text) <= MAX_TOKENS:
        yield _Piece(text, boxes, estimate_tokens(text), None, _locator(element, rows))
        return
    # Dense scripts have more tokens a character: the limit follows the text's own density.
    limit = max(200, int(len(text) * TARGET_TOKENS / estimate_tokens(text)))
    for part, lines in split_lines(text, min(limit, int(TARGET_TOKENS * CHARS_PER_TOKEN))):
        yield _Piece(part, boxes, estimate_tokens(part), None, _locator(element, rows[lines]))


def _locator(element: Mapping[str, Any], rows: Sequence[int]) -> Locator | None:
    """Of a part of the element that has these rows."""
    known = element.get("locator")
    if not known and not rows:
        return None
    return replace(Locator.of_json(known or {}), rows=(rows[0], rows[-1]) if rows else None)


def _together(locators: Iterable[Locator | None]) -> Locator | None:
    """Of pieces that follow each other: the most exact, with the rows of all that are of its sheet."""
    known = [locator for locator in locators if locator is not None]
    if not known:
        return None
    best = max(known, key=lambda one: (one.rows is not None, one.sheet != "", len(one.part)))
    alike = [one.rows for one in known if one.rows and (one.part, one.sheet) == (best.part, best.sheet)]
    rows = (min(first for first, _ in alike), max(last for _, last in alike)) if alike else None
    return replace(best, rows=rows)


def _pieces(elements: Iterable[Mapping[str, Any]]) -> Iterator[_Piece]:
    for element in elements:
        category, text = element["category"], element["text"]
        if category in _FURNITURE or not text.strip():
            continue
        if category == Category.TITLE and estimate_tokens(text) <= MAX_TOKENS:
            level = element.get("level") or 1
            yield _Piece(text, _line_boxes(element), estimate_tokens(text), level, _locator(element, ()))
        elif estimate_tokens(text) > MAX_TOKENS and element.get("lines"):
            yield from _lines_of(element, text)
        else:
            yield from _bounded(text, _line_boxes(element), element)


def _fits(group: Sequence[_Piece], piece: _Piece) -> bool:
    if all(item.title_level is not None for item in group):
        return True  # a heading goes with what it heads, whatever its size
    size = sum(item.tokens for item in group)
    if piece.title_level is not None and size >= SECTION_MIN_TOKENS:
        return False
    return size + piece.tokens <= TARGET_TOKENS


def _groups(pieces: Iterable[_Piece]) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    for piece in pieces:
        if group and not _fits(group, piece):
            carried: list[_Piece] = []
            while len(group) > 1 and group[-1].title_level is not None:
                carried.insert(0, group.pop())
            yield group
            group = carried
        group.append(piece)
    if group:
        yield group


def _path(headings: Iterable[Heading]) -> str:
    return _ARROW.join(re.sub(r"\s+", " ", heading.text) for heading in headings)[:MAX_HEADING_CHARS]


def with_context(heading: str, text: str) -> str:
    """What is searched of a passage: the headings above it, then its text. Its own heading is not said twice."""
    above, _, own = heading.rpartition(_ARROW)
    if own and re.sub(r"\s+", " ", text[: 2 * len(own)]).startswith(own):
        heading = above
    return f"{heading}\n{text}" if heading else text


def cut(elements: Iterable[Mapping[str, Any]], headings: Iterable[Sequence[Any]]) -> list[Draft]:
    """Passages of a page from its stored elements; `headings` is the path in force where it begins."""
    path = [Heading(int(level), str(text)) for level, text in headings]
    drafts: list[Draft] = []
    for group in _groups(_pieces(elements)):
        heading = ""
        for index, piece in enumerate(group):
            if piece.title_level is not None:
                path = with_heading(path, piece.title_level, piece.text)
            if index == 0:
                heading = _path(path)
        text = _SEPARATOR.join(piece.text for piece in group)
        boxes = tuple(box for piece in group for box in piece.boxes)[:MAX_BOXES]
        locator = _together(piece.locator for piece in group)
        drafts.append(Draft(heading, text, boxes, sum(piece.tokens for piece in group), locator))
    return drafts
