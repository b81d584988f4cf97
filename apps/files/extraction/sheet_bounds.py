"""Keeps a workbook's sheets within what can be held: calamine makes a cell of every place between the first and the
last that is used, so that two cells in opposite corners would take half a terabyte.

Looked at are the names of rows and columns in the XML of XLSX. Most sheets are told to be small enough by two searches;
of one that is not, rows and cells beyond the bounds are left out, and its beginning is read.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib

MAX_CELLS = 1 << 24
_MOST_COLUMNS = 1 << 14
_LETTERS = tuple(bytes((code,)) for code in range(ord("Z"), ord("A"), -1))
_WIDTHS = tuple(1 << power for power in range(4, 15))
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_ROW = re.compile(rb'row\s[^>]*?\br="(\d+)"')
_CELL = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]+)(\d+)"')
_WIDE = re.compile(rb'\br="([A-Z]{2,})\d')
_CELL_WHOLE = re.compile(rb'<((?:\w+:)?c)\b[^>]*?\br="([A-Z]+)(\d+)"[^>]*?(?:/>|>.*?</\1>)', re.DOTALL)


def within_bounds(data: bytes) -> tuple[bytes, bool]:
    """The workbook with no sheet beyond MAX_CELLS places, and whether anything was left out for that.

    What is no readable XLSX is returned as it is, for its reader to judge. The caller has checked how far it unpacks.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            sheets = [name for name in book.namelist() if _SHEET.fullmatch(name)]
            bounded = {name: cut for name in sheets if (cut := _bounded(book.read(name))) is not None}
            return (_repacked(book, bounded), True) if bounded else (data, False)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError):
        return data, False


def _repacked(book: zipfile.ZipFile, replaced: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in book.namelist():
            packed.writestr(name, replaced[name] if name in replaced else book.read(name))
    return buffer.getvalue()


def _bounded(xml: bytes) -> bytes | None:
    """The sheet without the cells that are too far out; None when it needs no change."""
    rows = max(_rows(xml), default=1)
    if rows * _MOST_COLUMNS <= MAX_CELLS or rows * _columns(xml) <= MAX_CELLS:
        return None
    last_row, last_column = _corner(xml)

    def kept(cell: re.Match[bytes]) -> bytes:
        inside = int(cell.group(3)) <= last_row and column(cell.group(2)) <= last_column
        return cell.group() if inside else b""

    return _CELL_WHOLE.sub(kept, xml)


def _rows(xml: bytes) -> list[int]:
    """Numbers of the rows, also of those that only their cells tell."""
    named = [int(number) for number in _ROW.findall(xml)]
    return named or [int(number) for _, number in _CELL.findall(xml)]


def _columns(xml: bytes) -> int:
    """The number of the last column; one by one from Z on, because that is quicker than to look at every cell."""
    if wide := set(_WIDE.findall(xml)):
        return max(map(column, wide))
    return next((column(letter) for letter in _LETTERS if b'r="' + letter in xml), 1)


def _corner(xml: bytes) -> tuple[int, int]:
    """The last row and column to keep, so that as many cells as possible are."""
    cells = [(int(row), column(name)) for name, row in _CELL.findall(xml)]
    corners = [(MAX_CELLS // width, width) for width in _WIDTHS]
    return max(corners, key=lambda corner: sum(row <= corner[0] and at <= corner[1] for row, at in cells))


def column(name: bytes) -> int:
    """26 for Z, 27 for AA."""
    number = 0
    for letter in name[:8]:
        number = number * 26 + letter - 64
    return number
