"""The text of a PDF page as lines with boxes, size and weight, at a few C calls a line and none a character."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise

import pypdfium2_raw as pdfium

from apps.files.extraction.assemble import clean
from apps.files.extraction.layout import Line
from apps.files.extraction.pdf.document import Page
from apps.files.extraction.pdf.hidden import Visibility
from apps.files.extraction.types import PAGE_MAX_CHARS, Box

_BREAK = re.compile("\r\n|\ufffe|\x02")  # PDFium ends a line with the first, and a hyphenated one with the others
_UNTRUSTED = re.compile("[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f]")
_BOLD_FLAG, _MONO_FLAG = 1 << 18, 1
_BOLD_WEIGHT = 570  # regular faces are given 200 to 450, bold ones from 585
_BOLD_NAMES = (b"bold", b"black", b"heavy", b"-medi", b"cmbx")
_MONO_NAMES = (b"courier", b"mono", b"consol", b"menlo", b"cmtt", b"typewriter")
_MAX_RECTS = 2_000
_REVERSIBLE = re.compile(
    "[\u0622\u0623\u0625\u0627]\u0644"
)  # an alef before a lam: the article, or a ligature reversed
_HYPHENS = ("\u2010", "\u00ad")
_WORD_GAP = 0.2  # of the size of the letters
_MAX_LINES = 10_000


@dataclass(slots=True)
class PageText:
    """`upright` are the lines that run in the page's main direction, `turned` the others (stamps in a margin)."""

    upright: list[Line]
    turned: list[Line]
    characters: int
    untrusted: float  # share of characters without a usable meaning


@dataclass(slots=True)
class _Rect:
    left: float
    top: float
    right: float
    bottom: float


