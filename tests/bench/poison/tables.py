"""Spreadsheets and delimited text: more rows than anybody reads, cells at the end of the world, lying regions."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from tests.bench.poison.types import Poison, named
from tests.factories import documents, formats, ole

FAR = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'


def _sheet(raw: str) -> bytes:
    return formats.workbook({"a": [["first"]]}, raw=raw)


def million_rows() -> bytes:
    rows = "".join(
        f'<row r="{n}"><c r="A{n}"><v>{n}</v></c><c r="B{n}"><v>{n}</v></c></row>' for n in range(2, 1_000_001)
    )
    return _sheet(rows)


def _records(*records: tuple[int, bytes]) -> bytes:
    """An Excel 97 workbook of these records."""
    stream = b"".join(struct.pack("<HH", kind, len(data)) + data for kind, data in records)
    return ole.container({"Workbook": stream.ljust(4_096, b"\0")})


def open_sheet(cells: str) -> bytes:
    names = "office table text"
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names.split())
    table = f'<table:table table:name="a">{cells}</table:table>'
    return formats.package(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {spaces}><office:body><office:spreadsheet>{table}"
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def below_rows(ending: str, **makers: Callable[[], bytes]) -> Iterator[Poison]:
    """Each as it is, and below ordinary rows, so that it passes for a table."""
    head = b"name,place,amount\nAda,London,1\n" * 40
    for poison in named(ending, **makers):
        yield poison
        yield Poison(f"below-rows-{poison.name}", lambda make=poison.make: head + make())  # type: ignore[misc]


def poisons() -> Iterator[Poison]:
    start, end = (0x0809, struct.pack("<HHHH8x", 0x0600, 5, 0, 0)), (0x000A, b"")
    yield from named(
        "xlsx",
        cell_at_the_end=lambda: _sheet(FAR),
        cell_at_the_end_first=lambda: _sheet('<row r="1048576"><c r="XFD1048576"><v>2</v></c></row><row r="1"/>'),
        cells_in_the_corners=lambda: _sheet(
            '<row r="1"><c r="XFD1"><v>1</v></c></row><row r="1048576"><c r="A1048576"><v>2</v></c></row>'
        ),
        row_beyond=lambda: _sheet('<row r="99999999999"><c r="ZZZZZZ99999999999"><v>2</v></c></row>'),
        million_rows=million_rows,
        wide_rows=lambda: _sheet("<row>" + "<c><v>1</v></c>" * 16_384 + "</row>"),
        wider_than_allowed=lambda: _sheet("<row>" + "<c><v>1</v></c>" * 400_000 + "</row>"),
        shared_string_beyond=lambda: _sheet('<row><c t="s"><v>999999999</v></c></row>'),
        endless_number=lambda: _sheet(f"<row><c><v>{'9' * 3_000_000}</v></c></row>"),
        many_sheets=lambda: formats.workbook({f"s{n}": [["x"]] for n in range(2_000)}),
        deep=lambda: _sheet("<row>" * 100_000),
    )  # fmt: skip
    yield from named(
        "xls",
        region_that_lies=lambda: _records(start, (0x0200, struct.pack("<IIHHH", 0, 0xFFFFFFFF, 0, 0xFFFF, 0)), end),
        string_table_that_lies=lambda: _records(start, (0x00FC, struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF)), end),
        sheet_beyond=lambda: _records(start, (0x0085, struct.pack("<IHB", 0xFFFFFFF0, 0, 1) + b"\0a"), end),
        records_without_end=lambda: _records(start, *[(0x0203, b"\xff" * 14)] * 20_000),
        excel_2=lambda: b"\x09\0\x04\0\2\0\x10\0" + b"\3\0\x0f\0" + b"\xff" * 15 + b"\x0a\0\0\0",
    )
    yield from named(
        "ods",
        repeated_rows=lambda: open_sheet(
            '<table:table-row table:number-rows-repeated="1048576"><table:table-cell '
            'table:number-columns-repeated="16384" office:value-type="string"><text:p>x</text:p></table:table-cell>'
            "</table:table-row>"
        ),
        cell_at_the_end=lambda: open_sheet(
            '<table:table-row table:number-rows-repeated="1048575"/><table:table-row><table:table-cell '
            'table:number-columns-repeated="16383"/><table:table-cell office:value-type="float" office:value="1"/>'
            "</table:table-row>"
        ),
        negative_repeats=lambda: open_sheet(
            '<table:table-row table:number-rows-repeated="-9"><table:table-cell table:number-columns-repeated="-9"/>'
            "</table:table-row>"
        ),
    )
    yield from below_rows(
        "csv",
        million_rows=lambda: b"number,square\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(1_000_000)),
        quote_without_end=lambda: b'"' + b"a\n" * 10_000_000,
        wide=lambda: b"a," * 10_000_000,
        quotes=lambda: b'"' * 10_000_001,
        every_delimiter=lambda: b",;\t|" * 3_000_000,
        long_cell=lambda: b"a,b\n" + b"x" * 30_000_000 + b",1\n",
        null_bytes=lambda: b"a,b\n\0,\0\n" * 500_000,
        half_utf16=lambda: "a;b\n".encode("utf-16")[:-1] * 99_999,
        formula_injection=lambda: b"=cmd|' /C calc'!A0,@SUM(1)\n" * 9,
    )
    yield from below_rows("tsv", empty_cells=lambda: b"\t" * 20_000_000)
    yield from named(
        "xlsb", not_one=lambda: documents.archive({"[Content_Types].xml": b"x", "xl/workbook.bin": b"\xff" * 9_000})
    )
