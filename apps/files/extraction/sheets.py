"""Spreadsheets and delimited text as tables of text: a section a sheet, an element a region of cells.

Cells are written as a person would type them: whole numbers without a fraction, dates in ISO form. Types, names
of columns and questions in SQL are not this module's part.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, BinaryIO, Literal

import python_calamine
import xlrd

from apps.files.extraction import opendocument, plain, workbook
from apps.files.extraction.assemble import clean
from apps.files.extraction.content import OLE, Content, Package, Scope, opened_ole, table_lines
from apps.files.extraction.sheet_bounds import within_bounds
from apps.files.extraction.types import (
    LOCATOR_MAX_CHARS,
    Category,
    Element,
    ExtractionFailed,
    Locator,
    Notice,
    Reason,
)

MAX_CHARS = 5_000_000  # of all sheets together: about as many pages as a file may have
_BETWEEN = " | "
_PANIC = "PanicException"  # what calamine ends with where a file's numbers lie; no exception in the usual sense
_EXACT = 1e15
_SMALLEST, _LARGEST = 1e-10, 1e21
_ZIP = b"PK\x03\x04"
_EVERYONES = "VelvetSweatshop"  # Excel's password for workbooks that are protected against changes only
_DELIMITERS = ",;\t|"
Row = Sequence[str]


def shown(value: object) -> str:
    """A cell's value as text."""
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, datetime.timedelta):
        seconds = round(value.total_seconds())
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(sep=" ")
    return clean(str(value))


def _number(value: float) -> str:
    """As many digits as a spreadsheet keeps, which is 15, and no exponent but for the very large and small."""
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    short = repr(float(f"{value:.15g}"))
    return format(Decimal(short), "f") if "e" in short and _SMALLEST < abs(value) < _LARGEST else short


