"""Where a person finds what was read, in files whose pages nobody knows: rows of sheets, slides, parts of mails."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from apps.files.extraction import PageRecord, run
from apps.files.extraction.types import Category, Element, Kind, Locator
from apps.files.extraction.wire import Garbage, decode
from apps.files.indexing.passages import Draft, cut
from tests.factories import formats, ole, pictured, traps

Places = list[tuple[str, Locator | None]]


def pages_of(folder: Path, data: bytes, kind: Kind) -> list[PageRecord]:
    path = folder / "object"
    path.write_bytes(data)
    pages: list[PageRecord] = []
    run(path, kind, on_page=pages.append)
    return pages


def drafts_of(pages: list[PageRecord]) -> list[Draft]:
    return [draft for page in pages for draft in cut(page.elements_json(), page.headings_json())]


def places(folder: Path, data: bytes, kind: Kind) -> Places:
    """The first words of each passage, and where it is found."""
    return [(draft.text.split("\n")[0], draft.locator) for draft in drafts_of(pages_of(folder, data, kind))]


def table_rows(folder: Path, data: bytes, kind: Kind) -> list[tuple[str, tuple[int, ...]]]:
    """The first line of each table, and the rows that its lines are."""
    tables = [
        element
        for page in pages_of(folder, data, kind)
        for element in page.elements
        if element.category is Category.TABLE
    ]
    return [(table.text.split("\n")[0], table.rows) for table in tables]


# Rows


def test_regions_have_the_rows_of_their_sheet(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [None],
        ["Costs of the survey"],
        [None],
        [None],
        ["Site", "Depth", None, "Person", "Age"],
        ["North", 4.5, None, "Ada", 36],
        ["South", 7.25, None, None, None],
        ["West", 1.25, None, "Alan", 41],
        [None],
        ["Code"],
    ]
    data = formats.workbook({"Cover": [["hello"]], "Costs": rows})
    assert table_rows(tmp_path, data, "sheet") == [
        ("hello", (1,)),
        ("Costs of the survey", (2,)),
        ("Site | Depth", (5, 6, 7, 8)),
        ("Person | Age", (5, 6, 8)),
        ("Code", (10,)),
    ]
    assert places(tmp_path, data, "sheet") == [
        ("Cover", Locator(sheet="Cover", rows=(1, 1))),
        ("Costs", Locator(sheet="Costs", rows=(2, 10))),
    ]


def test_a_sheet_that_begins_far_down_and_merged_cells(tmp_path: Path) -> None:
    def row(number: int, **cells: str) -> str:
        inside = (f'<c r="{at}{number}" t="inlineStr"><is><t>{text}</t></is></c>' for at, text in cells.items())
        return f'<row r="{number}">{"".join(inside)}</row>'

    raw = row(40, C="Group", D="Sum") + row(41, C="over three rows", D="1") + row(42, D="2") + row(43, D="3")
    data = formats.workbook({"S": []}, raw=raw + row(90, C="late"), merged=["C41:C43"])
    assert table_rows(tmp_path, data, "sheet") == [("Group | Sum", (40, 41, 42, 43)), ("late", (90,))]


def test_open_document_rows_that_stand_for_several(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    empty = '<table:table-row table:number-rows-repeated="6"><table:table-cell/></table:table-row>'
    rows = "".join(f"<table:table-row>{cell.format(text)}</table:table-row>" for text in ("a", "b"))
    body = f'<table:table table:name="S">{empty}{rows}{empty}{rows}</table:table>'
    with zipfile.ZipFile(io.BytesIO(formats.open_document(body, kind="spreadsheet"))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = formats.package({**members, "META-INF/manifest.xml": "<m/>"})
    assert table_rows(tmp_path, data, "sheet") == [("a", (7, 8)), ("a", (15, 16))]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"a,b\n1,2\n3,4\n", (1, 2, 3)),
        (b'a,b\n"one\r\n\r\nand two",2\n3,4\n', (1, 2, 3)),
        (b"sep=;\na;b\n1;2\n", (1, 2)),
        (b"\n\n\na,b\n1,2\n", (4, 5)),
        ("a,b\r\none\u2028line,2\r\n3,4\r\n".encode(), (1, 2, 3)),
        ("a;b\r1;2\r".encode("utf-16"), (1, 2)),
    ],
)
def test_rows_of_delimited_text_are_those_of_a_spreadsheet(tmp_path: Path, data: bytes, rows: tuple[int, ...]) -> None:
    ((_, found),) = table_rows(tmp_path, data, "csv")
    assert found == rows


@pytest.mark.parametrize("kind", ["sheet", "csv"])
def test_each_passage_of_a_long_table_has_its_own_rows(tmp_path: Path, kind: Kind) -> None:
    """Rows say their own numbers; every seventh is empty, and one is longer than a page."""
    cells = [[f"r{number}", "word " * (number % 30)] if number % 7 else [] for number in range(1, 1_200)]
    cells[599] = ["r600", "sentence. " * 700]
    data = (
        formats.workbook({"Log": cells}) if kind == "sheet" else "".join(f"{','.join(row)}\n" for row in cells).encode()
    )
    drafts = drafts_of(pages_of(tmp_path, data, kind))
    assert len(drafts) > 50
    for draft in drafts:
        said = [int(number) for number in re.findall(r"\br(\d+)\b", draft.text)]
        said = said if draft.text.startswith(("r", "Log")) else [600, *said]
        assert draft.locator is not None
        assert draft.locator.sheet == ("Log" if kind == "sheet" else "")
        assert draft.locator.rows == (said[0], said[-1])
    assert sum(draft.locator.rows == (600, 600) for draft in drafts if draft.locator) >= 3


def test_what_stands_beside_the_cells_names_the_sheet(tmp_path: Path) -> None:
    comment = "<comments><commentList><comment ref='A1'><text><t>a remark</t></text></comment></commentList></comments>"
    names = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members = {
        "xl/worksheets/_rels/s0.xml.rels": formats.relations([("comments", "../comments1.xml")]),
        "xl/comments1.xml": comment.replace("<comments>", f'<comments xmlns="{names}">'),
    }
    (page,) = pages_of(tmp_path, traps.workbook('<row r="3"><c r="A3"><v>1</v></c></row>', members=members), "sheet")
    assert [(element.text, element.locator) for element in page.elements] == [
        (text, Locator(sheet="Data")) for text in ("Data", "1", "Comment on A1: a remark")
    ]


def test_passages_of_pages_that_were_read_before_have_none() -> None:
    (draft,) = cut([{"category": "Table", "text": "a | b\n1 | 2"}], [])
    assert draft.locator is None


# Slides and parts


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("pptx", formats.presentation([("First", ["alpha " * 900]), ("", []), ("Third", ["gamma"])])),
        ("ppt", ole.slides([("First", "alpha " * 900), ("", ""), ("Third", "gamma")])),
        (
            "odp",
            formats.open_document(
                "".join(
                    f"<drawing:page><text:h>{title}</text:h><text:p>{text}</text:p></drawing:page>"
                    for title, text in [("First", "alpha " * 900), ("-", ""), ("Third", "gamma")]
                ),
                kind="presentation",
            ),
        ),
    ],
)
def test_a_slide_keeps_its_number_where_one_takes_two_pages(tmp_path: Path, kind: Kind, data: bytes) -> None:
    pages = pages_of(tmp_path, data, kind)
    assert len(pages) > 3
    found = {draft.text.split("\n")[0]: draft.locator for draft in drafts_of(pages)}
    assert (found["First"], found["Third"]) == (Locator(slide=1), Locator(slide=3))


def test_parts_of_a_mail(tmp_path: Path) -> None:
    inner = formats.mail("Inner", "the inner text", attachments={"b.csv": b"x,y\n1,2\n"})
    data = formats.mail(
        "Offer",
        "see below",
        attachments={"costs.xlsx": formats.workbook({"Costs": [["a"], ["b"]]}), "inner.eml": inner, "c.exe": b"MZ\0\0"},
    )
    assert places(tmp_path, data, "eml") == [
        ("Offer", Locator(part="body")),
        ("Attachment: costs.xlsx", Locator(part="costs.xlsx", sheet="Costs", rows=(1, 2))),
        ("Attachment: inner.eml", Locator(part="inner.eml, body")),
        ("Attachment: b.csv", Locator(part="inner.eml, b.csv", rows=(1, 2))),
        ("Attachment: c.exe", Locator(part="c.exe")),
    ]


def test_parts_of_a_box_are_told_by_the_mails_subject(tmp_path: Path) -> None:
    mark = b"From ada@example.org Mon Jan  1 10:00:00 2024\n"
    box = mark + b"Subject: Ebb\n\nlow\n\n" + mark + b"From: ada@example.org\n\nhigh\n"
    assert [where for _, where in places(tmp_path, box, "eml")] == [
        Locator(part="Ebb, body"),
        Locator(part="mail 2, body"),
    ]


def test_parts_of_a_tape_and_of_a_document_that_another_stands_for(tmp_path: Path) -> None:
    tape = formats.taped({"b/costs.csv": b"x,y\n1,2\n"})
    assert places(tmp_path, tape, "zip") == [("Attachment: b/costs.csv", Locator(part="b/costs.csv", rows=(1, 2)))]
    assert places(tmp_path, pictured.standing_word(b"<p>low water</p>"), "docx") == [("low water", None)]


def test_parts_of_a_message_of_outlook(tmp_path: Path) -> None:
    data = ole.message({0x0037: "Subject", 0x1000: "Text."}, {"data.csv": b"x;y\n1,5;2\n"})
    assert places(tmp_path, data, "msg") == [
        ("Subject", Locator(part="body")),
        ("Attachment: data.csv", Locator(part="data.csv", rows=(1, 2))),
    ]


def test_files_inside_a_pdf_have_pages_of_their_own_unless_they_are_pinned_to_one(tmp_path: Path) -> None:
    found = places(tmp_path, traps.portfolio_pdf({"b.csv": b"x,y\n1,2\n"}), "pdf")
    assert found == [("The cover page", None), ("Attachment: b.csv", Locator(part="b.csv", rows=(1, 2)))]
    assert {locator for _, locator in places(tmp_path, traps.annotated_pdf(), "pdf")} == {None}


# What the child may say


def message(**fields: Any) -> bytes:
    element = Element(Category.TABLE, "a | b\n1 | 2", locator=Locator(sheet="S"), rows=(4, 6)).as_json()
    return json.dumps({"page": {"number": 1, "text": "", "elements": [{**element, **fields}]}}).encode()


def test_what_a_child_says_of_rows_comes_back_as_it_was() -> None:
    page = decode(message()).page
    assert page is not None
    assert page.elements == (Element(Category.TABLE, "a | b\n1 | 2", locator=Locator(sheet="S"), rows=(4, 6)),)
    assert PageRecord.elements_of_json(page.elements_json()) == page.elements


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": [4]},
        {"rows": [4, 5, 6]},
        {"rows": [4, 4]},
        {"rows": [0, 1]},
        {"rows": [4, 1 << 40]},
        {"rows": ["4", "5"]},
        {"locator": {"sheet": "x" * 301}},
        {"locator": {"part": "nul\0"}},
        {"locator": {"slide": 0}},
        {"locator": {"rows": [1, 2]}},
        {"locator": {"other": 1}},
    ],
)
def test_a_child_that_was_taken_over_is_not_believed(fields: dict[str, Any]) -> None:
    with pytest.raises(Garbage):
        decode(message(**fields))


def test_control_characters_of_delimited_text_are_left_out(tmp_path: Path) -> None:
    (page,) = pages_of(tmp_path, "\ufeffname,value\r\nsa\x01lt,1\x00\r\n".encode(), "csv")
    assert page.text == "name | value\nsalt | 1"
