"""Cells far from the others: what is near is read, and it is said that there was more."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from apps.files.extraction import ExtractionFailed, Limits, Reason, run, sheet_bounds
from apps.files.extraction.sheet_bounds import column, within_bounds
from apps.files.extraction.types import Document
from tests.factories import formats, ole


def sheet(raw: str) -> bytes:
    return formats.workbook({"a": []}, raw=raw)


def cell(place: str, value: int) -> str:
    row = place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return f'<row r="{row}"><c r="{place}"><v>{value}</v></c></row>'


def read(folder: Path, data: bytes) -> tuple[Document, str]:
    path, texts = folder / "object", list[str]()
    path.write_bytes(data)
    document = run(path, "sheet", limits=Limits(wall_s=30), on_page=lambda page: texts.append(page.text))
    return document, "\n".join(texts)


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (cell("A1", 11) + cell("XFD1048576", 22), "11"),
        (cell("XFD1048576", 22) + cell("A1", 11), "11"),
        (cell("B1", 11) + cell("B1048576", 22) + cell("XFD9", 33), "11 22"),
        (cell("A1", 11) + cell("ZZZZZZZ99999999999", 22), "11"),
    ],
)
def test_the_near_cells_are_read_and_it_is_said_that_there_are_more(tmp_path: Path, raw: str, found: str) -> None:
    document, text = read(tmp_path, sheet(raw))
    assert document.notices == ("cut_short",)
    assert [word for word in text.split() if word.isdigit()] == found.split()


def test_ordinary_sheets_are_not_touched() -> None:
    long = formats.workbook({"a": [["x"]]}, raw="".join(cell(f"A{row}", row) for row in range(2, 2_000)))
    wide = sheet(cell("XFD1", 1))
    for data in (long, wide, b"no archive at all"):
        assert within_bounds(data) == (data, False)


def test_long_sheets_of_few_columns_are_told_by_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet_bounds, "MAX_CELLS", 1 << 16)
    fits, too_wide = sheet(cell("C1", 1) + cell("A20000", 2)), sheet(cell("D1", 1) + cell("A20000", 2))
    assert not within_bounds(fits)[1]
    assert within_bounds(too_wide)[1]


def test_columns_are_numbered_as_people_do() -> None:
    assert [column(name) for name in (b"A", b"Z", b"AA", b"XFD")] == [1, 26, 27, 16_384]


def test_numbers_that_lie_are_damage(tmp_path: Path) -> None:
    """calamine panics over the place of this sheet."""
    records = (
        (0x0809, struct.pack("<HHHH8x", 0x0600, 5, 0, 0)),
        (0x0085, struct.pack("<IHB", 0xFFFFFFF0, 0, 1) + b"\0a"),
    )
    stream = b"".join(struct.pack("<HH", kind, len(data)) + data for kind, data in records)
    with pytest.raises(ExtractionFailed) as failed:
        read(tmp_path, ole.container({"Workbook": stream.ljust(4_096, b"\0")}))
    assert failed.value.reason is Reason.DAMAGED
