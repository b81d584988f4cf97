"""What a PDF holds beyond the text that one sees: files inside, forms, notes; and what it holds but does not show."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

from apps.files.extraction import Notice, run
from apps.files.extraction.types import Category
from tests.factories import documents, formats, hostile, traps
from tests.reading import read

text_at = hostile.text_at


# Not shown


@pytest.mark.parametrize("data", [traps.layered_pdf(), traps.packed_layered_pdf()], ids=["plain", "packed"])
def test_layers_that_are_off_are_not_read(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, "a.pdf", data).texts == ["Always shown", "On a layer that is on"]


def test_without_a_list_of_layers_that_are_off_all_are_read(tmp_path: Path) -> None:
    data = traps.layered_pdf().replace(b"/OFF [6 0 R]", b"/ON  [6 0 R]")
    assert "On a layer that is off" in read(tmp_path, "a.pdf", data).texts


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"1 1 1 rg\n" + text_at(72, 600, "White on paper"), False),
        (b"0 0 .5 rg 60 590 300 30 re f 1 1 1 rg\n" + text_at(72, 600, "White on blue"), True),
        (b".98 .98 .98 rg 60 590 300 30 re f 1 1 1 rg\n" + text_at(72, 600, "White on white"), False),
        (b".6 .6 .6 rg\n" + text_at(72, 600, "Grey"), True),
        (b"3 Tr\n" + text_at(72, 600, "Without ink"), False),
        (text_at(72, 20, "Below the crop box"), False),
        (text_at(-400, 600, "Left of the page"), False),
    ],
)
def test_only_what_a_reader_sees_is_read(tmp_path: Path, content: bytes, shown: bool) -> None:
    data = traps.pdf(text_at(72, 700, "Plain to see") + content, page="/CropBox [0 100 612 792]")
    assert len(read(tmp_path, "a.pdf", data).texts) == 1 + shown


def test_text_without_ink_over_a_scan_is_its_recognition(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(600, 800))
    canvas.drawImage(ImageReader(documents.scan(["some words"], width=600, height=800)), 0, 0, 600, 800)
    line = canvas.beginText(60, 700)
    line.setTextRenderMode(3)
    line.textLine("Words of the scan")
    canvas.drawText(line)
    canvas.save()
    assert read(tmp_path, "a.pdf", buffer.getvalue()).texts == ["Words of the scan"]


def test_notes_are_read_unless_they_are_hidden(tmp_path: Path) -> None:
    texts = read(tmp_path, "a.pdf", traps.annotated_pdf()).texts
    assert texts == ["Page text", "A visible note", "Attachment: n.txt", "pinned words"]


# Forms


def test_values_of_every_kind_of_field(tmp_path: Path) -> None:
    assert read(tmp_path, "a.pdf", traps.form_pdf()).of(Category.FORM_KEYS_VALUES) == [
        "Your family name / surname: Quill",
        "agree: checked",
        "spam: not checked",
        "size: large",
        "city: Bern",
        "langs: en, fr",
        "iban: CH93",
    ]


@pytest.mark.parametrize("whole", [False, True])
def test_a_form_that_is_only_described(tmp_path: Path, whole: bool) -> None:
    found = read(tmp_path, "a.pdf", traps.described_form_pdf(whole=whole))
    assert ("NarrativeText", "Application for a permit") in found.found
    assert found.of(Category.FORM_KEYS_VALUES) == ["Family name: Quill", "city: Bern"]


# Files inside


def test_embedded_files_follow_the_pages(tmp_path: Path) -> None:
    files = {"a.txt": b"the attached text", "b.csv": b"x,y\n1,2\n", "c.bin": b"\x00\x01\x02"}
    found = read(tmp_path, "a.pdf", traps.portfolio_pdf(files))
    assert found.document.page_count == 4
    assert found.document.notices == (Notice.PARTS_UNREAD,)
    assert [page.text for page in found.pages] == [
        "The cover page",
        "Attachment: a.txt\n\nthe attached text",
        "Attachment: b.csv\n\nx | y\n1 | 2",
        "Attachment: c.bin",
    ]
    assert [page.width is None for page in found.pages] == [False, True, True, True]


def test_pdfs_in_pdfs_are_read_to_a_bounded_depth(tmp_path: Path) -> None:
    data = traps.portfolio_pdf({"note.txt": b"note 0"})
    for number in range(1, 6):
        data = traps.portfolio_pdf({"inner.pdf": data, "note.txt": b"note %d" % number})
    found = read(tmp_path, "a.pdf", data)
    assert found.document.notices == (Notice.DEPTH_LIMITED,)
    assert "note 3" in found.text
    assert "note 1" not in found.text


def test_a_mail_in_a_pdf_in_a_mail(tmp_path: Path) -> None:
    inner = formats.mail("Inside", "the inner body", attachments={"deep.txt": b"deep words"})
    found = read(
        tmp_path, "a.eml", formats.mail("Out", "x", attachments={"a.pdf": traps.portfolio_pdf({"i.eml": inner})})
    )
    assert [text for text in found.texts if text.startswith("Attachment")] == [
        "Attachment: a.pdf",
        "Attachment: i.eml",
        "Attachment: deep.txt",
    ]


def test_pages_go_on_where_reading_was_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(traps.portfolio_pdf({"a.txt": b"one", "b.txt": b"two"}))
    numbers: list[int] = []
    run(path, "pdf", on_page=lambda page: numbers.append(page.number), first=3)
    assert numbers == [3]


_LOST_ON_A_FILE_INSIDE = """
if job["attached"]:
    say(at=2)
    raise SystemExit(1)
