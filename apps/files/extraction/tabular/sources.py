"""Where rows come from: sheets of a workbook, delimited text, or tables that were found in a document."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import python_calamine
import xlrd

from apps.files.extraction.content import Scope
from apps.files.extraction.sheets import Delimited, checked, shown, xlrd_rows
from apps.files.extraction.tabular.regions import Merge, Merges
from apps.files.extraction.types import ExtractionFailed, Reason
from apps.files.extraction.workbook import prepared

_MAX_MERGES = 10_000


@dataclass(frozen=True, slots=True)
class Sheet:
    """`rows` begin with the sheet's first row; `first_column` is the number of their first cell, from 1."""

    name: str
    rows: Iterable[list[str]]
    first_column: int = 1
    merges: Merges | None = None
    semicolons: bool = False
    floats: bool = False
    page: int | None = None


def text_of(value: object) -> str:
    """A cell's value as text; what was text stays as it was written."""
    if isinstance(value, str):
        return value if "\0" not in value else value.replace("\0", "")
    return "" if value is None else shown(value)


def _texts(rows: Iterable[Iterable[object]]) -> Iterator[list[str]]:
    for row in rows:
        yield [text_of(cell) for cell in row]


def workbook(file: BinaryIO, scope: Scope) -> Iterator[Sheet]:
    """Sheets of XLSX, XLSB, ODS and XLS. Raises ExtractionFailed."""
    data, package = checked(file, scope)
    whole = prepared(data, package, scope) if package else data
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(whole))
        names = book.sheet_names
    except python_calamine.PasswordError as error:
        raise ExtractionFailed(Reason.ENCRYPTED) from error
    except (python_calamine.CalamineError, OSError, ValueError):
        yield from _old_workbook(data)
        return
    for name in names:
        try:
            sheet = book.get_sheet_by_name(name)
        except (python_calamine.CalamineError, OSError, ValueError):
            continue  # a sheet of charts has no cells
        if sheet.start is None:
            continue
        left = int(sheet.start[1])
        yield Sheet(name, _texts(sheet.iter_rows()), left + 1, _merges(sheet, left), floats=True)


def _merges(sheet: python_calamine.CalamineSheet, left: int) -> Merges | None:
    try:
        found: list[Merge] = (sheet.merged_cell_ranges or [])[:_MAX_MERGES]
    except (python_calamine.CalamineError, OSError, ValueError):
        return None
    return Merges(found, left) if found else None


def _old_workbook(data: bytes) -> Iterator[Sheet]:
    try:
        book = xlrd.open_workbook(file_contents=data, logfile=io.StringIO())
        for sheet in book.sheets():
            yield Sheet(sheet.name, _texts(xlrd_rows(sheet, book.datemode)), floats=True)
    except (xlrd.XLRDError, LookupError, ValueError, TypeError, AssertionError, struct.error, OSError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


def delimited_rows(text: Delimited) -> Iterator[list[str]]:
    """Raises ExtractionFailed."""
    try:
        yield from text.rows()
    except csv.Error as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


def found_tables(file: BinaryIO) -> Iterator[Sheet]:
    """Tables of a document, as the parent cut them out of its pages: `{"name", "page", "rows"}` a line."""
    for line in file:
        table = json.loads(line)
        yield Sheet(table["name"], table["rows"], page=table["page"])
