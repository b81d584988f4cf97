"""Pictures inside documents: which are found, where they stand, and what is left out."""

from __future__ import annotations

import gzip
import zipfile
from base64 import b64encode
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from apps.files.extraction import Element, ExtractionFailed, Notice, PageRecord, Reason, run, with_picture
from apps.files.extraction.assemble import page_text
from apps.files.extraction.content import Scope
from apps.files.extraction.pictures import Pictures
from apps.files.extraction.types import PICTURE_MAX_BYTES, PICTURES_MAX, PICTURES_MAX_BYTES, Category
from apps.files.types import Kind, kind_of
from tests.bench.poison import pictures as poisons
from tests.factories import documents, formats, hostile, pictured

SHOT = pictured.shot("The pump is in cellar nine")


class Found:
    """What the child says of a document: its pages, and pictures by the page they were handed on before."""

    def __init__(self, folder: Path, name: str, data: bytes, *, first: int = 1) -> None:
        path = folder / "object"
        path.write_bytes(data)
        kind = kind_of(name)
        assert kind is not None
        self.pages: list[PageRecord] = []
        self.handed: list[tuple[int, str, bytes]] = []
        self.document = run(
            path,
            kind,
            first=first,
            on_page=self.pages.append,
            on_picture=lambda key, data: self.handed.append((first + len(self.pages), key, data)),
        )

    @property
    def places(self) -> list[list[str]]:
        """Texts of each page, a picture as three dots."""
        return [["..." if element.picture else element.text for element in page.elements] for page in self.pages]

    @property
    def taken(self) -> list[tuple[int, bytes]]:
        return [(page, data) for page, _, data in self.handed]


@pytest.mark.parametrize(
    ("name", "data", "places"),
    [
        ("a.pptx", pictured.presentation([("first", []), ("", [SHOT])]), [["first"], ["..."]]),
        ("a.pptx", pictured.presentation([("first", [])], ground=SHOT), [["first", "..."]]),
        ("a.docx", pictured.word(["before", SHOT, "behind"]), [["before", "...", "behind"]]),
        ("a.docx", pictured.word(["before"], in_table=SHOT), [["before", "left cell | ", "..."]]),
        ("a.docx", pictured.old_word(SHOT), [["before", "...", "behind"]]),
        ("a.docx", pictured.old_word(SHOT, boxed=True), [["before", "...", "behind"]]),
        (
            "a.docx",
            pictured.standing_word(pictured.web_page(SHOT)),
            [["before it", "a plan", "...", "behind it"]],
        ),
        ("a.xlsx", pictured.workbook(SHOT), [["Plan", "Site | Depth\nNorth | 4.2", "..."]]),
        (
            "a.odt",
            pictured.open_document("<text:p>before {plan} it</text:p>", {"plan": SHOT}),
            [["before it", "..."]],
        ),
        (
            "a.odp",
            pictured.open_document("<drawing:page>{plan}</drawing:page>", {"plan": SHOT}, kind="presentation"),
            [["..."]],
        ),
        ("a.epub", pictured.book(SHOT), [["before it", "..."]]),
        ("a.html", pictured.web_page(SHOT), [["before it", "a plan", "...", "behind it"]]),
        ("a.zip", formats.package({"plan.png": SHOT}), [["Attachment: plan.png", "..."]]),
        ("a.tgz", gzip.compress(formats.taped({"plan.png": SHOT})), [["Attachment: plan.png", "..."]]),
        ("plan.png.gz", gzip.compress(SHOT), [["Attachment: the file inside", "..."]]),
        ("a.mht", pictured.saved_page(SHOT), [["Cellars", "before it"], ["Attachment: plan.png", "..."]]),
    ],
)
def test_a_picture_is_found_where_it_stands(tmp_path: Path, name: str, data: bytes, places: list[list[str]]) -> None:
    found = Found(tmp_path, name, data)
    assert found.places == places
    assert found.document.notices == ()
    page = next(page for page in found.pages if page.needs_ocr)
    assert [page.needs_ocr for page in found.pages] == [text.count("...") == 1 for text in places]
    assert found.taken == [(page.number, SHOT)]
    assert page.elements[[*places[page.number - 1]].index("...")].picture == f"{found.handed[0][1]}/1"
    assert "..." not in page.text
    assert not page.text.endswith("\n")


