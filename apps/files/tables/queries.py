"""`query_table`: one SELECT over tables of files that the actor may see. Also their list, and their rows in pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.accounts.types import Actor
from apps.core.errors import NotFound
from apps.files.access import access_file, access_files, visible_files
from apps.files.extraction import ExtractionFailed
from apps.files.extraction.tabular.run import Refused, ask
from apps.files.extraction.tabular.types import ROW, Cell
from apps.files.indexing.cards import card_text, place
from apps.files.models import File, Table
from apps.files.pipeline.tabling import key
from apps.files.pipeline.turns import turn
from apps.files.storage import storage
from apps.files.tables.problems import QueryFailed, refused, stopped
from apps.files.tables.sql import BadSql, check

MAX_ROWS = 1_000
MAX_BYTES = 2 << 20
MAX_FILES = 20
MAX_USED = 8
MAX_CARDS = 200


@dataclass(frozen=True, slots=True)
class TableInfo:
    """A table as its owner sees it. `name` is what SQL calls it."""

    number: int
    name: str
    sheet: str
    title: str
    page: int | None
    header_row: int | None
    first_row: int
    last_row: int
    first_column: int
    last_column: int
    rows: int
    columns: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableCard:
    """A table that a model may be told of. `text` says what it holds, and what SQL calls it within its file."""

    file_id: UUID
    file_name: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A table that an answer was made from."""

    file_id: UUID
    file_name: str
    number: int
    name: str
    place: str


@dataclass(frozen=True, slots=True)
class QueryResult:
    """`row_numbers` are places in the sheet of `sources[0]`, a number a row, where the rows are rows of that table."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    row_numbers: tuple[int, ...] | None
    truncated: bool
    sql: str
    sources: tuple[Source, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "columns": [{"name": name, "type": type} for name, type in zip(self.columns, self.types, strict=True)],
            "rows": self.rows,
            "row_numbers": self.row_numbers,
            "truncated": self.truncated,
            "sql": self.sql,
            "sources": [{**asdict(source), "file_id": str(source.file_id)} for source in self.sources],
        }


def _info(table: Table, name: str = "") -> TableInfo:
    return TableInfo(
        number=table.number,
        name=name or table.name,
        sheet=table.sheet,
        title=table.title,
        page=table.page,
        header_row=table.header_row,
        first_row=table.first_row,
        last_row=table.last_row,
        first_column=table.first_column,
        last_column=table.last_column,
        rows=table.rows,
        columns=tuple(table.columns),
        notes=tuple(table.notes),
    )


def list_tables(actor: Actor, file_id: object) -> list[TableInfo]:
    """The tables of one file, in order. Raises NotFound."""
    file = access_file(actor, file_id)
    return [_info(table) for table in Table.objects.filter(file=file).order_by("number")]


def cards_of(actor: Actor, file_ids: Sequence[UUID]) -> tuple[TableCard, ...]:
    """The tables of those of the files that the actor may see, in the order of the files, up to MAX_CARDS."""
    wanted = list(dict.fromkeys(file_ids))[:MAX_FILES]
    files = {file.id: file for file in visible_files(actor).filter(id__in=wanted)}
    tables = Table.objects.filter(organization_id=actor.organization_id, file_id__in=list(files)).order_by("number")
    found = sorted(tables[:MAX_CARDS], key=lambda table: wanted.index(table.file_id))
    return tuple(TableCard(t.file_id, files[t.file_id].name, t.number, card_text(t)) for t in found)


def read_rows(actor: Actor, file_id: object, number: int, *, offset: int, limit: int) -> QueryResult:
    """A stretch of a table's rows, in the order of the sheet. Raises NotFound, QueryFailed, Overloaded."""
    file = access_file(actor, file_id)
    table = Table.objects.filter(file=file, number=number).first()
    if table is None:
        raise NotFound("The file has no such table.")
    limit = min(limit, MAX_ROWS)
    sql = f'SELECT * EXCLUDE ({ROW}), {ROW} FROM "{table.name}" ORDER BY {ROW} LIMIT {limit} OFFSET {offset}'  # noqa: S608
    found = _run(sql, {table.name: (file, table)}, max_rows=limit)
    return _result(found, sql, {table.name: (file, table)}, places=True)


def query_table(actor: Actor, file_ids: Sequence[UUID], *, sql: str, max_rows: int = MAX_ROWS) -> QueryResult:
    """The answer to one SELECT over the tables of these files, by the names that `tables_of` gives them.

    Raises NotFound if any file may not be seen, QueryFailed with a sentence for who wrote the SQL, Overloaded.
    """
    files = access_files(actor, file_ids[:MAX_FILES])
    tables = named(files)
    max_rows = max(1, min(max_rows, MAX_ROWS))
    try:
        checked = check(sql, tables, max_rows=max_rows)
    except BadSql as error:
        raise QueryFailed("refused", str(error)) from error
    if len(checked.tables) > MAX_USED:
        raise QueryFailed("refused", f"One question can read {MAX_USED} tables at most.")
    used = {name: tables[name] for name in sorted(checked.tables)}
    found = _run(checked.sql, used, max_rows=max_rows)
    if checked.table:
        used = {checked.table: used.pop(checked.table), **used}
    return _result(found, checked.sql, used, places=checked.places)


Named = dict[str, tuple[File, Table]]


def named(files: Sequence[File]) -> Named:
    """The tables of files by names of which no two are the same; the first keeps its own."""
    order = {file.id: file for file in files}
    names: Named = {}
    tables = Table.objects.filter(file_id__in=list(order), organization_id__in={f.organization_id for f in files})
    for table in sorted(tables, key=lambda table: (list(order).index(table.file_id), table.number)):
        name, number = table.name, 2
        while name in names:
            name, number = f"{table.name}_{number}", number + 1
        names[name] = (order[table.file_id], table)
    return names


def tables_of(actor: Actor, file_ids: Sequence[UUID]) -> list[tuple[File, TableInfo]]:
    """The tables of these files under the names that `query_table` knows them by. Raises NotFound."""
    tables = named(access_files(actor, file_ids[:MAX_FILES]))
    return [(file, _info(table, name)) for name, (file, table) in tables.items()]


@dataclass(frozen=True, slots=True)
class _Found:
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool


def _run(sql: str, tables: Named, *, max_rows: int) -> _Found:
    with turn(), ExitStack() as stack:
        paths: dict[str, Path] = {
            name: stack.enter_context(storage().local(key(file, table.number)))
            for name, (file, table) in tables.items()
        }
        try:
            answer = ask(sql, paths, max_rows=max_rows, max_bytes=MAX_BYTES)
        except Refused as error:
            columns = [column for _, table in tables.values() for column in table.columns]
            raise refused(str(error), columns) from error
        except ExtractionFailed as failed:
            raise stopped(failed) from failed
    return _Found(answer.columns, answer.types, answer.rows, answer.truncated)


def _result(found: _Found, sql: str, tables: Named, *, places: bool) -> QueryResult:
    columns, types, rows = found.columns, found.types, found.rows
    numbers: tuple[int, ...] | None = None
    if places:
        numbers = tuple(int(row[-1] or 0) for row in rows)
        columns, types, rows = columns[:-1], types[:-1], tuple(row[:-1] for row in rows)
    sources = tuple(
        Source(file.id, file.name, table.number, name, place(table)) for name, (file, table) in tables.items()
    )
    return QueryResult(columns, types, rows, numbers, found.truncated, sql, sources)