def regions(rows: Iterable[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Tables of a sheet, each with the number of its first row: parted by empty rows, and by empty columns where the
    parts stand side by side. The sheet's first row is number 1."""
    band: list[Row] = []
    number = 0
    for number, row in enumerate(rows, start=1):
        if any(row):
            band.append(row)
        elif band:
            yield from ((number - len(band), part) for part in _side_by_side(band))
            band = []
    if band:
        yield from ((number - len(band) + 1, part) for part in _side_by_side(band))


def _side_by_side(band: list[Row]) -> Iterator[list[Row]]:
    width = max(len(row) for row in band)
    used = [any(column < len(row) and row[column] for row in band) for column in range(width)]
    start: int | None = None
    for column in range(width + 1):
        if column < width and used[column]:
            start = column if start is None else start
        elif start is not None:
            yield [row[start:column] for row in band]
            start = None


class _Room:
    """How much text of all sheets may still be taken."""

    def __init__(self, scope: Scope) -> None:
        self._scope, self._left = scope, MAX_CHARS

    def fill(self, rows: Iterable[Iterable[object]]) -> Iterator[Row]:
        for row in rows:
            cells = [shown(cell) for cell in row]
            self._left -= sum(len(cell) + len(_BETWEEN) for cell in cells)
            if self._left < 0:
                self._scope.notice(Notice.CUT_SHORT)
                return
            yield cells


def _section(name: str, rows: Iterable[Row]) -> list[Element]:
    tables = [table for first, region in regions(rows) if (table := _table(first, region)).text]
    return _in_sheet(name, [Element(Category.TITLE, name, level=1), *tables]) if clean(name) else tables


def _table(first: int, region: list[Row]) -> Element:
    lines: list[str] = []
    numbers: list[int] = []
    for number, line in table_lines(enumerate(region, start=first)):
        lines.append(line)
        numbers.append(number)
    return Element(Category.TABLE, "\n".join(lines), rows=tuple(numbers))


def _in_sheet(name: str, elements: Iterable[Element]) -> list[Element]:
    locator = Locator(sheet=name[:LOCATOR_MAX_CHARS])
    return [replace(element, locator=locator) for element in elements]


def read(file: BinaryIO, scope: Scope) -> Content:
    """XLSX, XLSB, XLS and ODS. Raises ExtractionFailed."""
    data, package = checked(file, scope)
    content = _by_calamine(workbook.prepared(data, package, scope) if package else data, scope)
    if content is not None and package is not None:
        beside = workbook.beside(package) if "xl/workbook.xml" in package.names else opendocument.comments(package)
        _add_beside(content, beside)
    if (content is None or not content.elements) and not data.startswith(_ZIP):
        return _by_xlrd(data, scope)
    if content is None:
        raise ExtractionFailed(Reason.DAMAGED)
    return content


def checked(file: BinaryIO, scope: Scope) -> tuple[bytes, Package | None]:
    """The bytes of a spreadsheet whose container is within bounds, and its package. One that Excel itself opens without
    asking is opened. Raises ExtractionFailed."""
    try:
        return _checked(file, scope)
    except ExtractionFailed as failed:
        if failed.reason is not Reason.ENCRYPTED or _rewound(file).read(1) == b"P":
            raise
        from apps.files.extraction.unlock import office  # late: few are protected

        try:
            data = office(_rewound(file), _EVERYONES)
        except ExtractionFailed:
            raise failed from None
    return _checked(io.BytesIO(data), scope)


def _checked(file: BinaryIO, scope: Scope) -> tuple[bytes, Package | None]:
    """Raises ExtractionFailed."""
    head = file.read(8)
    package: Package | None = None
    if head.startswith(_ZIP):
        package = Package(_rewound(file), scope)  # its bounds hold before anything is unpacked
        opendocument.check_open(package)
    elif head == OLE:
        _check_container(_rewound(file))
    elif not head.startswith(b"\x09"):  # Excel before 5 had no container
        raise ExtractionFailed(Reason.DAMAGED)
    return _rewound(file).read(), package


def _add_beside(content: Content, beside: dict[str, list[Element]]) -> None:
    """What stands beside the cells of a sheet follows them; sheets of nothing else are added."""
    named = {section[0].text: section for section in content.sections if section}
    for name, elements in beside.items():
        if elements and name in named:
            named[name] += _in_sheet(name, elements)
        elif elements:
            content.sections.append(_in_sheet(name, [Element(Category.TITLE, name, level=1), *elements]))


def _rewound(file: BinaryIO) -> BinaryIO:
    file.seek(0)
    return file


def _check_container(file: BinaryIO) -> None:
    with opened_ole(file) as ole:
        name = next((name for name in ("Workbook", "Book") if ole.exists(name)), None)
        if ole.exists("EncryptedPackage") or (name and _is_encrypted(ole.openstream(name).read(1 << 16))):
            raise ExtractionFailed(Reason.ENCRYPTED)


def _is_encrypted(data: bytes) -> bool:
    """Whether the workbook's first records hold FILEPASS: everything behind it is encrypted."""
    at = 0
    while at + 4 <= len(data):
        kind, size = struct.unpack_from("<HH", data, at)
        if kind in (0x002F, 0x0085, 0x000A):  # FILEPASS; or past where it would stand
            return bool(kind == 0x002F)
        at += 4 + size
    return False


def _by_calamine(data: bytes, scope: Scope) -> Content | None:
    """None for what calamine does not know; xlrd may."""
    room, sections = _Room(scope), []
    data, cut = within_bounds(data)
    if cut:
        scope.notice(Notice.CUT_SHORT)
    try:
        book = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
        for name in book.sheet_names:
            sheet = book.get_sheet_by_name(name)
            sections.append(_section(name, room.fill(sheet.iter_rows())))
    except python_calamine.PasswordError as error:
        raise ExtractionFailed(Reason.ENCRYPTED) from error
    except (python_calamine.CalamineError, OSError, ValueError):
        return None
    except BaseException as error:
        if type(error).__name__ == _PANIC:
            return None
        raise
    return Content(sections if any(len(section) > 1 for section in sections) else [])


def _by_xlrd(data: bytes, scope: Scope) -> Content:
    room = _Room(scope)
    try:
        book = xlrd.open_workbook(file_contents=data, logfile=io.StringIO())
        sections = [_section(sheet.name, room.fill(xlrd_rows(sheet, book.datemode))) for sheet in book.sheets()]
    except (xlrd.XLRDError, LookupError, ValueError, TypeError, AssertionError, struct.error, OSError) as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
    return Content(sections)


def xlrd_rows(sheet: Any, datemode: int) -> Iterator[list[object]]:
    """Values of an old sheet, those of dates, truths and errors as what they mean."""
    for number in range(sheet.nrows):
        row: list[object] = []
        for cell in sheet.row(number):
            value = cell.value
            if cell.ctype == xlrd.XL_CELL_DATE:
                value = xlrd.xldate.xldate_as_datetime(value, datemode)
            elif cell.ctype == xlrd.XL_CELL_BOOLEAN:
                value = bool(value)
            elif cell.ctype == xlrd.XL_CELL_ERROR:
                value = xlrd.error_text_from_code.get(value, "")
            row.append(value)
        yield row


# Delimited text


def _delimiter(sample: str) -> str:
    """The character that cuts most lines into the same number of cells."""

    def agreement(mark: str) -> tuple[int, int]:
        widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=mark) if row]
        usual = max(set(widths), key=widths.count, default=1)
        return (widths.count(usual) if usual > 1 else 0), usual

    return max(_DELIMITERS, key=agreement)


@dataclass(frozen=True, slots=True)
class Delimited:
    """Rows in text form, told from the text itself. Spreadsheet programs show them with the same numbers: a line that
    names the delimiter is no row, and a cell may have several lines."""

    text: str
    delimiter: str
    quoted: bool

    @classmethod
    def of(cls, data: bytes) -> Delimited:
        text = plain.visible(plain.decode(data))
        told = re.match(r'"?sep=(.)"?\r?\n', text)
        text = text[told.end() :] if told else text
        sample = "\n".join(re.split(r"\r\n|\r|\n", text[: 1 << 14])[:50])
        mark = told.group(1) if told else _delimiter(sample)
        # A quotation mark without its other half is no quotation: it would swallow all the rows behind it.
        return cls(text, mark, text.count('"') % 2 == 0)

    def rows(self) -> Iterator[list[str]]:
        """Raises csv.Error."""
        csv.field_size_limit(1 << 20)
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        yield from csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, quoting=quoting)


def read_delimited(file: BinaryIO, scope: Scope) -> Content:
    """CSV and TSV in any encoding, whichever character is between the cells."""
    try:
        return Content([_section("", _Room(scope).fill(Delimited.of(file.read()).rows()))])
    except csv.Error as error:
        raise ExtractionFailed(Reason.DAMAGED) from error
