"""From the lines of a page to blocks in reading order: columns, rows, paragraphs, headings, lists, tables.

Pure geometry on points in the reading frame (x to the right, y down). Knows nothing of PDF; what a block
becomes on the wire is `assemble`'s part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from apps.files.extraction.types import Box, Category

_BINS = 240
_LIST_MARK = re.compile(r"^(?:[•◦▪‣●○■□–\-*·]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)])\s+\S")
_NUMBERED = re.compile(r"^(?:\d{1,2}(?:\.\d{1,2}){0,4}\.?|[A-Z]\.|[IVX]{1,5}\.)\s+\S")
_CAPTION = re.compile(r"^(?:fig(?:ure)?|table|chart|exhibit|abb(?:ildung)?|tabelle|tableau)\.?\s*\d+", re.IGNORECASE)
_ENDS_SENTENCE = (".", "!", "?", ":", "。", "！", "？", ";")


@dataclass(frozen=True, slots=True)
class Piece:
    """A cell of a line: where it begins and ends along it, and its text."""

    x0: float
    x1: float
    text: str


@dataclass(slots=True)
class Line:
    """A stretch of text on one baseline. `box` is where it is displayed; x0..y1 are in the reading frame."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    box: Box
    size: float
    bold: bool = False
    mono: bool = False
    hyphenated: bool = False
    cells: int = 1
    pieces: tuple[Piece, ...] = ()

    @property
    def height(self) -> float:
        return self.y1 - self.y0


@dataclass(slots=True)
class Block:
    lines: list[Line] = field(default_factory=list)
    category: Category = Category.NARRATIVE_TEXT
    level: int | None = None


