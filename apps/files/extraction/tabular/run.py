"""The parent's side of tables: `make_tables` and `ask`, each in a child of its own whose every word is checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from apps.files.extraction.child import Child, ChildLost
from apps.files.extraction.process import opened, receive
from apps.files.extraction.tabular.types import MAX_TABLES, Answer, TableRecord
from apps.files.extraction.types import ExtractionFailed, Limits, Reason

FOUND = "found"
"""The kind of a file of tables that were cut out of a document's pages: `{"name", "page", "rows"}` a line."""
MAKE = Limits(wall_s=120.0, page_s=90.0, cpu_s=110, memory_bytes=2 << 30, output_bytes=400 << 20, scratch_bytes=1 << 30)
ASK = Limits(wall_s=15.0, page_s=10.0, cpu_s=15, memory_bytes=1 << 30, output_bytes=8 << 20, scratch_bytes=1 << 20)
PARQUET_MAX_BYTES = 256 << 20
SQL_MAX_CHARS = 10_000

ENGINE_READS = ("/sys/fs/cgroup",)
"""The engine asks how much CPU and memory it may use, and does not start without an answer."""

OnTable = Callable[[TableRecord, bytes], None]


class Refused(Exception):
    """The engine cannot answer the question; the text is its own."""


def make_tables(path: Path, kind: str, *, name: str, on_table: OnTable, limits: Limits = MAKE) -> bool:
    """Find the tables of a spreadsheet, of delimited text or of `FOUND`; `on_table` gets each with its Parquet.

    False when some were left out. Raises ExtractionFailed.
    """
    job = {"op": "tables", "kind": kind, "name": name, "unpacked_bytes": limits.unpacked_bytes}
    with opened(path) as source, Child(job, limits, source=source, also_readable=ENGINE_READS) as child:
        count = 0
        try:
            while True:
                said = receive(child, limits.page_s)
                if said.tabled is not None:
                    return said.tabled
                if said.table is None or said.table.size > PARQUET_MAX_BYTES or count >= MAX_TABLES:
                    raise ExtractionFailed(Reason.CRASHED)
                count += 1
                on_table(said.table, child.read_exactly(limits.page_s, said.table.size))
        except ChildLost as lost:
            raise ExtractionFailed(lost.reason) from lost


def ask(sql: str, tables: Mapping[str, Path], *, max_rows: int, max_bytes: int, limits: Limits = ASK) -> Answer:
    """The answer to checked SQL over Parquet files, by the names that it calls them.

    Raises Refused, ExtractionFailed (`timed_out`, `out_of_memory`, `crashed`).
    """
    paths = [str(path.resolve()) for path in tables.values()]
    named = [{"name": name, "path": path} for name, path in zip(tables, paths, strict=True)]
    question: dict[str, Any] = {"sql": sql, "tables": named, "max_rows": max_rows, "max_bytes": max_bytes}
    with Child({"op": "query"}, limits, secret=json.dumps(question), also_readable=(*ENGINE_READS, *paths)) as child:
        try:
            said = receive(child, limits.page_s)
        except ChildLost as lost:
            raise ExtractionFailed(lost.reason) from lost
    if said.problem is not None:
        raise Refused(said.problem)
    if said.answer is None or not _even(said.answer, max_rows):
        raise ExtractionFailed(Reason.CRASHED)
    return said.answer


def _even(answer: Answer, max_rows: int) -> bool:
    width: Sequence[str] = answer.columns
    return (
        len(answer.types) == len(width)
        and len(answer.rows) <= max_rows
        and all(len(row) == len(width) for row in answer.rows)
    )
