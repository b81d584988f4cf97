# ruff: noqa: S608 - names and paths are our own
"""The child's job of making a file's tables: found, typed, and sent as a record and its Parquet, one after another."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

import duckdb

from apps.files.extraction.answer import Job, say, say_raw
from apps.files.extraction.content import Scope
from apps.files.extraction.readers import read_part
from apps.files.extraction.sheets import Delimited
from apps.files.extraction.tabular.build import Builder, Raw, quoted
from apps.files.extraction.tabular.regions import Region, bands, regions
from apps.files.extraction.tabular.sources import Sheet, delimited_rows, found_tables, workbook
from apps.files.extraction.tabular.types import MAX_COLUMNS, MAX_TABLES, TableRecord
from apps.files.extraction.types import ExtractionFailed, Reason

_LINE_BYTES = 8 << 20
_ENGINE = {"threads": "2", "preserve_insertion_order": "true", "autoinstall_known_extensions": "false"}
# An empty row parts two tables, and then lines must be read one by one.
_EMPTY_ROW = re.compile(rb"\n[ \t,;|\"]*\r?(?:\n|\Z)")


def _engine(folder: Path, memory_bytes: int) -> duckdb.DuckDBPyConnection:
    engine = duckdb.connect(config={**_ENGINE, "memory_limit": f"{memory_bytes >> 20}MiB"})
    engine.execute(f"SET temp_directory = {quoted(str(folder))}")
    engine.execute("SET autoload_known_extensions = false")
    engine.execute("SET enable_progress_bar = false")  # it would be drawn on what the parent reads
    return engine


def _load(
    engine: duckdb.DuckDBPyConnection,
    paths: list[str],
    *,
    width: int,
    keep: range,
    delimiter: str = ",",
    numbered: bool,
) -> None:
    """Make the table `raw` of delimited files in UTF-8. Raises duckdb.Error when they have rows of another form."""
    names = ["n", *(f"x{index}" for index in range(width))] if numbered else [f"x{index}" for index in range(width)]
    kinds = ", ".join(f"'{name}': '{'BIGINT' if name == 'n' else 'VARCHAR'}'" for name in names)
    kept = ", ".join(f"x{column} AS c{index}" for index, column in enumerate(keep))
    some = " OR ".join(f"x{column} IS NOT NULL" for column in keep)
    number = "n" if numbered else "row_number() OVER () AS n"
    where = f"WHERE {some}" if numbered else ""
    engine.execute(
        f"CREATE OR REPLACE TABLE raw AS SELECT {number}, {kept} FROM read_csv([{', '.join(map(quoted, paths))}], "
        f"auto_detect = false, header = false, delim = {quoted(delimiter)}, quote = '\"', escape = '\"', "
        f"null_padding = true, parallel = false, max_line_size = {_LINE_BYTES}, columns = {{{kinds}}}) {where}"
    )


class _Reader:
    """Sends tables as they are made, up to the bound on their number."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, folder: Path, name: str) -> None:
        self._engine, self._folder, self._name = engine, folder, name
        self._builder = Builder(engine, folder)
        self._count = 0

    def _send(self, made: tuple[TableRecord, Path] | None) -> None:
        if made is None:
            return
        record, path = made
        self._count += 1
        say({"table": asdict(record)})
        say_raw(path.read_bytes())
        path.unlink()

    def _made(self, raw: Raw, name: str) -> None:
        self._send(self._builder.build(raw, name))
        self._engine.execute("DROP TABLE raw CASCADE")

    def region(self, sheet: Sheet, region: Region) -> None:
        if region.last_row == region.bands[0].first_row:
            return
        width = max(band.width for band in region.bands)
        _load(self._engine, region.paths, width=width, keep=range(region.start, region.end), numbered=True)
        raw = Raw(
            sheet.name, sheet.first_column + region.start, region.width, sheet.semicolons, sheet.floats, sheet.page
        )
        self._made(raw, sheet.name or self._name)

    def sheet(self, sheet: Sheet) -> bool:
        """False when there is more than may be kept."""
        whole, spent = True, set[Path]()
        for region in regions(bands(sheet.rows, self._folder, merges=sheet.merges)):
            if self._count >= MAX_TABLES:
                return False
            whole = whole and not any(band.cut for band in region.bands)
            self.region(sheet, region)
            # The next region may stand beside this one, in the same band.
            paths = {band.path for band in region.bands}
            for path in spent - paths:
                path.unlink()
            spent = paths
        for path in spent:
            path.unlink()
        return whole

    def delimited(self, data: bytes) -> bool:
        """The engine reads plain files itself, many times faster; others are read line by line."""
        text = Delimited.of(data)
        if not _EMPTY_ROW.search(data.rstrip(b"\r\n")) and self._at_once(text):
            return True
        return self.sheet(Sheet("", delimited_rows(text), semicolons=text.delimiter == ";"))

    def _at_once(self, text: Delimited) -> bool:
        width = max((len(row) for row, _ in zip(delimited_rows(text), range(2_000), strict=False)), default=0)
        if not 1 <= width <= MAX_COLUMNS or not text.quoted:
            return False
        path = self._folder / "text.csv"
        path.write_text(text.text, encoding="utf-8", errors="replace", newline="")
        try:
            _load(self._engine, [str(path)], width=width, keep=range(width), delimiter=text.delimiter, numbered=False)
        except duckdb.Error:
            return False
        finally:
            path.unlink()
        self._made(Raw("", 1, width, text.delimiter == ";"), self._name)
        return True


def _sheets(kind: str, file: BinaryIO, unpacked_bytes: int) -> Iterator[Sheet]:
    if kind == "found":
        return found_tables(file)
    return workbook(file, Scope.of(unpacked_bytes, read_part))


def work(job: Job) -> None:
    folder = Path(job["scratch"])
    reader = _Reader(_engine(folder, int(job["memory_bytes"]) // 2), folder, str(job["name"]))
    whole = True
    try:
        with os.fdopen(int(job["source"]), "rb", closefd=False) as file:
            if job["kind"] == "csv":
                whole = reader.delimited(file.read())
            else:
                for sheet in _sheets(job["kind"], file, int(job["unpacked_bytes"])):
                    whole = reader.sheet(sheet) and whole
    except duckdb.OutOfMemoryException as error:
        raise ExtractionFailed(Reason.OUT_OF_MEMORY) from error
    except duckdb.Error as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    say({"tabled": whole})
