"""What a PDF page does not say by its text alone: order of letters, fields, false spaces, fonts that lie."""

from __future__ import annotations

import io
from pathlib import Path

import reportlab
from PIL import Image, ImageDraw
from reportlab.pdfgen.canvas import Canvas

from apps.files.extraction import Element, PageRecord, combined, run
from apps.files.extraction.ocr.rules import without_rules
from apps.files.extraction.types import Category
from tests.factories import formats, hostile


def read(folder: Path, data: bytes) -> PageRecord:
    path = folder / "x.pdf"
    path.write_bytes(data)
    pages: list[PageRecord] = []
    run(path, "pdf", on_page=pages.append)
    return pages[0]


def with_font(content: bytes, font: str, *extra: str | bytes) -> bytes:
    return hostile.pdf(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            " /Resources << /Font << /F1 5 0 R >> >> >>",
            hostile.stream(content),
            font,
            *extra,
        ]
    )


CMAP = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def
1 begincodespacerange <00> <ff> endcodespacerange
4 beginbfchar <61> <0627> <6d> <0645> <73> <0633> <41> <06440627> endbfchar endcmap end end"""


def test_letters_of_one_glyph_are_read_from_right_to_left(tmp_path: Path) -> None:
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    page = read(tmp_path, with_font(hostile.text_at(72, 700, "mAs"), font, hostile.stream(CMAP)))
    assert page.text == "سلام"
    apart = with_font(hostile.text_at(72, 700, "sama"), font, hostile.stream(CMAP))
    assert read(tmp_path, apart).text == "اماس"


def test_a_file_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    words, font = hostile.text_at(72, 700, "words"), "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    path, pages = tmp_path / "x.pdf", "<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>"
    page = "<< /Type /Page /Parent 2 0 R /Contents {} 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
    objects: list[str | bytes] = ["<< /Type /Catalog /Pages 2 0 R >>", pages, page.format(6), page.format(7), font]
    whole = hostile.pdf([*objects, hostile.stream(words), hostile.stream(words)])
    for end, texts in ((whole.index(b"7 0 obj"), ["words", ""]), (whole.index(b"xref") + 30, ["words", "words"])):
        path.write_bytes(whole[:end])
        found: list[PageRecord] = []
        document = run(path, "pdf", on_page=found.append)
        assert [page.text for page in found] == texts
        assert [page.error is not None for page in found] == [not text for text in texts]
        assert document.notices == ("cut_short",)
        path.write_bytes(formats.mail("Offer", "see below", attachments={"a.pdf": whole[:end]}))
        found.clear()
        document = run(path, "eml", on_page=found.append)
        assert [page.text for page in found[1:]] == ["Attachment: a.pdf\n\nwords", *texts[1:]]
        assert "cut_short" in document.notices


def test_what_was_filled_into_a_form_is_read(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.drawString(72, 700, "Application")
    canvas.acroForm.textfield(name="applicant", value="Henrietta Quillfeather", x=72, y=600, width=300, height=20)
    canvas.acroForm.textfield(name="unused", x=72, y=560, width=300, height=20)
    canvas.acroForm.checkbox(name="agreed", checked=True, x=72, y=500)
    canvas.acroForm.checkbox(name="refused", checked=False, x=72, y=460)
    canvas.save()
    page = read(tmp_path, buffer.getvalue())
    fields = [element.text for element in page.elements if element.category is Category.FORM_KEYS_VALUES]
    assert fields == ["applicant: Henrietta Quillfeather", "agreed: checked", "refused: not checked"]
    assert all(element.box is not None for element in page.elements)


def test_what_was_noted_on_a_page_is_read(tmp_path: Path) -> None:
    notes = "".join(
        f"<< /Type /Annot /Subtype /{kind} /Rect [72 600 172 620] /Contents ({text}) >> "
        for kind, text in (("Text", "a comment"), ("FreeText", "a note"), ("Popup", "a comment"), ("Link", "a link"))
    )
    whole = hostile.pdf(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Annots [{notes}]"
            " /Resources << /Font << /F1 5 0 R >> >> >>",
            hostile.stream(hostile.text_at(72, 700, "text")),
            hostile.FONT,
        ]
    )
    assert read(tmp_path, whole).text == "text\n\na comment\n\na note"


def test_letters_that_are_set_apart_are_words_all_the_same(tmp_path: Path) -> None:
    words = ["Seven", "mules", "carried", "the", "instruments"]
    shown = " -520 ".join(" -170 ".join(f"({letter})" for letter in word) for word in words)
    page = read(tmp_path, hostile.one_page(f"BT /F1 12 Tf 72 700 Td [{shown}] TJ ET".encode()))
    assert page.text == "Seven mules carried the instruments"


def test_short_words_keep_their_spaces(tmp_path: Path) -> None:
    text = "I am in it if we go to A or B"
    assert read(tmp_path, hostile.one_page(hostile.text_at(72, 700, text))).text == text


def _embedded(program: bytes) -> bytes:
    font = (
        "<< /Type /Font /Subtype /TrueType /BaseFont /ABCDEF+Own /Encoding /WinAnsiEncoding /FontDescriptor 6 0 R"
        f" /FirstChar 0 /LastChar 255 /Widths [{'600 ' * 256}] >>"
    )
    about = "<< /Type /FontDescriptor /FontName /ABCDEF+Own /Flags 32 /FontFile2 7 0 R >>"
    return with_font(
        hostile.text_at(72, 700, "gibberish"), font, about, hostile.stream(program, extra=f"/Length1 {len(program)}")
    )


def test_a_font_without_any_map_is_not_believed(tmp_path: Path) -> None:
    program = (Path(reportlab.__file__).parent / "fonts" / "Vera.ttf").read_bytes()
    assert not read(tmp_path, _embedded(program)).needs_ocr
    page = read(tmp_path, _embedded(program.replace(b"cmap", b"xmap", 1)))
    assert page.needs_ocr
    assert page.confidence == 0.0


# Recognition beside text


def test_ruled_lines_go_and_letters_stay() -> None:
    picture = Image.new("L", (900, 600), 250)
    draw = ImageDraw.Draw(picture)
    draw.text((200, 200), "Depth 4.2", fill=10, font_size=40)
    letters = picture.copy()
    draw.rectangle((100, 150, 800, 300), outline=0, width=3)
    draw.line((450, 150, 450, 300), fill=0, width=3)
    draw.rectangle((100, 400, 800, 500), fill=0)
    draw.rectangle((100, 400, 800, 500), fill=0)
    cleared = without_rules(picture)
    assert cleared.crop((0, 0, 900, 350)).tobytes() == letters.crop((0, 0, 900, 350)).tobytes()
    assert cleared.getpixel((450, 450)) == 0  # an area is no line


def element(text: str, y: float) -> Element:
    return Element(Category.NARRATIVE_TEXT, text, box=(0.1, y, 0.9, y + 0.05))


def test_own_text_is_kept_beside_what_was_recognised() -> None:
    own = PageRecord(1, "digital", elements=(element("exact caption", 0.5),))
    seen = PageRecord(
        1, "ocr", elements=(element("from the picture", 0.1), element("exoct captlon", 0.5)), confidence=0.8
    )
    assert combined(own, seen).text == "from the picture\n\nexact caption"


def test_text_that_cannot_be_trusted_goes() -> None:
    seen = PageRecord(1, "ocr", text="read", elements=(element("read", 0.1),), confidence=0.8)
    lost = PageRecord(1, "digital", elements=(element("gibberish", 0.5),), confidence=0.1)
    assert combined(lost, seen) is seen
    partly = PageRecord(1, "digital", elements=(element("sound", 0.5), element("un\ufffdsound", 0.6)), confidence=0.8)
    assert combined(partly, seen).text == "read\n\nsound"
