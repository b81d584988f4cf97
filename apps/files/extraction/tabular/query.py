# ruff: noqa: S608 - names are checked identifiers, paths our own
"""The child's job of answering one question over Parquet files, in an engine that can reach nothing else.

The SQL was checked before it came here, yet nothing depends on that alone: the engine is locked before it sees the
SQL, and the process may open no file but these, has no network, and bounds on memory, CPU and time.
"""

from __future__ import annotations

import datetime
import decimal
import json
import sys
from typing import Any

import duckdb

from apps.files.extraction.answer import Job, say
from apps.files.extraction.tabular.types import Cell
from apps.files.extraction.types import Reason

CELL_CHARS = 2_000
_EXACT = 1 << 53
_BATCH = 200
_PROBLEM_CHARS = 2_000
_SHUT = (
    "SET enable_progress_bar = false",  # it would be drawn on what the parent reads
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def _shown(value: Any) -> tuple[Cell, bool]:
    """A cell as JSON can carry it without loss, or as text; and whether it was cut."""
    if value is None or isinstance(value, bool):
        return value, False
    if isinstance(value, int) and abs(value) <= _EXACT:
        return value, False
    if isinstance(value, decimal.Decimal):
        number = float(value)
        return (number if decimal.Decimal(repr(number)) == value else str(value)), False
    if isinstance(value, float):
        return (value if value - value == 0 else str(value)), False
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" "), False
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat(), False
    text = str(value)
    return text[:CELL_CHARS].replace("\0", "\ufffd"), len(text) > CELL_CHARS


def _engine(job: dict[str, Any], memory_bytes: int) -> duckdb.DuckDBPyConnection:
    engine = duckdb.connect(config={"threads": "2", "memory_limit": f"{memory_bytes >> 20}MiB"})
    paths = [table["path"] for table in job["tables"]]
    engine.execute("SET temp_directory = ''")
    engine.execute("SET allowed_paths = " + json.dumps(paths).replace("'", "''").replace('"', "'"))
    for table in job["tables"]:
        path = table["path"].replace("'", "''")
        engine.execute(f"CREATE VIEW \"{table['name']}\" AS SELECT * FROM read_parquet('{path}')")
    for statement in _SHUT:
        engine.execute(statement)
    return engine


def _answer(engine: duckdb.DuckDBPyConnection, question: dict[str, Any]) -> dict[str, Any]:
    result = engine.execute(question["sql"])
    described = result.description or ()
    rows: list[list[Cell]] = []
    left, cut = int(question["max_bytes"]), False
    while not cut and (batch := result.fetchmany(_BATCH)):
        for row in batch:
            cells = [_shown(value) for value in row]
            left -= sum(len(str(cell)) + 4 for cell, _ in cells)
            if left < 0 or len(rows) == int(question["max_rows"]):
                cut = True
                break
            cut = cut or any(shortened for _, shortened in cells)
            rows.append([cell for cell, _ in cells])
    columns = [str(column[0])[:200] for column in described]
    return {"columns": columns, "types": [str(column[1])[:200] for column in described], "rows": rows, "truncated": cut}


def work(job: Job) -> None:
    question = json.loads(sys.stdin.buffer.read())
    try:
        engine = _engine(question, int(job["memory_bytes"]) // 2)
        say({"answer": _answer(engine, question)})
    except (duckdb.OutOfMemoryException, MemoryError):
        say({"failed": Reason.OUT_OF_MEMORY.value})
    except duckdb.FatalException:
        say({"failed": Reason.CRASHED.value})
    except (duckdb.Error, RuntimeError, ValueError, OverflowError) as error:
        say({"problem": str(error)[:_PROBLEM_CHARS].replace("\0", "")})
