"""Which rows of a region are its header: late ones, in one row or in two, over merged cells or none at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from apps.files.extraction.tabular.columns import is_value

LOOKED_AT = 40
"""Rows of a region's beginning by which this is decided."""
_LATEST = 15
_FILLED = 0.6
_YEAR = re.compile(r"(?:19|20)\d\d")
Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Header:
    """`first` and `after` are indexes of rows: header rows are [first, after); before them stands `title`."""

    first: int
    after: int
    labels: tuple[str, ...]
    title: str


def _filled(row: Row) -> list[str]:
    return [cell.strip() for cell in row if cell.strip()]


def _heads(row: Row) -> bool:
    """Whether the row could hold names: words, and years among words."""
    cells = _filled(row)
    return bool(cells) and all(not is_value(cell) or _YEAR.fullmatch(cell) for cell in cells)


def _differs(row: Row, below: Sequence[Row]) -> bool:
    """Whether some column has values below a word, or none repeats its name."""
    for index, cell in enumerate(row):
        column = [other[index].strip() for other in below if index < len(other) and other[index].strip()]
        if column and not is_value(cell) and sum(map(is_value, column)) >= 0.5 * len(column):
            return True
    cells = _filled(row)
    years = all(_YEAR.fullmatch(cell) for cell in cells)
    repeated = any(cell in {other[i].strip() for other in below if i < len(other)} for i, cell in _placed(row))
    return not years and not repeated and len(set(cells)) == len(cells) and max(map(len, cells)) <= 80


def _placed(row: Row) -> list[tuple[int, str]]:
    return [(index, cell.strip()) for index, cell in enumerate(row) if cell.strip()]


def _is_title(row: Row, width: int) -> bool:
    return width > 1 and len(set(_filled(row))) <= 1


def _spread(row: Row, below: Row, width: int) -> list[str]:
    """A group's name over each of its columns: to the right, until the next group's."""
    spread: list[str] = []
    current = ""
    for index in range(width):
        cell = row[index].strip() if index < len(row) else ""
        current = cell or (current if index < len(below) and below[index].strip() else "")
        spread.append(current)
    return spread


def _grouped(rows: Sequence[Row], index: int, width: int) -> list[str] | None:
    """Names of a header in two rows that begins at `index`; None when it is one row."""
    if index + 2 >= len(rows) or not _heads(rows[index + 1]) or not _differs(rows[index + 1], rows[index + 2 :]):
        return None
    above, below = rows[index], rows[index + 1]
    cells = _filled(above)
    gaps = len(cells) < len(_filled(below)) or len(set(cells)) < len(cells)
    if len(set(cells)) < 2 or not gaps or not any(is_value(cell) for row in rows[index + 2 :] for cell in row):
        return None
    names = []
    for index, group in enumerate(_spread(above, below, width)):
        own = below[index].strip() if index < len(below) else ""
        names.append(f"{group} {own}".strip() if own != group else own)
    return names


def find_header(rows: Sequence[Row], width: int) -> Header:
    """`rows` are the first of the region, `width` columns each at most. Labels are empty where there are none."""
    enough = max(1, int(_FILLED * width + 0.5))
    for index in range(min(_LATEST, max(len(rows) - 1, 0))):
        row, below = rows[index], rows[index + 1 :]
        if (_is_title(row, width) and len(rows) - index > 2) or not _heads(row):
            continue
        title = " ".join(dict.fromkeys(cell for above in rows[:index] for cell in _filled(above)))
        if names := _grouped(rows, index, width):
            return Header(index, index + 2, tuple(names), title)
        if len(_filled(row)) >= enough and _differs(row, below):
            labels = tuple(row[i].strip() if i < len(row) else "" for i in range(width))
            return Header(index, index + 1, labels, title)
    return Header(0, 0, ("",) * width, "")
