"""From recognised words with boxes to the lines, paragraphs and headings of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from apps.files.extraction.assemble import clean, element_of, page_text, within_bounds
from apps.files.extraction.language import with_languages
from apps.files.extraction.layout import Block, Line, body_size, central, classify
from apps.files.extraction.ocr.levels import unlevelled
from apps.files.extraction.types import Box, Element, PageRecord

MIN_CONFIDENCE = 0.15
TITLE_RATIO = 1.4  # heights of recognised words vary with the letters in them
_CELL_GAP = 2.2
MAX_WORDS = 30_000


@dataclass(frozen=True, slots=True)
class Word:
    """`line` names the paragraph and line it stands in; the box is in fractions of the picture, upright."""

    text: str
    box: Box
    confidence: float
    line: tuple[int, int, int]


def unturned(box: Box, turn: int) -> Box:
    """The box on the page as displayed, of a box on the picture that was turned clockwise by `turn` degrees."""
    x0, y0, x1, y1 = box
    if turn == 90:
        return y0, 1 - x1, y1, 1 - x0
    if turn == 180:
        return 1 - x1, 1 - y1, 1 - x0, 1 - y0
    if turn == 270:
        return 1 - y1, x0, 1 - y0, x1
    return box


def _bounded(box: Box) -> Box:
    x0, y0, x1, y1 = (round(min(max(value, 0.0), 1.0), 5) for value in box)
    return x0, y0, x1, y1


def _line(words: Sequence[Word], width: float, height: float, turn: int, skew: float) -> Line:
    x0, y0 = min(word.box[0] for word in words), min(word.box[1] for word in words)
    x1, y1 = max(word.box[2] for word in words), max(word.box[3] for word in words)
    size = central([(word.box[3] - word.box[1]) * height for word in words])
    text, cells = words[0].text, 1
    for before, word in pairwise(words):
        wide = (word.box[0] - before.box[2]) * width > _CELL_GAP * size
        text += (" | " if wide else " ") + word.text
        cells += wide
    box = _bounded(unturned(unlevelled((x0, y0, x1, y1), skew, width, height), turn))
    return Line(text, x0 * width, y0 * height, x1 * width, y1 * height, box, size, cells=cells)


def confidence(words: Sequence[Word]) -> float:
    """Mean confidence, by character."""
    total = sum(len(word.text) for word in words)
    return sum(word.confidence * len(word.text) for word in words) / total if total else 0.0


def _is_row(block: Block) -> bool:
    """Further lines of a row have text in fewer cells than its first."""
    first = block.lines[0].cells
    return first > 2 or (first == 2 and all(line.cells == 2 for line in block.lines))


def _tables_joined(blocks: list[Block]) -> list[Block]:
    """Rows of a table that stand far apart, and were therefore taken for paragraphs, as one block."""
    joined: list[Block] = []
    for block in blocks:
        if _is_row(block) and joined and _is_row(joined[-1]):
            joined[-1].lines += block.lines
        else:
            joined.append(block)
    return joined


def elements_of(
    words: Iterable[Word], *, width: float, height: float, turn: int, skew: float = 0.0
) -> tuple[Element, ...]:
    """Elements of a page from its words in reading order; `width` and `height` are the upright picture's, which was
    turned by another `skew` degrees counter-clockwise before it was read."""
    kept = [word for word in words if word.confidence >= MIN_CONFIDENCE and word.text.strip()]
    blocks: list[Block] = []
    for _, paragraph in groupby(kept, key=lambda word: word.line[:2]):
        lines = [
            _line(list(group), width, height, turn, skew) for _, group in groupby(paragraph, lambda word: word.line)
        ]
        for line in lines:
            line.text = clean(line.text)
            line.hyphenated = line.text.endswith("-") and line.text[-2:-1].isalpha()
        blocks.append(Block([line for line in lines if line.text]))
    blocks = _tables_joined([block for block in blocks if block.lines])
    body = body_size([line for block in blocks for line in block.lines])
    for block in blocks:
        classify(block, body, title_ratio=TITLE_RATIO)
    return with_languages(within_bounds(element for block in blocks if (element := element_of(block)) is not None))


def page_of(
    words: Sequence[Word],
    *,
    number: int,
    picture: tuple[int, int],
    page: tuple[float, float],
    turn: int,
    skew: float = 0.0,
) -> PageRecord:
    """`picture` is the size recognised on, `page` the page's own as displayed."""
    elements = elements_of(words[:MAX_WORDS], width=float(picture[0]), height=float(picture[1]), turn=turn, skew=skew)
    return PageRecord(
        number=number,
        source="ocr",
        text=page_text(elements),
        width=page[0],
        height=page[1],
        elements=elements,
        confidence=round(min(max(confidence(words), 0.0), 1.0), 4),
    )