say(document={"page_count": 1, "title": "", "notices": ["parts_unread"]})
say(**page(1, text="the page"))
say(end=True)
"""


def test_a_file_inside_that_ends_the_reader_does_not_take_the_pages_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"x")
    texts: list[str] = []
    command: Sequence[str] = hostile.child(_LOST_ON_A_FILE_INSIDE)
    document = run(tmp_path / "a.pdf", "pdf", on_page=lambda page: texts.append(page.text), command=command)
    assert (texts, document.notices) == (["the page"], (Notice.PARTS_UNREAD,))


# Tables


GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]


def _with_table(rows: Sequence[Sequence[object]], widths: Sequence[float]) -> bytes:
    buffer = io.BytesIO()
    normal = getSampleStyleSheet()["Normal"]
    cells = [
        [Paragraph(cell, normal) if isinstance(cell, str) and len(cell) > 40 else cell for cell in row] for row in rows
    ]
    table = Table(cells, colWidths=widths, style=GRID)
    around = [Paragraph(f"Text {place} the table, which is prose.", normal) for place in ("before", "after")]
    SimpleDocTemplate(buffer).build([around[0], Spacer(1, 10), table, Spacer(1, 10), around[1]])
    return buffer.getvalue()


def test_empty_cells_keep_their_place(tmp_path: Path) -> None:
    rows = [
        ["Name", "Unit", "Jan", "Feb"],
        ["Rain", "mm", "12", "7"],
        ["Snow", "", "3", ""],
        ["Wind", "km/h", "", "40"],
    ]
    (table,) = read(tmp_path, "a.pdf", _with_table(rows, [90] * 4)).of(Category.TABLE)
    assert table == "Name | Unit | Jan | Feb\nRain | mm | 12 | 7\nSnow |  | 3 | \nWind | km/h |  | 40"


def test_cells_of_several_lines_are_one_row(tmp_path: Path) -> None:
    long = "A long description of the first item that wraps over several lines in its cell"
    rows = [["Id", "Description", "Cost"], ["1", long, "5.00"], ["2", "short", "6.00"], ["3", f"{long} too", "7.00"]]
    found = read(tmp_path, "a.pdf", _with_table(rows, [40, 150, 60]))
    assert found.texts == [
        "Text before the table, which is prose.",
        f"Id | Description | Cost\n1 | {long} | 5.00\n2 | short | 6.00\n3 | {long} too | 7.00",
        "Text after the table, which is prose.",
    ]
