"""Recognition through the real engines: text, boxes, which way up, and the sandbox around it."""

from __future__ import annotations

import io
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from apps.files.extraction import ExtractionFailed, Limits, PageRecord, Reason, ocr_page
from apps.files.extraction.ocr import languages, recognise, straight
from apps.files.extraction.ocr.levels import unlevelled
from apps.files.extraction.process import opened
from apps.files.extraction.types import Kind
from tests.factories import documents

LINES = (
    "The okapi was first described in 1901",
    "by a zoologist in London, and lives",
    "in the forests of the Congo basin.",
)

needs_tesseract = pytest.mark.skipif(recognise.tesseract() is None, reason="tesseract is not installed")


def picture(lines: tuple[str, ...] = LINES, *, turn: int = 0) -> Image.Image:
    canvas = Image.new("L", (900, 420), 255)
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(34)
    for row, line in enumerate(lines):
        draw.text((70, 60 + 46 * row), line, fill=0, font=font)
    return canvas.rotate(-turn, expand=True)


def read(path: Path, image: Image.Image, kind: Kind = "image") -> PageRecord:
    image.save(path, "PDF" if kind == "pdf" else "PNG", resolution=200)
    return ocr_page(path, kind, 1)


@needs_tesseract
@pytest.mark.parametrize("kind", ["image", "pdf"])
def test_text_and_boxes(tmp_path: Path, kind: Kind) -> None:
    page = read(tmp_path / "x", picture(), kind)
    assert page.text == " ".join(LINES)
    assert (page.number, page.source, page.needs_ocr) == (1, "ocr", False)
    assert page.confidence is not None
    assert page.confidence > 0.8
    (element,) = page.elements
    assert len(element.lines) == 3
    for row, (start, end, x0, y0, x1, y1) in enumerate(element.lines):
        assert element.text[start:end] == LINES[row]
        assert x0 == pytest.approx(70 / 900, abs=0.03)
        assert y0 < (60 + 46 * row + 25) / 420 < y1
        assert x1 > 0.5
    if kind == "pdf":
        assert page.width == pytest.approx(900 * 72 / 200, abs=1)


@needs_tesseract
@pytest.mark.parametrize("turn", [90, 180])
def test_a_page_that_lies_on_its_side_or_head(tmp_path: Path, turn: int) -> None:
    text = tuple(" ".join(documents.sentences(1, seed=seed))[:46] for seed in range(40, 45))
    page = read(tmp_path / "x.png", picture(text, turn=turn).resize((1800, 840) if turn == 180 else (840, 1800)))
    words = " ".join(text).split()
    assert sum(word in page.text for word in words) > 0.8 * len(words)
    box = page.elements[0].box
    assert box is not None
    assert (box[3] - box[1] > box[2] - box[0]) == (turn == 90)


def _page_of_text() -> Image.Image:
    return documents.scan(documents.sentences(6, seed=3), noise=False).convert("L").crop((0, 0, 1654, 800))


def _share_read(page: PageRecord) -> float:
    words = " ".join(documents.sentences(6, seed=3)).split()
    return sum(word in page.text for word in words) / len(words)


@needs_tesseract
@pytest.mark.parametrize("degrees", [-7, 12])
def test_a_page_that_lies_askew(tmp_path: Path, degrees: int) -> None:
    level, askew = _page_of_text(), _page_of_text().rotate(degrees, expand=True, fillcolor=255)
    assert straight.slope(level) == 0.0
    assert straight.slope(askew) == pytest.approx(-degrees, abs=0.5)
    page = read(tmp_path / "x.png", askew)
    assert _share_read(page) >= _share_read(read(tmp_path / "y.png", level)) - 0.05


@pytest.mark.parametrize("degrees", [-9.0, 4.0])
def test_boxes_of_a_levelled_page_are_put_back(degrees: float) -> None:
    askew = Image.new("L", (800, 600), 255)
    askew.paste(0, (500, 100, 520, 110))
    rows, columns = np.nonzero(np.asarray(straight.levelled(askew, degrees)) < 128)
    box = (columns.min() / 800, rows.min() / 600, columns.max() / 800, rows.max() / 600)
    x0, y0, x1, y1 = unlevelled(box, degrees, 800, 600)
    assert (x0 + x1) / 2 == pytest.approx(510 / 800, abs=0.005)
    assert (y0 + y1) / 2 == pytest.approx(105 / 600, abs=0.005)


@needs_tesseract
def test_a_shadow_on_the_page_hides_nothing(tmp_path: Path) -> None:
    plain = _page_of_text()
    assert straight.without_shadow(plain) is plain
    shadowed = Image.blend(plain, Image.linear_gradient("L").resize(plain.size), 0.6)
    assert _share_read(read(tmp_path / "x.png", shadowed)) >= _share_read(read(tmp_path / "y.png", plain)) - 0.05


LANGUAGES = {
    "deu": "Die Brücke über den Fluß wurde größer und schöner gebaut als die ältere, die bei der Flut zerstört war.",
    "rus": "Мост через реку построили в этом году, и он стал больше, чем старый, который был разрушен водой весной.",
    "ell": "Η γέφυρα του ποταμού χτίστηκε εκείνη τη χρονιά και ήταν μεγαλύτερη από την παλιά που είχε καταστραφεί.",
}  # fmt: skip
DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def _written(text: str) -> Image.Image:
    canvas = Image.new("L", (1_300, 420), 255)
    font = ImageFont.truetype(DEJAVU, 30)
    ImageDraw.Draw(canvas).multiline_text((60, 60), "\n".join(textwrap.wrap(text, 60)), fill=0, font=font, spacing=18)
    return canvas


