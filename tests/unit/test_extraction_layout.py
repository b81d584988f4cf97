"""Reading order, paragraphs and headings from lines with boxes; real PDFs made by code; recognised words."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from apps.files.extraction import PageRecord, Reason, run
from apps.files.extraction.assemble import Outline, join_lines
from apps.files.extraction.furniture import marks, set_apart
from apps.files.extraction.layout import Line, blocks_of
from apps.files.extraction.ocr import tsv
from apps.files.extraction.ocr.words import Word, elements_of, unturned
from apps.files.extraction.types import Category, Element
from tests.factories import hostile

W, H = 600.0, 800.0


def line(
    text: str, x: float, y: float, *, width: float = 0, size: float = 10, bold: bool = False, hyphenated: bool = False
) -> Line:
    wide = width or len(text) * size * 0.5
    box = (x / W, y / H, min((x + wide) / W, 1.0), (y + size) / H)
    return Line(text, x, y, x + wide, y + size, box, size, bold, hyphenated=hyphenated)


def column(prefix: str, x: float, y: float, rows: int, step: float = 13) -> list[Line]:
    return [line(f"{prefix}{row} with several words here", x, y + row * step, width=230) for row in range(rows)]


def order(lines: Sequence[Line]) -> str:
    return " ".join(item.text.split()[0] for block in blocks_of(list(lines)) for item in block.lines)


@pytest.mark.parametrize("seed", range(8))
def test_two_columns_are_read_one_after_the_other_whatever_order_they_were_drawn_in(seed: int) -> None:
    lines = [
        line("Heading across the whole width of the page", 50, 60, width=500, size=18),
        *column("left", 50, 100, 10),
        *column("right", 320, 100, 10),
        line("Middle heading that again spans both of the columns", 50, 260, width=500),
        *column("under", 50, 290, 6),
        *column("beside", 320, 290, 6),
    ]
    random.Random(seed).shuffle(lines)
    wanted = ["Heading", *(f"left{n}" for n in range(10)), *(f"right{n}" for n in range(10)), "Middle"]
    wanted += [*(f"under{n}" for n in range(6)), *(f"beside{n}" for n in range(6))]
    assert order(lines) == " ".join(wanted)


def test_the_cells_of_a_table_stay_in_their_row() -> None:
    rows = [("Year", "Sales", "Cost"), ("2021", "100", "80"), ("2022", "120", "90"), ("2023", "150", "99")]
    lines = [line(cell, 60 + 180 * c, 100 + 14 * r) for r, row in enumerate(rows) for c, cell in enumerate(row)]
    (block,) = blocks_of(lines)
    assert block.category is Category.TABLE
    assert [item.text for item in block.lines] == [" | ".join(row) for row in rows]


def test_paragraphs_end_at_gaps_indents_and_short_last_lines() -> None:
    texts = ["one begins here and goes on", "and ends here."]
    lines = [line(texts[0], 50, 100, width=400), line(texts[1], 50, 113, width=120)]
    lines += [
        line("two follows at once without a gap", 50, 126, width=400),
        line("its second line", 50, 139, width=400),
    ]
    lines += [line("three is set apart by a gap", 50, 175, width=400), line("and has another line", 50, 188, width=300)]
    assert [len(block.lines) for block in blocks_of(lines)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("text", "style", "size", "category", "level"),
    [
        ("Annual report", {}, 20, Category.TITLE, 1),
        ("Second level", {}, 14, Category.TITLE, 2),
        ("2.1 Methods", {"bold": True}, 10, Category.TITLE, 4),
        ("Bold words that end in a stop.", {"bold": True}, 10, Category.NARRATIVE_TEXT, None),
        ("• a point of a list that is long enough", {}, 10, Category.LIST_ITEM, None),
        ("(b) another point of a list", {}, 10, Category.LIST_ITEM, None),
        ("Figure 3: what is seen in it", {}, 10, Category.FIGURE_CAPTION, None),
        ("short and loose", {}, 10, Category.UNCATEGORIZED_TEXT, None),
    ],
)
def test_categories(text: str, style: dict[str, bool], size: float, category: Category, level: int | None) -> None:
    body = column("body", 50, 300, 12)
    block = blocks_of([line(text, 50, 100, size=size, **style), *body])[0]
    assert (block.category, block.level) == (category, level)


# Lines to text


def test_words_broken_at_a_hyphen_are_joined_and_real_hyphens_stay() -> None:
    lines = [
        line("a retri", 0, 0, hyphenated=True), line("eval from Lucene", 0, 1, hyphenated=True),
        line("BM25 of state-of-the", 0, 2, hyphenated=True), line("art systems", 0, 3),
    ]  # fmt: skip
    text, boxes = join_lines(lines)
    assert text == "a retrieval from Lucene-BM25 of state-of-the-art systems"
    assert text[boxes[0][0] : boxes[0][1]] == "a retri"


def test_cjk_lines_are_joined_without_a_space() -> None:
    assert join_lines([line("吾輩は", 0, 0), line("猫である", 0, 1)])[0] == "吾輩は猫である"


@pytest.mark.parametrize("seed", range(50))
def test_line_boxes_cover_their_own_characters(seed: int) -> None:
    chance = random.Random(seed)
    lines = []
    for row in range(chance.randint(1, 12)):
        text = " ".join("".join(chance.choices("abc-é猫", k=chance.randint(1, 8))) for _ in range(chance.randint(1, 5)))
        lines.append(line(text, 10, row, width=50, hyphenated=chance.random() < 0.3))
    text, boxes = join_lines(lines, linewise=chance.random() < 0.3)
    last = 0
    for start, end, x0, y0, x1, y1 in boxes:
        assert last <= start <= end <= len(text)
        assert 0 <= x0 <= x1 <= 1
        assert 0 <= y0 <= y1 <= 1
        last = end
    assert len(boxes) == len(lines)


# Running headers and footers


def placed(text: str, y: float) -> Element:
    return Element(Category.UNCATEGORIZED_TEXT, text, box=(0.1, y, 0.9, y + 0.01))


def test_what_recurs_at_the_edges_is_set_apart() -> None:
    pages = [
        (
            placed("Report 2024", 0.03),
            placed(f"Text of page {n}", 0.4),
            placed(f"{n}", 0.5),
            placed(f"Page {n} of 9", 0.95),
        )
        for n in (1, 2)
    ]
    first = set_apart(pages[0], [marks(pages[1])])
    assert [element.category for element in first] == [
        Category.HEADER, Category.UNCATEGORIZED_TEXT, Category.UNCATEGORIZED_TEXT, Category.PAGE_NUMBER,
    ]  # fmt: skip
    alone = set_apart(pages[0], [])
    assert alone[0].category is Category.UNCATEGORIZED_TEXT


def test_the_number_below_a_column_does_not_part_it_from_the_next() -> None:
    page = (placed("the left column", 0.4), placed("Page 3 of 9", 0.95), placed("and the right", 0.4))
    assert [element.text for element in set_apart(page, [])] == ["the left column", "and the right", "Page 3 of 9"]


def test_the_heading_path() -> None:
    outline = Outline()
    outline.pass_over(
        [Element(Category.TITLE, text, level=level) for text, level in (("a", 1), ("b", 2), ("c", 2), ("d", 4))]
    )
    assert [(heading.level, heading.text) for heading in outline.path] == [(1, "a"), (2, "c"), (4, "d")]


# Real PDFs


def read(path: Path, data: bytes) -> list[PageRecord]:
    path.write_bytes(data)
    pages: list[PageRecord] = []
    run(path, "pdf", on_page=pages.append)
    return pages


def drawn(*pages: Sequence[tuple[float, float, str]], size: float = 11) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for texts in pages:
        canvas.setFont("Helvetica", size)
        for x, y, text in texts:
            canvas.drawString(x, A4[1] - y, text)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def test_boxes_are_where_the_text_is_drawn(tmp_path: Path) -> None:
    (page,) = read(tmp_path / "x.pdf", drawn([(100, 200, "found here")]))
    (element,) = page.elements
    assert element.box is not None
    x0, y0, x1, y1 = element.box
    assert x0 == pytest.approx(100 / A4[0], abs=0.005)
    assert y1 == pytest.approx(200 / A4[1], abs=0.01)
    assert x0 < x1 < 0.4
    assert 0 < y1 - y0 < 0.03


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_rotated_pages_keep_reading_order_and_boxes_as_displayed(tmp_path: Path, rotate: int) -> None:
    rows = ["the first line of it", "the second line", "the third one."]
    content = b"".join(hostile.text_at(100, 600 - 14 * row, text) for row, text in enumerate(rows))
    (page,) = read(tmp_path / "x.pdf", hostile.one_page(content, box="0 0 600 800", rotate=rotate))
    assert page.text == " ".join(rows)
    assert (page.width, page.height) == ((600, 800) if rotate == 180 else (800, 600))
    box = page.elements[0].box
    assert box is not None
    x, y = 100 / 600, 1 - 600 / 800  # where the first line begins, turned clockwise with the page
    corner = {90: (1 - y, x), 180: (1 - x, 1 - y), 270: (y, 1 - x)}[rotate]
    assert min(abs(box[0] - corner[0]), abs(box[2] - corner[0])) < 0.03
    assert min(abs(box[1] - corner[1]), abs(box[3] - corner[1])) < 0.03


def test_columns_drawn_row_by_row_are_read_column_by_column(tmp_path: Path) -> None:
    rows = []
    for n in range(12):
        rows.append((60.0, 100.0 + 14 * n, f"left{n} has some words of prose"))
        rows.append((330.0, 100.0 + 14 * n, f"right{n} has other words of it"))
    (page,) = read(tmp_path / "x.pdf", drawn(rows))
    firsts = [word for word in page.text.split() if word.startswith(("left", "right"))]
    assert firsts == [f"left{n}" for n in range(12)] + [f"right{n}" for n in range(12)]


def test_a_page_without_text_and_with_a_picture_waits_for_recognition(tmp_path: Path) -> None:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    scan = ImageReader(Image.effect_noise((60, 80), 60))
    for caption, wide in (("", A4[0]), ("Scanned by someone", A4[0]), ("A photograph beside text. " * 20, 90)):
        canvas.drawImage(scan, 0, 0, width=wide, height=wide * 1.4)
        canvas.drawString(40, 800, caption)
        canvas.showPage()
    canvas.save()
    pages = read(tmp_path / "x.pdf", out.getvalue())
    assert [page.needs_ocr for page in pages] == [True, True, False]


def test_an_empty_page_is_simply_empty(tmp_path: Path) -> None:
    pages = read(tmp_path / "x.pdf", drawn([(100, 100, "text")], []))
    assert [(page.text, page.needs_ocr, page.error) for page in pages] == [("text", False, None), ("", False, None)]


def test_headers_are_found_while_pages_are_read_in_order(tmp_path: Path) -> None:
    pages = read(
        tmp_path / "x.pdf",
        drawn(
            *[[(60, 30, "Quarterly review"), (60, 300, f"content number {n}"), (290, 820, str(n))] for n in (1, 2, 3)]
        ),
    )
    for page in pages:
        assert [element.category for element in page.elements] == [
            Category.HEADER, Category.UNCATEGORIZED_TEXT, Category.PAGE_NUMBER,
        ]  # fmt: skip


def test_reading_can_begin_later(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(drawn(*[[(60, 300, f"page {n}")] for n in range(1, 6)]))
    pages: list[PageRecord] = []
    run(path, "pdf", on_page=pages.append, first=4)
    assert [(page.number, page.text) for page in pages] == [(4, "page 4"), (5, "page 5")]
    assert Reason.CRASHED not in {page.error for page in pages}


# Recognised words


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_turned_boxes_come_back(turn: int) -> None:
    x, y = 0.2, 0.3
    # Where a point of the page lands on the picture that was turned clockwise.
    u, v = {0: (x, y), 90: (1 - y, x), 180: (1 - x, 1 - y), 270: (y, 1 - x)}[turn]
    box = unturned((u - 0.05, v - 0.05, u + 0.05, v + 0.05), turn)
    assert ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) == pytest.approx((x, y))
    assert box[0] < box[2]
    assert box[1] < box[3]


def test_words_become_lines_and_paragraphs() -> None:
    words = [
        Word(text, (0.1 * n, 0.1 * row, 0.1 * n + 0.08, 0.1 * row + 0.02), 0.9, (1, paragraph, row))
        for paragraph, row, texts in ((1, 1, "The quick-"), (1, 2, "er fox runs."), (2, 4, "Next one ends here now."))
        for n, text in enumerate(texts.split(), start=1)
    ]
    elements = elements_of(words, width=1000, height=1000, turn=0)
    assert [element.text for element in elements] == ["The quicker fox runs.", "Next one ends here now."]
    assert len(elements[0].lines) == 2


def test_unsure_words_are_left_out() -> None:
    words = [Word("sure", (0, 0, 0.1, 0.1), 0.9, (1, 1, 1)), Word("~^", (0.2, 0, 0.3, 0.1), 0.05, (1, 1, 1))]
    assert [element.text for element in elements_of(words, width=100, height=100, turn=0)] == ["sure"]


def row(*columns: object) -> str:
    return "\t".join(str(column) for column in columns)


def test_output_that_does_not_hold_together_is_passed_over() -> None:
    lines = [
        "level\tpage_num",
        row(5, 1, 1, 1, 1, 1, 10, 10, 20, 10, 96.5, "good"),
        row(5, 1, 1, 1, 1, 2, -1, 10, 20, 10, 96, "outside"),
        row(5, 1, 1, 1, 1, 2, 90, 10, 20, 10, 96, "over"),
        row(5, 1, 1, 1, 1, 2, 10, 10, 20, 10, 196, "surer than sure"),
        row(5, 1, 1, 1, 1, 2, "x", 10, 20, 10, 96, "letters"),
        row(5, 1, 1, 1, 1, 2, 10, 10, 20, 10, "nan", "nothing"),
        row(4, 1, 1, 1, 1, 0, 10, 10, 20, 10, -1, ""),
        row(5, 1, 1, 1),
    ]
    (word,) = tsv.words("\n".join(lines).encode() + b"\n\xff\xfe", width=100, height=100)
    assert (word.text, word.confidence, word.box) == ("good", 0.965, (0.1, 0.1, 0.3, 0.2))


@pytest.mark.parametrize(
    ("report", "turn"),
    [
        (b"Rotate: 90\nOrientation confidence: 12.3\n", 90),
        (b"Rotate: 180\nOrientation confidence: 0.4\n", 0),
        (b"Rotate: 45\nOrientation confidence: 99\n", 0),
        (b"", 0),
    ],
)
def test_which_way_up(report: bytes, turn: int) -> None:
    assert tsv.turn(report) == turn