@pytest.mark.parametrize(("row", "taken"), [("<tr>", [(1, SHOT)]), ("<tr hidden>", [])])
def test_a_picture_in_a_table_of_a_page_follows_it(tmp_path: Path, row: str, taken: list[tuple[int, bytes]]) -> None:
    address = f"data:image/png;base64,{b64encode(SHOT).decode()}"
    page = f"<table><tr><th>Site<th>Plan</tr>{row}<td>North<td><div><img src='{address}'></div></tr></table><p>end</p>"
    found = Found(tmp_path, "a.html", page.encode())
    assert found.taken == taken
    assert found.places[0][1:] == [*(["..."] if taken else []), "end"]


@pytest.mark.parametrize("form", ["GIF", "BMP"])
def test_pictures_of_old_forms_are_found(tmp_path: Path, form: str) -> None:
    shot = pictured.shot("The pump is in cellar nine", form=form)
    assert Found(tmp_path, "a.docx", pictured.old_word(shot)).taken == [(1, shot)]


def test_a_mails_attached_picture_and_fax_are_found(tmp_path: Path) -> None:
    fax = formats.tiff([documents.scan([f"fax page {number}"], noise=False) for number in (1, 2)])
    found = Found(tmp_path, "a.eml", formats.mail("Hi", "text", attachments={"a.png": SHOT, "fax.tif": fax}))
    assert [texts[-1] for texts in found.places] == ["text", "...", "...", "..."]
    assert found.taken == [(2, SHOT), (3, fax)]
    assert [page.elements[-1].picture for page in found.pages[2:]] == [f"{found.handed[1][1]}/{n}" for n in (1, 2)]


def test_scanned_pages_of_a_pdf_inside_are_drawn(tmp_path: Path) -> None:
    report = documents.mixed_pdf(3, scanned=[2], facts=[])
    found = Found(tmp_path, "a.eml", formats.mail("Hi", "text", attachments={"report.pdf": report}))
    assert found.document.notices == ()
    ((page, data),) = found.taken
    assert [page.number for page in found.pages if page.needs_ocr] == [page]
    assert found.places[page - 1] == ["..."]
    assert "Attachment: report.pdf" in found.places[1]
    with Image.open(BytesIO(data)) as drawn:
        assert (drawn.format, drawn.mode, drawn.width > 1_600) == ("JPEG", "L", True)


def test_more_scanned_pages_inside_than_a_file_can_have_pictures(tmp_path: Path) -> None:
    report = pictured.outlined_pdf(PICTURES_MAX + 3)
    found = Found(tmp_path, "a.zip", formats.package({"report.pdf": report}))
    assert len(found.pages) == PICTURES_MAX + 3
    assert len(found.taken) == PICTURES_MAX
    assert found.document.notices == (Notice.PICTURES_UNREAD,)


def test_scans_in_a_document_are_a_page_each(tmp_path: Path) -> None:
    found = Found(tmp_path, "a.docx", pictured.scanned_word([["one"], ["two"], ["three"]]))
    assert found.places == [["..."], ["..."], ["..."]]


def test_pictures_never_move_the_slides_behind_them(tmp_path: Path) -> None:
    shots = [pictured.shot(f"picture {number}") for number in range(4)]
    found = Found(tmp_path, "a.pptx", pictured.presentation([("first", shots), ("second", [])]))
    assert found.places == [["first", "...", "...", "...", "..."], ["second"]]


def test_a_picture_on_many_slides_is_taken_once(tmp_path: Path) -> None:
    slides = [(f"slide {number}", [SHOT]) for number in range(30)]
    found = Found(tmp_path, "a.pptx", pictured.presentation(slides))
    assert [len(texts) for texts in found.places] == [2] + [1] * 29
    twice = formats.package({"a.png": SHOT, "b.png": SHOT})
    assert [texts[1:] for texts in Found(tmp_path, "a.zip", twice).places] == [["..."], []]