def central(values: Sequence[float]) -> float:
    """The median, the higher of two. (`statistics` takes longer to import than a page to read.)"""
    return sorted(values)[len(values) // 2]


def union(first: Box, second: Box) -> Box:
    return (
        min(first[0], second[0]),
        min(first[1], second[1]),
        max(first[2], second[2]),
        max(first[3], second[3]),
    )


def _widest_strip(lines: list[Line], left: float, step: float) -> tuple[int, int] | None:
    """The widest run of bins, away from the edges, that hardly any line covers."""
    edges = [0] * (_BINS + 1)
    for line in lines:
        edges[max(0, int((line.x0 - left) / step))] += 1
        edges[min(_BINS, int((line.x1 - left) / step) + 1)] -= 1
    allowed = 0.12 * len(lines)
    best: tuple[int, int] | None = None
    covered, start = 0, None
    for index in range(_BINS + 1):
        covered += edges[index]
        low = covered <= allowed and 0.15 * _BINS < index < 0.85 * _BINS
        if low and start is None:
            start = index
        elif not low and start is not None:
            if best is None or index - start > best[1] - best[0]:
                best = (start, index)
            start = None
    return best


def _gutter(lines: list[Line]) -> float | None:
    """The x of an empty vertical strip between two columns of prose, or None.

    A strip counts when hardly any line crosses it and both sides hold several lines of several words: the
    gaps of a table have few words beside them.
    """
    if len(lines) < 8:
        return None
    left, right = min(line.x0 for line in lines), max(line.x1 for line in lines)
    if right - left < 1.0:
        return None
    step = (right - left) / _BINS
    best = _widest_strip(lines, left, step)
    if best is None or (best[1] - best[0]) * step < 0.6 * central([line.height for line in lines]):
        return None
    middle = left + (best[0] + best[1]) / 2 * step
    sides = ([line for line in lines if line.x1 <= middle], [line for line in lines if line.x0 >= middle])
    for side in sides:
        if len(side) < 4 or sum(line.text.count(" ") + 1 for line in side) < 3.5 * len(side):
            return None
    top = max(min(line.y0 for line in side) for side in sides)
    bottom = min(max(line.y1 for line in side) for side in sides)
    return middle if bottom > top else None


def _rows(lines: list[Line]) -> list[Line]:
    """Lines on one baseline joined from left to right, then all from top to bottom."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda item: (item.y0 + item.y1, item.x0)):
        if rows:
            last = rows[-1]
            anchor = max(last, key=lambda item: item.height)
            overlap = min(anchor.y1, line.y1) - max(anchor.y0, line.y0)
            slack = 0.4 * min(anchor.height, line.height)
            clear = all(line.x0 >= other.x1 - slack or line.x1 <= other.x0 + slack for other in last)
            if clear and overlap > 0.55 * min(anchor.height, line.height):
                last.append(line)
                continue
        rows.append([line])
    return [_join_row(sorted(row, key=lambda item: item.x0)) if len(row) > 1 else row[0] for row in rows]


def _join_row(row: list[Line]) -> Line:
    anchor = max(row, key=lambda item: len(item.text))
    joined = row[0]
    pieces = [Piece(joined.x0, joined.x1, joined.text)]
    for line in row[1:]:
        gap = line.x0 - joined.x1
        wide = gap > 1.2 * anchor.size and not anchor.mono
        joint = " | " if wide else " " if gap > 0.12 * anchor.size else ""
        before = pieces[-1] if wide else pieces.pop()
        pieces.append(
            Piece(line.x0, line.x1, line.text) if wide else Piece(before.x0, line.x1, before.text + joint + line.text)
        )
        joined = Line(
            text=joined.text + joint + line.text,
            x0=joined.x0,
            y0=min(joined.y0, line.y0),
            x1=max(joined.x1, line.x1),
            y1=max(joined.y1, line.y1),
            box=union(joined.box, line.box),
            size=anchor.size,
            bold=joined.bold and line.bold,
            mono=anchor.mono,
            hyphenated=line.hyphenated,
            cells=joined.cells + (1 if wide else 0),
        )
    joined.pieces = tuple(pieces)
    return joined


def in_reading_order(lines: list[Line], depth: int = 0) -> list[list[Line]]:
    """Columns one after the other, each as rows from top to bottom. A line across columns ends a band of them."""
    middle = _gutter(lines) if depth < 4 else None
    if middle is None:
        return [_rows(lines)] if lines else []
    spanning = sorted((line for line in lines if line.x0 < middle < line.x1), key=lambda line: line.y0)
    rest = [line for line in lines if not line.x0 < middle < line.x1]
    columns: list[list[Line]] = []
    for index in range(len(spanning) + 1):
        floor = (spanning[index].y0 + spanning[index].y1) / 2 if index < len(spanning) else float("inf")
        band = [line for line in rest if (line.y0 + line.y1) / 2 < floor]
        rest = [line for line in rest if (line.y0 + line.y1) / 2 >= floor]
        for side in ([line for line in band if line.x1 <= middle], [line for line in band if line.x0 >= middle]):
            columns += in_reading_order(side, depth + 1)
        if index < len(spanning):
            if columns and index and columns[-1][-1] is spanning[index - 1]:
                columns[-1].append(spanning[index])
            else:
                columns.append([spanning[index]])
    return columns


def body_size(lines: list[Line]) -> float:
    """The size most characters are set in."""
    weights: dict[float, int] = {}
    for line in lines:
        size = round(line.size * 2) / 2
        weights[size] = weights.get(size, 0) + len(line.text)
    return max(weights, key=lambda size: weights[size]) if weights else 0.0


def _starts_block(previous: Line, line: Line, leading: float, right_edge: float) -> bool:
    if line.cells > 1 or previous.cells > 1:
        return not (line.cells > 1 and previous.cells > 1)
    if abs(line.size - previous.size) > 0.12 * max(line.size, previous.size) or line.bold != previous.bold:
        return True
    if line.mono != previous.mono:
        return True
    step = line.y1 - previous.y1
    if step > 1.35 * leading or step < -0.5 * line.height:
        return True
    if previous.hyphenated:
        return False
    if _LIST_MARK.match(line.text):
        return True
    indented = line.x0 - previous.x0 > 0.8 * line.size
    ended = previous.text.endswith(_ENDS_SENTENCE)
    if indented and ended:
        return True
    return ended and previous.x1 < right_edge - 4 * line.size and not _LIST_MARK.match(previous.text)


def _split_column(column: list[Line]) -> list[Block]:
    steps = [after.y1 - before.y1 for before, after in pairwise(column)]
    regular = [step for step in steps if step > 0]
    typical = central([line.height for line in column]) * 1.25
    # The usual distance between baselines; wide ones (paragraph gaps) must not set it.
    leading = min(central(regular), 2.2 * typical) if len(regular) > 2 else 1.3 * typical
    right_edge = max(line.x1 for line in column)
    blocks: list[Block] = []
    for index, line in enumerate(column):
        if index == 0 or _starts_block(column[index - 1], line, leading, right_edge):
            blocks.append(Block())
        blocks[-1].lines.append(line)
    return blocks


def _heading_level(ratio: float) -> int:
    return 1 if ratio >= 1.7 else 2 if ratio >= 1.35 else 3


def _tabular(rows: list[Line]) -> bool:
    return len(rows) >= 3 or (len(rows) == 2 and rows[0].cells == rows[1].cells)


def _reads_as_title(text: str) -> bool:
    return not text.endswith((",", ";")) and not (text.endswith(".") and text[0].islower())


def classify(block: Block, body: float, *, title_ratio: float = 1.15) -> None:
    """Set the block's category, and level if it is a heading, by size against the page's `body` size and by form."""
    lines = block.lines
    first, text = lines[0], " ".join(line.text for line in lines)
    ratio = first.size / body if body else 1.0
    short = len(lines) <= 3 and len(text) <= 200 and sum(character.isalpha() for character in text) >= 2
    if first.cells > 1:
        block.category = Category.TABLE if _tabular(lines) else Category.UNCATEGORIZED_TEXT
    elif first.mono and len(lines) >= 2:
        block.category = Category.CODE_SNIPPET
    elif _CAPTION.match(text):
        block.category = Category.FIGURE_CAPTION
    elif short and ratio >= title_ratio and _reads_as_title(text):
        block.category, block.level = Category.TITLE, _heading_level(ratio)
    elif short and len(lines) <= 2 and len(text) <= 120 and first.bold and not text.endswith((".", ",", ";")):
        block.category = Category.TITLE
        block.level = min(9, 3 + text.split()[0].count(".")) if _NUMBERED.match(text) else 4
    elif _LIST_MARK.match(text):
        block.category = Category.LIST_ITEM
    elif len(lines) == 1 and len(text) < 60 and not text.endswith(_ENDS_SENTENCE):
        block.category = Category.UNCATEGORIZED_TEXT


def blocks_of(lines: list[Line]) -> list[Block]:
    """The page's blocks in reading order, each with its category and, for headings, a level."""
    from apps.files.extraction.tables import align, unwrapped  # they work on lines too

    body = body_size(lines)
    blocks = [block for column in in_reading_order(lines) for block in _split_column(unwrapped(column))]
    for block in blocks:
        classify(block, body)
        if block.category is Category.TABLE:
            align(block.lines)
    return blocks