class _Reader:
    """One text page; buffers for what C writes are made once."""

    def __init__(self, page: Page, handle: object) -> None:
        self._page = page
        self._handle = handle
        self._left, self._top = ctypes.c_double(), ctypes.c_double()
        self._right, self._bottom = ctypes.c_double(), ctypes.c_double()
        self._loose = pdfium.FS_RECTF()
        self._font = ctypes.create_string_buffer(96)
        self._flags = ctypes.c_int()
        self._visibility = Visibility(page, handle)
        self.count = min(int(pdfium.FPDFText_CountChars(handle)), PAGE_MAX_CHARS)

    def text(self) -> tuple[str, bool]:
        """All text, and whether its offsets are the character indices the other calls take."""
        buffer = (ctypes.c_ushort * (self.count + 1))()
        units = int(pdfium.FPDFText_GetText(self._handle, 0, self.count, buffer)) - 1
        if units <= 0:
            return "", True
        # Unpaired surrogates come through as they are and are replaced when lines are cleaned.
        text = bytes(buffer)[: 2 * units].decode("utf-16-le", "surrogatepass")
        return text, units == self.count and len(text) == units

    def index(self, offset: int) -> int:
        return int(pdfium.FPDFText_GetCharIndexFromTextIndex(self._handle, offset))

    def rects(self, start: int, count: int) -> list[_Rect]:
        found = min(int(pdfium.FPDFText_CountRects(self._handle, start, count)), _MAX_RECTS)
        rects = []
        for number in range(found):
            pdfium.FPDFText_GetRect(self._handle, number, self._left, self._top, self._right, self._bottom)
            rects.append(_Rect(self._left.value, self._top.value, self._right.value, self._bottom.value))
        return rects

    def size(self, index: int) -> float:
        """Height of the character's em box: unlike the font size, it includes every matrix that scales it."""
        if not pdfium.FPDFText_GetLooseCharBox(self._handle, index, self._loose):
            return 0.0
        upright = self._quarters(index) % 2 == 0
        if upright:
            return float(abs(self._loose.top - self._loose.bottom))
        return float(abs(self._loose.right - self._loose.left))

    def _quarters(self, index: int) -> int:
        """Direction of writing in the page's own coordinates, to the next quarter turn."""
        radians = float(pdfium.FPDFText_GetCharAngle(self._handle, index))
        return round(radians / (math.pi / 2)) if math.isfinite(radians) else 0

    def angle(self, index: int) -> int:
        """Direction of writing as displayed, in degrees clockwise."""
        return 90 * ((self._quarters(index) + self._page.quarter_turns) % 4)

    def style(self, first: int, last: int) -> tuple[bool, bool]:
        """Whether the line is bold, and whether all its letters have one width, judged by its middle and its end:
        a line may begin with a number, or with a word set apart."""
        bold, mono = self._style((first + last) // 2)
        if bold or mono:
            bold_too, mono_too = self._style(last)
            return bold and bold_too, mono and mono_too
        return False, False

    def _style(self, index: int) -> tuple[bool, bool]:
        self._flags.value = 0
        pdfium.FPDFText_GetFontInfo(self._handle, index, self._font, len(self._font), self._flags)
        name, flags = self._font.value.lower(), self._flags.value
        heavy = int(pdfium.FPDFText_GetFontWeight(self._handle, index)) >= _BOLD_WEIGHT
        bold = heavy or bool(flags & _BOLD_FLAG) or any(part in name for part in _BOLD_NAMES)
        return bold, bool(flags & _MONO_FLAG) or any(part in name for part in _MONO_NAMES)

    def left_of(self, index: int) -> float:
        pdfium.FPDFText_GetCharBox(self._handle, index, self._left, self._right, self._bottom, self._top)
        return self._left.value

    def _glyph(self, index: int) -> tuple[float, float, float, float]:
        if not pdfium.FPDFText_GetLooseCharBox(self._handle, index, self._loose):
            return 0.0, 0.0, float(index), 0.0
        return self._loose.left, self._loose.right, self._loose.bottom, self._loose.top

    def _gap(self, index: int) -> float | None:
        """The space beside a character that the page does not have and that was put in for a gap; else None."""
        if pdfium.FPDFText_IsGenerated(self._handle, index) != 1:
            return None
        return self._glyph(index + 1)[0] - self._glyph(index - 1)[1]

    def in_logical_order(self, start: int, text: str) -> str:
        """Ligatures of right-to-left scripts the right way round: the letters of one glyph come reversed."""
        letters = list(text)
        for found in _REVERSIBLE.finditer(text):
            first, last = found.start(), found.start() + 1
            if self._glyph(start + first) == self._glyph(start + last):
                letters[first], letters[last] = letters[last], letters[first]
        return "".join(letters)

    def without_false_spaces(self, start: int, text: str, size: float) -> str:
        """Letters set apart are not words: spaces that stand for narrow gaps go, where the line is in pieces."""
        gaps = {at: gap for at in _inner_spaces(text) if (gap := self._gap(start + at)) is not None}
        narrow = {at for at, gap in gaps.items() if gap < _WORD_GAP * size}
        if 2 * len(narrow) < len(gaps) or not narrow:
            return text
        return "".join(letter for at, letter in enumerate(text) if at not in narrow)

    def hidden(self, index: int, rects: list[_Rect]) -> bool:
        """Whether the line of these rectangles, whose character `index` is, cannot be seen."""
        left, right = min(rect.left for rect in rects), max(rect.right for rect in rects)
        bottom, top = min(rect.bottom for rect in rects), max(rect.top for rect in rects)
        return self._visibility.hides(index, (left, bottom, right, top))

    def unmapped(self, index: int) -> bool:
        return bool(pdfium.FPDFText_HasUnicodeMapError(self._handle, index) == 1)


@contextmanager
def _reading(page: Page) -> Iterator[_Reader]:
    handle = pdfium.FPDFText_LoadPage(page.handle)
    if not handle:
        raise ValueError("text cannot be read")
    try:
        yield _Reader(page, handle)
    finally:
        pdfium.FPDFText_ClosePage(handle)


def _inner_spaces(text: str) -> Iterator[int]:
    return (at for at in range(1, len(text) - 1) if text[at] == " ")


def _in_pieces(text: str) -> bool:
    """Whether words are as short as no language has them. Scripts without spaces are not meant."""
    pieces = text.split()
    return len(pieces) >= 6 and len(text) - len(pieces) < 2.2 * len(pieces) and text[:1] < "\u0530"


def _segments(text: str) -> Iterator[tuple[int, str, bool]]:
    """offset, text and whether a hyphen was broken off, for each line."""
    start = 0
    for found in _BREAK.finditer(text):
        if found.start() > start:
            yield start, text[start : found.start()], found.group() != "\r\n"
        start = found.end()
    if start < len(text):
        yield start, text[start:], False


def _wide_gaps(rects: list[_Rect], size: float, sideways: bool) -> list[float]:
    """Positions along the line where the space between neighbours is that of columns, not of words."""
    if sideways or len(rects) < 2:
        return []
    gaps: list[float] = []
    edge = rects[0].right
    for before, after in pairwise(rects):
        edge = max(edge, before.right)
        if after.left - edge > 1.2 * size:
            gaps.append((edge + after.left) / 2)
    return gaps


def _cut(reader: _Reader, start: int, text: str, gaps: list[float]) -> list[tuple[int, str]]:
    """The parts of a line between its wide gaps. A cut is made at the first word that begins beyond the gap."""
    parts: list[tuple[int, str]] = []
    begin, position = 0, 0
    for gap in gaps:
        while (space := text.find(" ", position)) >= 0:
            position = space + 1
            if position < len(text) and text[position] != " " and reader.left_of(start + position) >= gap:
                parts.append((start + begin, text[begin:space]))
                begin = position
                break
        if space < 0:
            break
    parts.append((start + begin, text[begin:]))
    return parts


def _line(page: Page, reader: _Reader, start: int, text: str, hyphenated: bool) -> Iterator[tuple[int, Line]]:
    lead = len(text) - len(text.lstrip())
    if lead == len(text):
        return
    if _REVERSIBLE.search(text):
        text = reader.in_logical_order(start, text)
    rects = reader.rects(start, len(text))
    if not rects:
        return
    first, last = start + lead, start + len(text.rstrip()) - 1
    # The larger of both ends: either may be a footnote's mark.
    angle, size = reader.angle(first), max(reader.size(first), reader.size(last))
    gaps = _wide_gaps(rects, size, sideways=page.quarter_turns % 2 == 1 or angle != 0)
    for offset, part in _cut(reader, start, text, gaps) if gaps else [(start, text)]:
        cleaned = clean(reader.without_false_spaces(offset, part, size) if _in_pieces(part) else part)
        if not cleaned:
            continue
        boxes = rects if not gaps else reader.rects(offset, len(part))
        if not boxes or reader.hidden(offset + len(part) - len(part.lstrip()), boxes):
            continue
        box = page.fractions(
            min(rect.left for rect in boxes),
            min(rect.bottom for rect in boxes),
            max(rect.right for rect in boxes),
            max(rect.top for rect in boxes),
        )
        if _beyond(box):
            continue
        bold, mono = reader.style(offset + len(part) - len(part.lstrip()), offset + len(part.rstrip()) - 1)
        x0, y0, x1, y1 = _frame(box, angle, page.width, page.height)
        broken = hyphenated or part.rstrip().endswith(_HYPHENS)
        yield angle, Line(cleaned, x0, y0, x1, y1, box, size or y1 - y0, bold, mono, broken)


def _beyond(box: Box) -> bool:
    """Whether a box, clipped to the page, was outside of it."""
    x0, y0, x1, y1 = box
    return (x0 == x1 and x0 in (0.0, 1.0)) or (y0 == y1 and y0 in (0.0, 1.0))


def _frame(box: Box, angle: int, width: float, height: float) -> Box:
    """`box` in points, turned so that text written at `angle` runs to the right."""
    x0, y0, x1, y1 = box[0] * width, box[1] * height, box[2] * width, box[3] * height
    if angle == 90:  # downwards
        return y0, width - x1, y1, width - x0
    if angle == 180:
        return width - x1, height - y1, width - x0, height - y0
    if angle == 270:  # upwards
        return height - y1, x0, height - y0, x1
    return x0, y0, x1, y1


def read_lines(page: Page) -> PageText:
    """All lines of the page; the direction most characters run in is the upright one."""
    with _reading(page) as reader:
        if reader.count <= 0:
            return PageText([], [], 0, 0.0)
        text, direct = reader.text()
        by_angle: dict[int, list[Line]] = {}
        unmapped = seen = units = passed = 0
        for offset, part, hyphenated in islice(_segments(text), _MAX_LINES):
            start = offset
            if not direct:  # characters beyond the basic plane, or without text: offsets differ from indices
                units += len(text[passed:offset].encode("utf-16-le", "surrogatepass")) // 2
                passed = offset
                start = reader.index(units)
                if start < 0:
                    continue
            seen += 1
            unmapped += reader.unmapped(start)
            for angle, line in _line(page, reader, start, part, hyphenated):
                by_angle.setdefault(angle, []).append(line)
    visible = len("".join(text.split())) or 1
    doubtful = len(_UNTRUSTED.findall(text)) / visible
    share = max(doubtful, unmapped / seen if seen else 0.0)
    if not by_angle:
        return PageText([], [], 0, share)
    main = max(by_angle, key=lambda angle: sum(len(line.text) for line in by_angle[angle]))
    turned = [line for angle, found in by_angle.items() if angle != main for line in found]
    characters = sum(len(line.text) for found in by_angle.values() for line in found)
    return PageText(by_angle[main], turned, characters, share)