@needs_tesseract
@pytest.mark.skipif(not DEJAVU.exists(), reason="no font with these letters is installed")
@pytest.mark.parametrize("pack", LANGUAGES)
def test_a_page_is_read_in_its_own_language(tmp_path: Path, pack: str) -> None:
    if pack not in languages.installed(recognise.tesseract() or ""):
        pytest.skip(f"tesseract-ocr-{pack} is not installed")
    text = LANGUAGES[pack]
    page = read(tmp_path / "x.png", _written(text))
    assert sum(word in page.text.split() for word in text.split()) >= 0.9 * len(text.split()), page.text


@needs_tesseract
@pytest.mark.skipif(not DEJAVU.exists(), reason="no font with these letters is installed")
def test_the_language_of_other_pages_saves_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "deu" not in languages.installed(recognise.tesseract() or ""):
        pytest.skip("tesseract-ocr-deu is not installed")
    looks: list[recognise.Packs] = []
    once = recognise._Task.read

    def counted(task: recognise._Task, turn: int, packs: recognise.Packs) -> tuple[PageRecord, float]:
        looks.append(packs)
        return once(task, turn, packs)

    monkeypatch.setattr(recognise._Task, "read", counted)
    _written(LANGUAGES["deu"]).save(tmp_path / "x.png")
    untold, told = (ocr_page(tmp_path / "x.png", "image", 1, language=language) for language in (None, "de"))
    assert looks == [("eng",), ("deu", "eng"), ("deu", "eng")]
    assert untold.text == told.text


def test_a_pack_that_is_not_there_is_not_asked_for() -> None:
    assert languages.installed("/nonexistent/tesseract") == frozenset()
    assert languages.of_language("/nonexistent/tesseract", "de") == ()
    assert languages.of_script("/nonexistent/tesseract", "Cyrillic") == ()


def test_a_picture_without_text_is_an_empty_page(tmp_path: Path) -> None:
    page = read(tmp_path / "x.png", Image.new("L", (300, 200), 255))
    assert (page.text, page.elements, page.error) == ("", (), None)


def test_the_packaged_engine_reads_without_a_system_package(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    picture().save(path)
    with opened(path) as source:
        page = recognise._Task(source, "image", 1, Limits(), "", time.monotonic() + 90).second_opinion()
    assert page.source == "ocr"
    assert "1901" in page.text
    assert "Congo" in page.text
    assert all(element.box is not None for element in page.elements)


def test_a_strip_is_not_enlarged(tmp_path: Path) -> None:
    from apps.files.extraction.ocr import rapid

    strip = Image.new("RGB", (1_600, 1), (9, 9, 9))
    padded = rapid._padded(strip)
    assert padded.size == (1_600, 32)
    assert padded.getpixel((1_599, 31)) == (9, 9, 9)
    assert rapid._padded(padded) is padded


def test_one_page_has_one_time_for_all_engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognise, "PAGE_S", 0.0)
    with pytest.raises(ExtractionFailed) as failed:
        read(tmp_path / "x.png", picture())
    assert failed.value.reason is Reason.TIMED_OUT


def test_what_was_read_before_the_time_was_up_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to be read in noise sends the page to every engine; the first answer stays when there is no time left."""
    answers = [PageRecord(number=1, text="first", source="ocr", confidence=0.1)]
    monkeypatch.setattr(recognise._Task, "read", lambda self, turn, packs: (answers.pop(), 1.0))
    monkeypatch.setattr(recognise, "tesseract", lambda: "tesseract")
    monkeypatch.setattr(recognise, "PAGE_S", 0.0)
    assert read(tmp_path / "x.png", picture()).text == "first"


@pytest.mark.parametrize(
    ("kind", "data"), [("image", b"no picture"), ("pdf", b"no PDF"), ("docx", b"no picture either")]
)
def test_what_cannot_be_drawn_cannot_be_recognised(tmp_path: Path, kind: Kind, data: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(ExtractionFailed) as failed:
        ocr_page(path, kind, 1)
    assert failed.value.reason in (Reason.DAMAGED, Reason.UNSUPPORTED)


def test_a_pixel_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(documents.pixel_bomb())
    with pytest.raises(ExtractionFailed) as failed:
        ocr_page(path, "image", 1)
    assert failed.value.reason is Reason.TOO_LARGE


def test_time_is_bounded(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    picture().save(buffer, "PNG")
    path = tmp_path / "x.png"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ExtractionFailed) as failed:
        ocr_page(path, "image", 1, limits=Limits(wall_s=0.05))
    assert failed.value.reason is Reason.TIMED_OUT


def test_areas_of_another_colour_are_no_shadow() -> None:
    table = Image.new("L", (1200, 600), 255)
    for row in range(0, 600, 120):
        table.paste(150, (0, row, 1200, row + 60))
    assert straight.without_shadow(table) is table
