"""Regions of cells in a sheet: bands between empty rows, and in each the parts between empty columns.

Rows pass by once and are written to files in the scratch folder, so that a sheet is never held whole by us. A band
that goes on below a gap, in the same columns and without a header, belongs to the table before it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from apps.files.extraction.tabular.columns import is_value
from apps.files.extraction.tabular.header import LOOKED_AT, find_header
from apps.files.extraction.tabular.types import MAX_COLUMNS

_MOST_GAPS = 3
Row = Sequence[str]
Merge = tuple[tuple[int, int], tuple[int, int]]
"""First and last cell of merged cells, as (row, column) from 0."""


@dataclass(slots=True)
class Band:
    """Rows without an empty one between them, in `path` as number and cells. `cut`: some cells were too many."""

    path: Path
    first_row: int
    last_row: int = 0
    width: int = 0
    head: list[list[str]] = field(default_factory=list)
    used: set[int] = field(default_factory=set)
    cut: bool = False


@dataclass(slots=True)
class Region:
    """Columns [start, end) of one band or of several."""

    bands: list[Band]
    start: int
    end: int

    @property
    def paths(self) -> list[str]:
        return [str(band.path) for band in self.bands]

    @property
    def width(self) -> int:
        return self.end - self.start

    @property
    def last_row(self) -> int:
        return self.bands[-1].last_row

    def head(self) -> list[list[str]]:
        return [row[self.start : self.end] for row in self.bands[0].head]


class Merges:
    """Merged cells: the value of the first stands for all of them."""

    def __init__(self, merges: Iterable[Merge], first_column: int) -> None:
        self._waiting = sorted(merges, reverse=True)
        self._open: list[tuple[int, int, int, str]] = []
        self._shift = first_column

    def fill(self, number: int, row: list[str]) -> None:
        """`number` counts from 0."""
        while self._waiting and self._waiting[-1][0][0] <= number:
            (top, left), (bottom, right) = self._waiting.pop()
            left, right = left - self._shift, min(right - self._shift, MAX_COLUMNS)
            if top == number and 0 <= left < len(row) and row[left]:
                self._open.append((bottom, left, right, row[left]))
        if self._open:
            self._open = [merge for merge in self._open if merge[0] >= number]
            for _, left, right, value in self._open:
                for column in range(left, min(right + 1, len(row))):
                    row[column] = row[column] or value


def bands(rows: Iterable[list[str]], folder: Path, *, merges: Merges | None = None) -> Iterator[Band]:
    """Bands of a sheet whose first row is number 1. Files of a band lie in `folder` until they are removed."""
    numbered = enumerate(rows, start=1)
    for number, row in numbered:
        if any(row):
            yield _band(number, row, numbered, folder / f"band-{number}.csv", merges)


def _band(
    number: int, row: list[str], rest: Iterator[tuple[int, list[str]]], path: Path, merges: Merges | None
) -> Band:
    band = Band(path, number)
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        unused: set[int] = set()
        while True:
            if len(row) > band.width:
                band.cut = band.cut or len(row) > MAX_COLUMNS
                row = row[:MAX_COLUMNS]
                unused.update(range(band.width, len(row)))
                band.width = max(band.width, len(row))
            if unused:
                band.used.update(found := {column for column in unused if column < len(row) and row[column]})
                unused -= found
            if merges is not None:
                merges.fill(number - 1, row)
            if len(band.head) < LOOKED_AT:
                band.head.append(list(row))
            band.last_row = number
            write([number, *row])
            number, row = next(rest, (0, []))
            if not any(row):
                return band


def split(band: Band) -> list[Region]:
    """The parts that stand side by side, with an empty column between them."""
    found: list[Region] = []
    for column in sorted(band.used):
        if found and found[-1].end == column:
            found[-1].end = column + 1
        else:
            found.append(Region([band], column, column + 1))
    return found


def regions(found: Iterable[Band]) -> Iterator[Region]:
    """Regions in order, those that go on below a gap joined."""
    last: Region | None = None
    for band in found:
        parts = split(band)
        if last is not None and len(parts) == 1 and _goes_on(last, parts[0]):
            last.bands.append(band)
            continue
        if last is not None:
            yield last
        last = None
        if parts:
            *before, last = parts
            yield from before
    if last is not None:
        yield last


def _goes_on(above: Region, below: Region) -> bool:
    gap = below.bands[0].first_row - above.last_row - 1
    inside = above.start <= below.start and below.end <= above.end
    if gap > _MOST_GAPS or not inside or above.width < 2 or below.width < 2:
        return False
    header = find_header(above.head(), above.width)
    rows = above.head()[header.after :]
    if header.after == 0 or not rows or find_header(below.head(), below.width).after:
        return False
    return _alike(rows[0], below.head()[0], below.start - above.start)


def _alike(above: Row, below: Row, shift: int) -> bool:
    """Whether filled cells under one another are values or words alike, and at least one of them is a value."""
    pairs = [
        (is_value(above[index + shift]), is_value(cell))
        for index, cell in enumerate(below)
        if cell.strip() and index + shift < len(above) and above[index + shift].strip()
    ]
    return any(second for _, second in pairs) and all(first == second for first, second in pairs)
