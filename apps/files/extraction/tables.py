"""Rows of a table, without rules to go by: cells under their columns, and cells of several lines in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from apps.files.extraction.layout import Line, Piece, union

BETWEEN = " | "
_TIGHTER = 0.85  # of the step between rows: lines of one cell stand closer together
_ALIKE = 1.2
_FARTHEST = 2.5  # times the closest step: what stands further apart are not rows of one table


def _rewritten(line: Line, pieces: Sequence[Piece]) -> None:
    line.pieces, line.cells = tuple(pieces), len(pieces)
    line.text = BETWEEN.join(piece.text for piece in pieces)


def _columns(rows: Sequence[Line]) -> list[tuple[float, float]]:
    """Where each column begins and ends, by the rows that have the most cells; none when those do not agree."""
    most = max(len(row.pieces) for row in rows)
    full = [row.pieces for row in rows if len(row.pieces) == most]
    columns = [(min(pieces[at].x0 for pieces in full), max(pieces[at].x1 for pieces in full)) for at in range(most)]
    return columns if all(before[1] < after[0] for before, after in pairwise(columns)) else []


def _column_of(piece: Piece, columns: Sequence[tuple[float, float]]) -> int:
    def fit(at: int) -> tuple[float, float]:
        x0, x1 = columns[at]
        return min(piece.x1, x1) - max(piece.x0, x0), -abs(piece.x0 + piece.x1 - x0 - x1)

    touched = [at for at in range(len(columns)) if fit(at)[0] > 0]
    return touched[0] if len(touched) > 1 else max(range(len(columns)), key=fit)


def align(rows: Sequence[Line]) -> None:
    """Empty cells where a row has none under a column, so that every row has as many."""
    if not all(row.pieces for row in rows) or not (columns := _columns(rows)):
        return
    for row in rows:
        if len(row.pieces) < len(columns):
            places = [_column_of(piece, columns) for piece in row.pieces]
            if all(before < after for before, after in pairwise(places)):
                by_place = dict(zip(places, row.pieces, strict=True))
                empty = [by_place.get(at) or Piece(x0, x1, "") for at, (x0, x1) in enumerate(columns)]
                _rewritten(row, empty)


def _pieces(line: Line) -> tuple[Piece, ...]:
    return line.pieces or (Piece(line.x0, line.x1, line.text),)


def _places(line: Line, columns: Sequence[tuple[float, float]]) -> list[int] | None:
    """The column of each cell of a line; None when one lies in none of its own, or across several."""
    places = []
    for piece in _pieces(line):
        touched = [at for at, (x0, x1) in enumerate(columns) if piece.x0 < x1 and piece.x1 > x0]
        if len(touched) != 1:
            return None
        places += touched
    return places if len(set(places)) == len(places) else None


def _grouped(lines: list[Line], columns: Sequence[tuple[float, float]]) -> list[list[Line]]:
    """Lines that stand closer together than rows do, in groups; each by itself where all distances are alike."""
    steps = [after.y0 - before.y0 for before, after in pairwise(lines)]
    near, far = min(steps), max(step for step in steps if step <= _FARTHEST * max(min(steps), 1.0))
    alone = [[line] for line in lines]
    if near <= 0 or near >= _TIGHTER * far:
        return alone
    groups = [[lines[0]]]
    for step, line in zip(steps, lines[1:], strict=True):
        if step <= _ALIKE * near:
            groups[-1].append(line)
        else:
            groups.append([line])
    wraps = all(sum(len(line.pieces) == len(columns) for line in group) <= 1 for group in groups)
    return groups if wraps else alone


def _joined(group: list[Line], columns: Sequence[tuple[float, float]]) -> list[Line]:
    """The lines of a group as one row, if they are one."""
    places = [_places(line, columns) for line in group]
    if len(group) == 1 or all(line.cells < 2 for line in group) or any(place is None for place in places):
        return group
    texts = [""] * len(columns)
    for line, where in zip(group, places, strict=True):
        for place, piece in zip(where or (), _pieces(line), strict=True):
            texts[place] = f"{texts[place]} {piece.text}".strip()
    row = group[0]
    _rewritten(row, [Piece(x0, x1, text) for (x0, x1), text in zip(columns, texts, strict=True)])
    for line in group[1:]:
        row.box = union(row.box, line.box)
    row.y1, row.hyphenated = group[-1].y1, False
    return [row]


def unwrapped(column: list[Line]) -> list[Line]:
    """The lines of a column of text, with the lines of a table's row in one where its cells have several."""
    tabular = [at for at, line in enumerate(column) if line.cells > 1 and line.pieces]
    if len(tabular) < 2 or (len(tabular) == len(column) and len({len(line.pieces) for line in column}) == 1):
        return column
    first, last = tabular[0], tabular[-1] + 1
    columns = _columns([column[at] for at in tabular])
    while first > 0 and columns and _places(column[first - 1], columns) and len(columns) > 1:
        first -= 1
    while last < len(column) and columns and _places(column[last], columns):
        last += 1
    lines = column[first:last]
    if not columns or len(lines) < 3:
        return column
    rows = [line for group in _grouped(lines, columns) for line in _joined(group, columns)]
    return [*column[:first], *rows, *column[last:]]
