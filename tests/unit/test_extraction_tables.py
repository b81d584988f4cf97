"""Tables through the real child: regions, headers, types, no cell lost. Then questions that must not work."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from apps.files.extraction import ExtractionFailed, Reason
from apps.files.extraction.tabular.run import ASK, Refused, ask, make_tables
from apps.files.extraction.tabular.types import Answer, TableColumn, TableRecord
from apps.files.extraction.types import Limits
from apps.files.extraction.wire import Garbage, decode
from tests.factories import formats

Rows = Sequence[Sequence[object]]


@dataclass
class Made:
    record: TableRecord
    path: Path

    @property
    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.record.columns}

    def all(self, columns: str = "* EXCLUDE (_row)") -> list[tuple[Any, ...]]:
        with duckdb.connect() as engine:
            return engine.execute(f"SELECT {columns} FROM read_parquet('{self.path}') ORDER BY _row").fetchall()


def tables_of(folder: Path, data: bytes, kind: str, limits: Limits | None = None) -> list[Made]:
    source = folder / "source"
    source.write_bytes(data)
    made: list[Made] = []

    def keep(record: TableRecord, parquet: bytes) -> None:
        path = folder / f"{len(made)}.parquet"
        path.write_bytes(parquet)
        made.append(Made(record, path))

    more = {} if limits is None else {"limits": limits}
    make_tables(source, kind, name="file", on_table=keep, **more)
    return made


def delimited(rows: Rows, delimiter: str = ",", encoding: str = "utf-8") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode(encoding)


def one(folder: Path, cells: Sequence[str], *, delimiter: str = ",") -> Made:
    """The table of one column of these cells beside one of words."""
    (made,) = tables_of(folder, delimited([["value", "word"], *([cell, "w"] for cell in cells)], delimiter), "csv")
    return made


@pytest.mark.parametrize(
    ("cells", "kind", "first"),
    [
        (["1", "20", "-3"], "integer", "1"),
        (["1,234", "22", "1,000,000"], "integer", "1234"),
        (["1.5", "20", "-3.25"], "decimal", "1.50"),
        (["1.234,56", "20,5", "-3,25"], "decimal", "1234.56"),
        (["1 234,5", "12 000,25", "7"], "decimal", "1234.50"),
        (["$1,234.50", "$2", "$3.25"], "decimal", "1234.50"),
        (["12 %", "15.5%", "3%"], "decimal", "12.0"),
        (["1e3", "2.5E-2", "3"], "decimal", "1000.0"),
        (["2024-01-31", "1999-12-01", "2024-02-29"], "date", "2024-01-31"),
        (["31.1.2024", "01.12.1999", "29.02.2024"], "date", "2024-01-31"),
        (["31/01/2024", "01/12/1999", "29/02/2024"], "date", "2024-01-31"),
        (["01/31/2024", "12/01/1999", "02/29/2024"], "date", "2024-01-31"),
        (["31 Jan 2024", "1 Dec 1999", "29 Feb 2024"], "date", "2024-01-31"),
        (["2024-01-31 10:20", "2024-01-31T10:20:30", "2024-02-01"], "timestamp", "2024-01-31 10:20:00"),
        (["10:20", "23:59:59", "0:01"], "time", "10:20:00"),
        (["TRUE", "false", "True"], "boolean", "True"),
        (["01234", "20095", "00501"], "text", "01234"),
        (["+49 30 1", "+491701", "030"], "text", "+49 30 1"),
        (["03/04/2024", "05/06/2024", "07/08/2024"], "text", "03/04/2024"),
        (["yes", "no", "yes"], "text", "yes"),
        (["12345678901234567890", "1", "2"], "text", "12345678901234567890"),
    ],
)
def test_what_the_cells_of_a_column_are(tmp_path: Path, cells: list[str], kind: str, first: str) -> None:
    made = one(tmp_path, cells)
    assert made.types["value"] == kind
    assert str(made.all("value")[0][0]) == first


def test_a_comma_with_semicolons_between_cells_is_decimal(tmp_path: Path) -> None:
    assert [row[0] for row in one(tmp_path, ["1,234", "0,500"], delimiter=";").all("CAST(value AS VARCHAR)")] == [
        "1.234",
        "0.500",
    ]


def test_nothing_is_lost_of_a_column_that_is_mostly_numbers(tmp_path: Path) -> None:
    cells = [str(number) for number in range(98)]
    cells[40:40] = ["n/a", "see note 3"]
    made = one(tmp_path, cells)
    column = made.record.columns[0]
    assert (column.type, column.raw, column.unread) == ("integer", "value_text", 2)
    assert [row[0] for row in made.all("value_text")] == cells
    assert [row[0] for row in made.all("value")][39:43] == [39, None, None, 40]
    assert "2 cells of value are no integer" in made.record.notes[0]


def test_a_column_of_many_kinds_stays_text(tmp_path: Path) -> None:
    cells = ["12", "word", "3", "2024-01-01", "x", "4"]
    made = one(tmp_path, cells)
    assert (made.types["value"], [row[0] for row in made.all("value")]) == ("text", cells)


def test_words_far_behind_the_sample_are_kept(tmp_path: Path) -> None:
    cells = ["1"] * 30_000 + ["twelve"] + ["2.75"] * 3_000
    made = one(tmp_path, cells)
    assert made.types["value"] == "decimal"
    assert [row[0] for row in made.all("value_text")] == cells
    assert str(made.all("sum(value) OVER ()")[0][0]) == "38250.00"


def test_leading_zeros_far_behind_the_sample_make_it_text(tmp_path: Path) -> None:
    cells = [str(number) for number in range(1, 20_000)] + ["007"]
    made = one(tmp_path, cells)
    assert (made.types["value"], [row[0] for row in made.all("value")]) == ("text", cells)


def test_quotes_line_breaks_and_long_rows_survive(tmp_path: Path) -> None:
    rows = [["a", "b"], ['say "so"', "two\nlines"], ["x", ""], ["1", "2", "3"], [" padded ", "é"]]
    (made,) = tables_of(tmp_path, delimited(rows), "csv")
    assert made.all() == [('say "so"', "two\nlines", None), ("x", None, None), ("1", "2", 3), (" padded ", "é", None)]


def test_a_line_that_names_the_delimiter_and_half_a_quotation(tmp_path: Path) -> None:
    (made,) = tables_of(tmp_path, b'sep=;\r\na;b\r\n5" pipe;1\r\nx;2\r\n', "csv")
    assert (made.record.header_row, made.all("_row, a, b")) == (1, [(2, '5" pipe', 1), (3, "x", 2)])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    rows = [["Stadt", "Größe"], *([f"Köln {n}", "größer"] for n in range(30))]
    (made,) = tables_of(tmp_path, delimited(rows, ";", encoding), "csv")
    assert [column.name for column in made.record.columns] == ["stadt", "grösse"]
    assert made.all()[0] == ("Köln 0", "größer")


def test_tables_of_a_sheet_over_and_beside_one_another(tmp_path: Path) -> None:
    rows: Rows = [
        ["Quarterly report"],
        [],
        ["Site", "Depth", None, "Person", "Age"],
        ["North", 4.5, None, "Ada", 36],
        ["South", 7.25, None, "Alan", 41],
        [],
        [],
        [],
        [],
        ["Code", "Meaning"],
        ["A", "all"],
        ["B", "both"],
    ]
    made = tables_of(tmp_path, formats.workbook({"Report": rows}), "sheet")
    assert [(m.record.name, m.record.first_row, m.record.first_column, m.record.rows) for m in made] == [
        ("report", 4, 1, 2), ("report_2", 4, 4, 2), ("report_3", 11, 1, 2),
    ]  # fmt: skip
    assert made[1].all() == [("Ada", 36), ("Alan", 41)]


def test_rows_that_go_on_below_a_gap_belong_together(tmp_path: Path) -> None:
    rows: Rows = [["Site", "Depth"], ["North", 4.5], [], ["South", 7.25], [], ["Total", 11.75]]
    (made,) = tables_of(tmp_path, formats.workbook({"S": rows}), "sheet")
    assert made.all("_row, site") == [(2, "North"), (4, "South"), (6, "Total")]
    assert made.record.notes == ("Row 6 looks like a total of the others: WHERE _row <> 6 leaves it out.",)


def test_late_headers_and_headers_in_two_rows(tmp_path: Path) -> None:
    rows: Rows = [
        ["Company: Example"],
        ["As of", "2024-01-01"],
        [None, "2023", None, "2024", None],
        ["Region", "Units", "Price", "Units", "Price"],
        ["North", 1, 2.5, 3, 4.5],
        ["South", 5, 6.5, 7, 8.5],
    ]
    (made,) = tables_of(tmp_path, formats.workbook({"S": rows}), "sheet")
    assert [column.label for column in made.record.columns] == [
        "Region", "2023 Units", "2023 Price", "2024 Units", "2024 Price",
    ]  # fmt: skip
    assert (made.record.header_row, made.all("c_2024_units")) == (4, [(3,), (7,)])
    assert made.record.title.startswith("Company: Example As of")


def test_merged_cells_stand_for_each_of_them(tmp_path: Path) -> None:
    rows: Rows = [["Region", "City", "People"], ["North", "A", 1], [None, "B", 2], ["South", "C", 3]]
    (made,) = tables_of(tmp_path, formats.workbook({"S": rows}, merged=["A2:A3"]), "sheet")
    assert made.all("region") == [("North",), ("North",), ("South",)]


def test_a_sheet_without_header_has_columns_by_number(tmp_path: Path) -> None:
    (made,) = tables_of(tmp_path, delimited([[1, 2.5], [3, 4.5], [5, 6.5]]), "csv")
    assert (made.record.header_row, list(made.types), made.record.rows) == (None, ["column_1", "column_2"], 3)


def test_names_that_sql_keeps_for_itself(tmp_path: Path) -> None:
    rows: Rows = [["Order", "2024", "Group", "Group", "", "%"], *([n, n, "a", "b", "c", "d"] for n in range(5))]
    (made,) = tables_of(tmp_path, delimited(rows), "csv")
    assert list(made.types) == ["order_", "c_2024", "group_", "group__2", "column_5", "column_6"]


def test_more_rows_than_a_sheet_has_pages_for(tmp_path: Path) -> None:
    rows: Rows = [["id", "text"], *([n, "x" * 100] for n in range(60_000))]
    (made,) = tables_of(tmp_path, delimited(rows), "csv")
    assert (made.record.rows, made.all("max(id) OVER ()")[0]) == (60_000, (59_999,))


def test_a_child_with_too_little_memory_says_so(tmp_path: Path) -> None:
    rows: Rows = [["id", "text"], *([n, os.urandom(40).hex()] for n in range(200_000))]
    with pytest.raises(ExtractionFailed) as failed:
        tables_of(tmp_path, delimited(rows), "csv", Limits(memory_bytes=260 << 20))
    assert failed.value.reason in (Reason.OUT_OF_MEMORY, Reason.CRASHED)


@pytest.mark.parametrize(
    "message",
    [
        {"name": "a b"}, {"rows": -1}, {"first_row": 0}, {"columns": []}, {"size": 0}, {"header_row": 9},
        {"sheet": "x" * 300},
    ],
)  # fmt: skip
def test_a_child_that_was_taken_over_is_not_believed(message: dict[str, Any]) -> None:
    good = TableRecord("t", "", "", 1, 2, 3, 1, 1, 2, (TableColumn("a", "a", "text"),), (), 10)
    assert decode(json.dumps({"table": asdict(good)}).encode()).table == good
    with pytest.raises(Garbage):
        decode(json.dumps({"table": {**asdict(good), **message}}).encode())


# Questions


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "1.parquet"
    with duckdb.connect() as engine:
        engine.execute(f"COPY (SELECT i AS _row, i AS n FROM range(20000) r(i)) TO '{path}' (FORMAT parquet)")
    return path


def question(numbers: Path, sql: str, limits: Limits = ASK) -> Answer:
    return ask(sql, {"t": numbers}, max_rows=100, max_bytes=10_000, limits=limits)


def test_an_answer_is_bounded_in_rows_and_bytes(numbers: Path) -> None:
    many = question(numbers, "SELECT n FROM t")
    assert (len(many.rows), many.truncated) == (100, True)
    wide = question(numbers, "SELECT repeat('x', 5000) AS x FROM t LIMIT 50")
    assert (len(wide.rows) < 10, wide.truncated, len(str(wide.rows[0][0]))) == (True, True, 2_000)


def test_the_engine_draws_no_progress_between_our_words(numbers: Path) -> None:
    """It would after two seconds, on the standard output."""
    assert question(numbers, "SELECT current_setting('enable_progress_bar')").rows == ((False,),)


def test_cells_are_exact(numbers: Path) -> None:
    sql = (
        "SELECT 9007199254740993, 0.1::DECIMAL(4,2), 12345678901234567890.12::DECIMAL(38,2), DATE '2024-01-31', "
        "true, NULL, 'inf'::DOUBLE, [1, 2]"
    )
    assert question(numbers, sql).rows == (
        ("9007199254740993", 0.1, "12345678901234567890.12", "2024-01-31", True, None, "inf", "[1, 2]"),
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT content FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/*')",
        "COPY t TO '/tmp/t.csv'",
        "COPY t TO 't.csv'",
        "EXPORT DATABASE '/tmp/t'",
        "ATTACH '/tmp/t.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT * FROM read_parquet('http://127.0.0.1/x')",
        "SET threads = 8",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "RESET memory_limit",
        "SET allowed_paths = ['/etc/passwd']",
    ],
)
def test_the_engine_is_shut_whatever_it_is_told(numbers: Path, sql: str) -> None:
    """What the check of the SQL would refuse reaches the child here, and still comes to nothing."""
    with pytest.raises(Refused):
        question(numbers, sql)


def test_a_table_of_somebody_else_cannot_be_opened(numbers: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    other.write_bytes(numbers.read_bytes())
    with pytest.raises(Refused):
        question(numbers, f"SELECT * FROM read_parquet('{other}')")


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        ("SELECT length(repeat('x', 2000000000))", {Reason.OUT_OF_MEMORY, Reason.CRASHED}),
        ("SELECT string_agg(repeat('x', 1000000), '') FROM t", {Reason.OUT_OF_MEMORY, Reason.CRASHED}),
        ("SELECT list(repeat('x', 100000)) FROM t", {Reason.OUT_OF_MEMORY, Reason.CRASHED}),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
         {Reason.TIMED_OUT, Reason.OUT_OF_MEMORY}),
        ("SELECT count(*) FROM t a, t b, t c WHERE a.n + b.n < c.n", {Reason.TIMED_OUT}),
    ],
)  # fmt: skip
def test_a_bomb_is_stopped(numbers: Path, sql: str, reasons: set[Reason]) -> None:
    with pytest.raises(ExtractionFailed) as failed:
        question(numbers, sql, Limits(wall_s=8.0, page_s=3.0, cpu_s=4, memory_bytes=1 << 30, scratch_bytes=1 << 20))
    assert failed.value.reason in reasons