def test_reading_on_hands_on_what_is_needed_from_there(tmp_path: Path) -> None:
    shots = [pictured.shot(f"picture {number}") for number in range(3)]
    data = pictured.presentation([("", [shot]) for shot in shots])
    found = Found(tmp_path, "a.pptx", data, first=2)
    assert found.taken == [(2, shots[1]), (3, shots[2])]


@pytest.mark.parametrize(
    "data",
    [
        pictured.shot("icon", size=(64, 64)),
        pictured.shot("rule", size=(2_000, 20)),
        b"\1\0\0\0\x6c\0\0\0" + bytes(3_000),  # a metafile
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
    ],
)
def test_small_pictures_and_drawings_are_passed_over(tmp_path: Path, data: bytes) -> None:
    found = Found(tmp_path, "a.pptx", pictured.presentation([("text", [data])]))
    assert (found.places, found.document.notices, found.taken) == ([["text"]], (), [])


@pytest.mark.parametrize(
    "data",
    [
        documents.pixel_bomb(),
        poisons.png(60_000, 60_000),
        SHOT[:20],
        poisons.tiff(60_000, 60_000),
    ],
)
def test_hostile_pictures_are_left_out_and_it_is_said(tmp_path: Path, data: bytes) -> None:
    found = Found(tmp_path, "a.pptx", pictured.presentation([("text", [data, SHOT])]))
    assert found.places == [["text", "..."]]
    assert found.document.notices == (Notice.PICTURES_UNREAD,)


def test_a_picture_whose_packed_bytes_are_damaged_costs_only_itself(tmp_path: Path) -> None:
    whole = bytearray(pictured.presentation([("text", [SHOT])]))
    with zipfile.ZipFile(BytesIO(bytes(whole))) as archive:
        at = archive.getinfo("ppt/media/image1").header_offset
    whole[at + 100 : at + 140] = bytes(40)
    found = Found(tmp_path, "a.pptx", bytes(whole))
    assert (found.places, found.document.notices) == ([["text"]], (Notice.PICTURES_UNREAD,))


def test_more_pictures_than_a_file_can_have(tmp_path: Path) -> None:
    most = PICTURES_MAX
    shots = [pictured.saved(Image.new("L", (300, 101 + number), 255), "PNG") for number in range(most + 5)]
    found = Found(tmp_path, "a.pptx", pictured.presentation([(f"slide {n}", [data]) for n, data in enumerate(shots)]))
    assert sum(texts.count("...") for texts in found.places) == most == len(found.taken)
    assert len(found.pages) == most + 5
    assert found.document.notices == (Notice.PICTURES_UNREAD,)


