"""Documents made by code, for tests, benchmarks and the end-to-end story: good ones and bad ones.

Each good document holds facts that a reader must find (`FACTS`), each on a page of its own. Text is made from a
fixed word list with a seed, so that a failure can be repeated.
"""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import docx
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

MARGIN = 62.0
LEADING = 14.0
DPI = 200
_COMMON = """
the of and to in for with on that by from as at is are was were which this their its measured station river flow
sample winter summer depth level report valley survey field crew method result value season water bridge pressure
gauge record table figure section annual monthly average range between upper lower basin sediment temperature
oxygen nitrate turbidity catchment rainfall storm event baseline trend calibration instrument
""".split()  # noqa: SIM905
_SYLLABLES = "ba cor den fal gri hal lin mar nor pel quo ras sil tam vor wen zel ost und eri".split()  # noqa: SIM905
# At least as many different words as a page of English has: what an index costs depends on that.
_WORDS = [*_COMMON, *(a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES[:8])]
_WEIGHTS = list(accumulate(1 / (rank + 3) for rank in range(len(_WORDS))))


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that is on exactly one page, a question for it and the word that answers it."""

    page: int
    sentence: str
    question: str
    answer: str


FACTS: tuple[Fact, ...] = (
    Fact(1, "The expedition was led by Henrietta Quillfeather.", "Who led the expedition?", "Quillfeather"),
    Fact(4, "The winter camp stood beside Lake Umbarra.", "Where did the winter camp stand?", "Umbarra"),
    Fact(7, "The spare generator was painted turquoise.", "What colour was the spare generator?", "turquoise"),
    Fact(9, "Seventeen mules carried the instruments.", "How many mules carried the instruments?", "Seventeen"),
    Fact(12, "The journey ended in the harbour of Port Selwyn.", "In which harbour did the journey end?", "Selwyn"),
)
SCANNED = (4, 9)
"""Pages of `mixed_pdf` that are only pictures of text."""


# Text


def sentences(count: int, seed: int) -> list[str]:
    """`count` sentences of 8 to 20 words, the same ones for the same seed."""
    draw = random.Random(seed)
    lengths = [draw.randint(8, 20) for _ in range(count)]
    return [" ".join(draw.choices(_WORDS, cum_weights=_WEIGHTS, k=length)).capitalize() + "." for length in lengths]


def _wrap(text: str, width: float, measure: Callable[[str], float]) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and measure(longer) > width:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line]


# PDF


class PdfPage:
    """Writes one A4 page from the top down: headings, paragraphs, lists and tables, with header and footer."""

    def __init__(self, canvas: Canvas, number: int, title: str) -> None:
        self._canvas = canvas
        self._width: float = A4[0] - 2 * MARGIN
        self._y: float = A4[1] - MARGIN - 10
        canvas.setFont("Helvetica", 8)
        canvas.drawString(MARGIN, A4[1] - 36, title)
        canvas.drawCentredString(A4[0] / 2, 30, f"Page {number}")

    @property
    def room(self) -> float:
        return self._y - MARGIN

    def heading(self, text: str, size: float = 16) -> None:
        self._y -= size * 0.6
        self._line(text, "Helvetica-Bold", size)
        self._y -= size * 0.4

    def paragraph(self, text: str, *, indent: float = 0.0) -> None:
        measure = self._measure("Times-Roman", 11)
        for line in _wrap(text, self._width - indent, measure):
            self._line(line, "Times-Roman", 11, indent)
        self._y -= 6

    def bullets(self, items: Sequence[str]) -> None:
        for item in items:
            self.paragraph(f"•  {item}", indent=14)

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        step = self._width / len(rows[0])
        for row in rows:
            self._canvas.setFont("Helvetica", 9)
            for column, cell in enumerate(row):
                self._canvas.drawString(MARGIN + column * step + 3, self._y, cell)
            self._canvas.line(MARGIN, self._y - 4, MARGIN + self._width, self._y - 4)
            self._y -= LEADING
        self._y -= 8

    def _measure(self, font: str, size: float) -> Callable[[str], float]:
        return lambda text: float(self._canvas.stringWidth(text, font, size))

    def _line(self, text: str, font: str, size: float, indent: float = 0.0) -> None:
        self._canvas.setFont(font, size)
        self._canvas.drawString(MARGIN + indent, self._y, text)
        self._y -= max(LEADING, size * 1.2)


def digital_pdf(
    pages: int, *, seed: int = 1, facts: Sequence[Fact] = (), password: str | None = None, full: bool = True
) -> bytes:
    """A report of about 450 words a page: sections, paragraphs, lists and tables, like office programs make.

    With `full` unset each page has two sentences only, for tests that care about pages and not about their text.
    """
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, encrypt=StandardEncryption(password) if password else None)
    canvas.setTitle("River survey")
    for number in range(1, pages + 1):
        own = [fact.sentence for fact in facts if fact.page == number]
        if full:
            _report_page(canvas, number, seed, own)
        else:
            PdfPage(canvas, number, "Notes").paragraph(" ".join([*own, *sentences(2, seed * 1_009 + number)]))
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _report_page(canvas: Canvas, number: int, seed: int, own: Sequence[str]) -> None:
    text = iter(sentences(60, seed * 100_003 + number))
    page = PdfPage(canvas, number, "River survey: annual report")
    page.heading(f"{number}. {' '.join(next(text).split()[:4]).title()}")
    for sentence in own:
        page.paragraph(f"{next(text)} {sentence} {next(text)}")
    page.paragraph(" ".join(next(text) for _ in range(6)))
    page.bullets([next(text) for _ in range(3)])
    page.heading(f"{number}.1 {' '.join(next(text).split()[:3]).title()}", size=13)
    if number % 3 == 0:
        draw = random.Random(number)
        rows = [[f"Station {row}", f"{draw.random() * 9:.2f}", f"{draw.randint(100, 999)}", "mg/l"] for row in range(6)]
        page.table([["Station", "Depth", "Flow", "Unit"], *rows])
    while page.room > 90:
        page.paragraph(" ".join(next(text) for _ in range(4)))


def short_pdf(pages: int, *, seed: int = 1) -> bytes:
    return digital_pdf(pages, seed=seed, full=False)


def mixed_pdf(pages: int = 12, *, scanned: Sequence[int] = SCANNED, facts: Sequence[Fact] = FACTS) -> bytes:
    """A digital report of which some pages are scans: pictures with no text behind them."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for number in range(1, pages + 1):
        own = [fact.sentence for fact in facts if fact.page == number]
        if number in scanned:
            picture = scan(own + sentences(8, number))
            canvas.drawImage(ImageReader(picture), 0, 0, *A4)
        else:
            _report_page(canvas, number, 7, own)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def scanned_pdf(pages: int, *, seed: int = 3) -> bytes:
    """Nothing but pictures of text."""
    return mixed_pdf(pages, scanned=range(1, pages + 1), facts=[Fact(n, s, "", "") for n, s in _numbered(pages, seed)])


