# ruff: noqa: S608 - statements are made of our own names and of patterns; cells are never part of them
"""From rows of text in the engine to one typed Parquet file a table. No value is lost: what is not of its column's
type stays readable in a text column beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from apps.files.extraction.tabular import columns as typing
from apps.files.extraction.tabular.columns import Candidate
from apps.files.extraction.tabular.header import LOOKED_AT, find_header
from apps.files.extraction.tabular.names import identifier
from apps.files.extraction.tabular.types import (
    LABEL_CHARS,
    ROW,
    SHOWN_CHARS,
    ColumnType,
    TableColumn,
    TableRecord,
)

_SAMPLE_ROWS, _SAMPLE_CELLS, _FAILED_CELLS = 1_000, 50_000, 300
_ROUNDS = 3
_DECIMAL_DIGITS, _DECIMAL_SCALE, _DOUBLE_DIGITS, _INTEGER_DIGITS = 38, 12, 15, 18
_TOTAL = re.compile(r"(?:grand |sub[- ]?)?(?:total|totals|sum|summe|gesamt|insgesamt|totaal|totale)\b.*", re.IGNORECASE)
_ALIAS: dict[str, str] = {
    "integer": "BIGINT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "time": "TIME",
}


@dataclass(frozen=True, slots=True)
class Raw:
    """A region in the engine's table `raw`: `n` is the row's number in the sheet, `c0`.. are its cells as text.

    `floats`: its numbers were floats before they were text, which doubles hold exactly.
    """

    sheet: str
    first_column: int
    width: int
    semicolons: bool = False
    floats: bool = False
    page: int | None = None


@dataclass(slots=True)
class _Column:
    index: int
    name: str
    label: str
    candidate: Candidate | None = None
    sql_type: str = "VARCHAR"
    type: ColumnType = "text"
    raw: str = ""
    unread: int = 0
    filled: int = 0
    rounded: bool = False

    @property
    def cell(self) -> str:
        return f"trim(c{self.index})"

    @property
    def matches(self) -> str:
        assert self.candidate is not None
        return f"regexp_full_match({self.cell}, {quoted(self.candidate.pattern)})"

    @property
    def taken(self) -> str:
        """SQL of the typed cell, for cells that are known to match or to be empty."""
        if self.candidate is None:
            return f"c{self.index}"
        taken = self.candidate.take.replace("{0}", self.cell)
        return f"TRY_CAST({taken} AS {self.sql_type})" if self.candidate.plain else taken

    @property
    def value(self) -> str:
        """SQL of the typed cell, null where the cell is not of the type."""
        return f"CASE WHEN {self.matches} THEN {self.taken} END" if self.candidate else self.taken


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Builder:
    """Makes the tables of one file, one after another, in `folder`."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._engine, self._folder = engine, folder
        self._names: set[str] = set()

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._engine.execute(statement).fetchall()

    def build(self, raw: Raw, name: str) -> tuple[TableRecord, Path] | None:
        """The table in `raw`, and its Parquet file; None when there are too few cells to be one."""
        cells = ", ".join(f"c{index}" for index in range(raw.width))
        head = self._rows(f"SELECT n, {cells} FROM raw ORDER BY rowid LIMIT {LOOKED_AT}")
        header = find_header([["" if cell is None else cell for cell in row[1:]] for row in head], raw.width)
        if len(head) - header.after < 1 or (raw.width == 1 and len(head) < 3):
            return None
        header_row = int(head[header.after - 1][0]) if header.after else None
        self._engine.execute(
            f"CREATE OR REPLACE TEMP VIEW body AS SELECT * FROM raw WHERE n >= {head[header.after][0]}"
        )
        ((first, last, rows),) = self._rows("SELECT min(n), max(n), count(*) FROM body")
        taken: set[str] = set()
        columns = [
            _Column(index, identifier(label, taken, f"column_{index + 1}"), label[:LABEL_CHARS])
            for index, label in enumerate(header.labels)
        ]
        self._type(columns, rows, raw)
        for column in columns:
            if column.unread or (column.rounded and not raw.floats):
                column.raw = identifier(f"{column.name}_text", taken, "text")
        table = identifier(name, self._names, "table")
        path = self._folder / f"{table.encode('ascii', 'ignore').decode() or 't'}-{len(self._names)}.parquet"
        self._write(columns, path)
        record = TableRecord(
            name=table,
            sheet=raw.sheet,
            title=header.title[:LABEL_CHARS],
            header_row=header_row,
            first_row=first,
            last_row=last,
            first_column=raw.first_column,
            last_column=raw.first_column + raw.width - 1,
            rows=rows,
            columns=self._described(columns, path, rows),
            notes=tuple(self._notes(columns)),
            size=path.stat().st_size,
            page=raw.page,
        )
        return record, path

    # Types

    def _type(self, columns: Sequence[_Column], rows: int, raw: Raw) -> None:
        samples = self._samples(len(columns), rows)
        open_columns = list(columns)
        for column, sample in zip(columns, samples, strict=True):
            column.candidate = typing.choose(sample, semicolons=raw.semicolons)
        for _ in range(_ROUNDS):
            self._count(open_columns)
            open_columns = [column for column in open_columns if column.candidate is not None and column.unread]
            failed = self._failures(open_columns)
            changed = []
            for column, cells in zip(open_columns, failed, strict=True):
                chosen = typing.choose([*samples[column.index], *cells], semicolons=raw.semicolons)
                known = chosen is not None and column.candidate is not None and chosen == column.candidate
                if not known and (chosen is not None or self._is_text(column, cells)):
                    column.candidate = chosen
                    changed.append(column)
            open_columns = changed
            if not changed:
                break
        else:
            self._count(open_columns)
        for column in columns:
            if column.unread > (1 - typing.TYPED_SHARE) * column.filled:
                column.candidate = None
            if column.candidate is None:
                column.type, column.sql_type, column.unread, column.rounded = "text", "VARCHAR", 0, False

    def _is_text(self, column: _Column, failed: Sequence[str]) -> bool:
        return typing.any_id(failed) or column.unread > (1 - typing.TYPED_SHARE) * column.filled

    def _samples(self, width: int, rows: int) -> list[list[str]]:
        """Cells of the first rows and of some in between, a list a column."""
        most = max(50, min(_SAMPLE_ROWS, _SAMPLE_CELLS // width))
        step = max(1, rows // most)
        lists = ", ".join(f"list(trim(c{index})) FILTER (trim(c{index}) <> '')" for index in range(width))
        where = f"rn <= {most} OR rn % {step} = 0"
        ((*found,),) = self._rows(f"SELECT {lists} FROM (SELECT *, row_number() OVER () AS rn FROM body) WHERE {where}")
        return [list(cells or ()) for cells in found]

    def _failures(self, columns: Sequence[_Column]) -> list[list[str]]:
        return [
            [
                cell
                for (cell,) in self._rows(
                    f"SELECT DISTINCT {column.cell} FROM body WHERE {column.cell} <> '' AND ({column.value}) IS NULL "
                    f"LIMIT {_FAILED_CELLS}"
                )
            ]
            for column in columns
        ]

    def _count(self, columns: Sequence[_Column]) -> None:
        """Settle the engine's type of each column, and count the cells that are not of it."""
        if not columns:
            return
        self._measure([column for column in columns if column.candidate and column.candidate.type == "decimal"])
        for column in columns:
            if column.candidate is not None and column.candidate.type != "decimal":
                column.type, column.sql_type = column.candidate.type, _ALIAS[column.candidate.type]
        asked = [
            f"count(*) FILTER ({column.cell} <> ''), count({column.value if column.candidate else column.cell})"
            for column in columns
        ]
        ((*counts,),) = self._rows(f"SELECT {', '.join(asked)} FROM body")
        for column, filled, read in zip(columns, counts[::2], counts[1::2], strict=True):
            column.filled, column.unread = filled, filled - read if column.candidate else 0

    def _measure(self, columns: Sequence[_Column]) -> None:
        """Numbers are kept exactly: as integers or decimals where their digits allow it, else as doubles."""
        if not columns:
            return
        plain, asked = [], []
        for column in columns:
            assert column.candidate is not None
            usual, name = column.candidate.plain.replace("{0}", column.cell), f"p{column.index}"
            plain.append(f"CASE WHEN {column.matches} THEN {usual} END AS {name}")
            mantissa = f"split_part(lower({name}), 'e', 1)"
            asked.append(
                f"coalesce(max(length(split_part({mantissa}, '.', 2))), 0), "
                f"coalesce(max(length(ltrim(split_part({mantissa}, '.', 1), '-'))), 0), "
                f"coalesce(bool_or(contains(lower({name}), 'e')), false)"
            )
        ((*found,),) = self._rows(f"SELECT {', '.join(asked)} FROM (SELECT {', '.join(plain)} FROM body)")
        for column, scale, whole, exponent in zip(columns, found[::3], found[1::3], found[2::3], strict=True):
            column.type, column.sql_type = _number_type(scale, whole, exponent)
            column.rounded = column.sql_type == "DOUBLE" and scale + whole > _DOUBLE_DIGITS

    # Writing

    def _write(self, columns: Sequence[_Column], path: Path) -> None:
        taken = [f"n AS {ROW}"]
        for column in columns:
            taken.append(f'{column.value if column.unread else column.taken} AS "{column.name}"')
            if column.raw:
                taken.append(f'c{column.index} AS "{column.raw}"')
        self._engine.execute(
            f"COPY (SELECT {', '.join(taken)} FROM body) TO {quoted(str(path))} "
            "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000)"
        )

    def _described(self, columns: Sequence[_Column], path: Path, rows: int) -> tuple[TableColumn, ...]:
        asked = []
        for column in columns:
            name = f'"{column.name}"'
            shown = f"left(CAST({name} AS VARCHAR), {SHOWN_CHARS})"
            asked.append(
                f"count({name}), approx_count_distinct({name}), left(CAST(min({name}) AS VARCHAR), {SHOWN_CHARS}), "
                f"left(CAST(max({name}) AS VARCHAR), {SHOWN_CHARS}), "
                f"list_slice(list_distinct(list({shown}) FILTER (sampled AND {name} IS NOT NULL)), 1, 5)"
            )
        source = f"SELECT *, row_number() OVER () <= 200 AS sampled FROM read_parquet({quoted(str(path))})"
        ((*found,),) = self._rows(f"SELECT {', '.join(asked)} FROM ({source})")
        described = []
        for index, column in enumerate(columns):
            filled, distinct, least, most, samples = found[5 * index : 5 * index + 5]
            described.append(
                TableColumn(
                    name=column.name,
                    label=column.label,
                    type=column.type,
                    empty=rows - filled - column.unread,
                    distinct=min(distinct, filled),
                    least=least or "",
                    most=most or "",
                    samples=tuple(sorted(samples or ())),
                    unit=column.candidate.unit if column.candidate else "",
                    raw=column.raw,
                    unread=column.unread,
                )
            )
        return tuple(described)

    def _notes(self, columns: Sequence[_Column]) -> list[str]:
        """What a reader of the numbers should know."""
        notes = [
            f"{column.unread} cells of {column.name} are no {column.type} and empty there; "
            f"{column.raw} has every cell as written."
            for column in columns
            if column.unread
        ]
        cells = ", ".join(f"c{column.index}" for column in columns)
        ((number, *last),) = self._rows(f"SELECT n, {cells} FROM body ORDER BY n DESC LIMIT 1")
        word = next((cell.strip() for cell in last if cell and cell.strip()), "")
        if _TOTAL.fullmatch(word):
            notes.append(f"Row {number} looks like a total of the others: WHERE {ROW} <> {number} leaves it out.")
        return [note[:300] for note in notes[:20]]


def _number_type(scale: int, whole: int, exponent: bool) -> tuple[ColumnType, str]:
    if exponent or scale > _DECIMAL_SCALE or scale + whole > _DECIMAL_DIGITS:
        return "decimal", "DOUBLE"
    if scale == 0 and whole <= _INTEGER_DIGITS:
        return "integer", "BIGINT"
    return "decimal", f"DECIMAL({18 if scale + whole <= 18 else 38}, {scale})"