def test_bytes_of_pictures_are_bounded_before_they_are_loaded() -> None:
    kept = Pictures()

    def load() -> bytes:
        raise AssertionError("loaded")

    with pytest.raises(ExtractionFailed):
        kept.add(PICTURE_MAX_BYTES + 1, load)
    for _ in range(PICTURES_MAX_BYTES // PICTURE_MAX_BYTES):
        kept.add(PICTURE_MAX_BYTES, lambda: b"no picture")
    with pytest.raises(ExtractionFailed):
        kept.add(PICTURE_MAX_BYTES, load)


def test_data_that_is_no_base64_is_left_out(tmp_path: Path) -> None:
    page = '<p>text</p><img src="data:image/png;base64,\u00e4\u00e4\u00e4">'.encode()
    found = Found(tmp_path, "a.html", page)
    assert (found.places, found.document.notices) == ([["text"]], (Notice.PICTURES_UNREAD,))


# What the parent believes

_KEY = "0" * 32


@pytest.mark.parametrize(
    "code",
    [
        f"say(kept={{'key': '../{_KEY[3:]}', 'size': 3}})",
        f"say(kept={{'key': '{_KEY}', 'size': {(32 << 20) + 1}}})",
        f"say(kept={{'key': '{_KEY}', 'size': 0}})",
        f"page(1, elements=[{{'category': 'Image', 'text': '', 'picture': '{_KEY}/../a'}}])",
        f"page(1, elements=[{{'category': 'Image', 'text': '', 'picture': '{_KEY}/1'}}] * 101)",
        "page(1, elements=[{'category': 'Image', 'text': ''}])",
        f"[(say(kept={{'key': '{_KEY}', 'size': 1}}), os.write(1, b'x')) for _ in range(101)]",
    ],
)
def test_a_child_that_hands_on_nonsense_is_not_believed(tmp_path: Path, code: str) -> None:
    (tmp_path / "object").write_bytes(b"x")
    kind: Kind = "docx"
    with pytest.raises(ExtractionFailed):
        run(
            tmp_path / "object",
            kind,
            on_page=lambda page: None,
            command=hostile.child(f"say(document={{'page_count': 1}})\n{code}\npage(1)\nsay(end=True)"),
        )


def test_a_document_whose_pictures_end_the_child_is_read_without_them(tmp_path: Path) -> None:
    (tmp_path / "object").write_bytes(b"x")
    pages: list[PageRecord] = []
    code = "if job['pictured']: os.abort()\nsay(document={'page_count': 1})\npage(1)\nsay(end=True)"
    run(tmp_path / "object", "docx", on_page=pages.append, command=hostile.child(code))
    assert [page.text for page in pages] == ["page 1"]
    with pytest.raises(ExtractionFailed):
        run(tmp_path / "object", "docx", on_page=pages.append, command=hostile.child("os.abort()"))


def test_without_pictures_it_is_said_that_there_are_some() -> None:
    scope = Scope.of(1 << 20, lambda name, data, below: None, pictured=False)
    assert scope.picture(len(SHOT), lambda: SHOT) == []
    assert scope.spent.notices == {Notice.PICTURES_UNREAD}


# What is made of what was seen


def seen(*texts: tuple[Category, str], confidence: float = 0.9) -> PageRecord:
    elements = tuple(Element(category, text, box=(0, 0, 1, 1), level=1) for category, text in texts)
    return PageRecord(number=1, source="ocr", text=page_text(elements), elements=elements, confidence=confidence)


OWN = PageRecord(
    number=4,
    source="digital",
    elements=(
        Element(Category.TITLE, "Pumps", level=1),
        Element(Category.IMAGE, "", picture="a/1"),
        Element(Category.IMAGE, "", picture="b/1"),
        Element(Category.NARRATIVE_TEXT, "behind them"),
    ),
)


def test_a_picture_gives_way_to_what_it_says() -> None:
    table = (Category.TABLE, "Pump | Flow\n9 | 40")
    page = with_picture(OWN, "a/1", seen((Category.TITLE, "Pumps in the cellar"), table))
    assert [(element.category, element.text) for element in page.elements] == [
        (Category.TITLE, "Pumps"),
        (Category.IMAGE, "Pumps in the cellar"),
        table,
        (Category.IMAGE, ""),
        (Category.NARRATIVE_TEXT, "behind them"),
    ]
    assert all(element.box is None and element.lines == () for element in page.elements)
    assert [element.level for element in page.elements] == [1, None, None, None, None]
    assert (page.number, page.source, page.confidence) == (4, "ocr", 0.9)
    assert page.text == page_text(page.elements)
    again = with_picture(page, "b/1", seen((Category.NARRATIVE_TEXT, "a second picture"), confidence=0.6))
    assert (again.confidence, "a second picture\n\nbehind them" in again.text) == (0.6, True)


@pytest.mark.parametrize(
    "little",
    [
        seen((Category.NARRATIVE_TEXT, "a sentence that nobody is sure of"), confidence=0.4),
        seen((Category.NARRATIVE_TEXT, "ACME -- !! -- Co.")),
        seen((Category.NARRATIVE_TEXT, "behind them")),
        seen(),
        PageRecord(number=1, error=Reason.DAMAGED),
    ],
)
def test_of_a_picture_that_says_little_nothing_stays(little: PageRecord) -> None:
    page = with_picture(OWN, "a/1", little)
    assert [element.picture for element in page.elements] == [None, "b/1", None]
    assert (page.text, page.source, page.confidence) == ("Pumps\n\nbehind them", "digital", None)