def _numbered(pages: int, seed: int) -> list[tuple[int, str]]:
    return [(number, f"This is scan number {number} of series {seed}.") for number in range(1, pages + 1)]


# Pictures


def scan(lines: Sequence[str], *, width: int = 1654, height: int = 2339, noise: bool = True) -> Image.Image:
    """A grey A4 page at 200 dpi with the sentences in print, a little blurred and speckled as scanners do."""
    picture = Image.new("L", (width, height), 250)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=34)
    y = 170
    for sentence in lines:
        for line in _wrap(sentence, width - 320, lambda text: float(draw.textlength(text, font=font))):
            draw.text((160, y), line, fill=20, font=font)
            y += 50
        y += 24
    if noise:
        picture = picture.filter(ImageFilter.GaussianBlur(0.6))
        speckle = Image.effect_noise((width, height), 16)
        picture = Image.blend(picture, speckle, 0.06)
    return picture


def png(lines: Sequence[str]) -> bytes:
    return _encoded(scan(lines, noise=False), "PNG")


def jpeg(lines: Sequence[str]) -> bytes:
    return _encoded(scan(lines), "JPEG")


def _encoded(picture: Image.Image, form: str) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, dpi=(DPI, DPI))
    return buffer.getvalue()


# Other kinds


def word(paragraphs: Sequence[str] = (), *, heading: str = "Field notes") -> bytes:
    """A Word document with headings, paragraphs, a list and a table."""
    document = docx.Document()
    document.add_heading(heading, level=1)
    for paragraph in paragraphs or sentences(20, 5):
        document.add_paragraph(paragraph)
    document.add_heading("Equipment", level=2)
    for item in ("rope", "sonde", "notebook"):
        document.add_paragraph(item, style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip((*table.rows[0].cells, *table.rows[1].cells), ("Site", "Depth", "North", "4.2"), strict=True):
        cell.text = text
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def text(paragraphs: Sequence[str] = ()) -> bytes:
    return "\n\n".join(paragraphs or sentences(30, 6)).encode()


def markdown(facts: Sequence[Fact] = FACTS) -> bytes:
    parts = ["# Journal of the expedition", ""]
    for fact in facts:
        parts += [f"## Day {fact.page}", "", " ".join(sentences(4, fact.page)), "", fact.sentence, ""]
    return "\n".join(parts).encode()


# Bad files


def encrypted_pdf() -> bytes:
    return digital_pdf(2, password="open sesame")


def truncated_pdf() -> bytes:
    """A download that stopped early: a right beginning, then nothing; the index at the end never came."""
    whole = digital_pdf(6)
    return whole[: len(whole) // 40]


def eicar() -> bytes:
    """The harmless string that every malware scanner must flag; in two halves, so that this file is not flagged."""
    return rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR" + rb"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"


def archive(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def infected_word() -> bytes:
    """A Word document that carries the test string inside a compressed entry."""
    return _with_entry(word(), "word/media/payload.bin", eicar())


def bomb_word(unpacked: int = 400 << 20) -> bytes:
    """A small Word document with an entry that unpacks to `unpacked` zeros."""
    return _with_entry(word(), "word/media/zeros.bin", bytes(unpacked))


def _with_entry(container: bytes, name: str, data: bytes) -> bytes:
    buffer = io.BytesIO(container)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


def overlapping_archive(copies: int = 400, kernel: int = 8 << 20) -> bytes:
    """A bomb without nesting: every entry of the directory points at the same compressed bytes."""
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packed.compress(bytes(kernel)) + packed.flush()
    crc = zlib.crc32(bytes(kernel))
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 8, 0, 0, crc, len(data), kernel, 1, 0) + b"a" + data
    names = ["[Content_Types].xml", "word/document.xml", *(f"word/{n}" for n in range(copies))]
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 8, 0, 0, crc, len(data), kernel, len(name), 0, 0, 0, 0, 0, 0)
        + name.encode()
        for name in names
    )
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(names), len(names), len(directory), len(local), 0)
    return local + directory + end


def pixel_bomb() -> bytes:
    """A PNG of a few hundred bytes that says it is 50,000 x 50,000 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">2I5B", 50_000, 50_000, 1, 0, 0, 0, 0)
    body = zlib.compress(bytes(6_251) * 100)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def too_many_pages_pdf(pages: int) -> bytes:
    """Pages of a few words, small enough to make by the thousand."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4)
    for number in range(pages):
        canvas.drawString(MARGIN, A4[1] / 2, f"Page {number} of far too many.")
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()
