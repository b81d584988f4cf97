"""What a child may say, and the checks that decide whether to believe it.

A child that was taken over can send anything. Types and shapes are checked by pydantic in strict mode, ranges
and offsets here; whatever does not hold is `Garbage`, and the child is killed for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from pydantic import TypeAdapter, ValidationError

from apps.files.extraction.ocr.levels import MOST
from apps.files.extraction.tabular.types import (
    LABEL_CHARS,
    MAX_COLUMNS,
    NAME_CHARS,
    SHOWN_CHARS,
    Answer,
    TableColumn,
    TableRecord,
)
from apps.files.extraction.types import (
    HEADING_MAX_CHARS,
    HEADING_MAX_LEVEL,
    LOCATOR_MAX_CHARS,
    PAGE_MAX_CHARS,
    PAGE_MAX_ELEMENTS,
    PICTURE_MAX_BYTES,
    PICTURES_MAX,
    Box,
    Document,
    Element,
    Locator,
    Notice,
    PageRecord,
    Reason,
)

_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")  # neither can be stored as text
_LANGUAGE = re.compile("^[a-z]{2}$")
_PICTURE = re.compile(r"[0-9a-f]{32}/[1-9]\d{0,2}", re.ASCII)
_KEY = re.compile("[0-9a-f]{32}")
_MAX_PAGES = 1_000_000
_MAX_SIZE = 1e7
_NAME = re.compile(rf"[^\W\d]\w{{0,{NAME_CHARS - 1}}}")
_SENTENCE_CHARS = 300
_PROBLEM_CHARS = 4_000
_MAX_SHEET_ROWS = 100_000_000


class Garbage(Exception):
    """The child said something that makes no sense."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Announces `size` raw bytes: an image of width x height pixels."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"strict": True, "extra": "forbid"}

    size: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Picture:
    """Announces recognition output to the end of the stream; pixels of the picture, the page's own size, and the
    share of the picture that is not its ground; by how many degrees counter-clockwise it was turned to be level."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"strict": True, "extra": "forbid", "allow_inf_nan": False}

    width: int
    height: int
    page_width: float
    page_height: float
    ink: float
    skew: float = 0.0


@dataclass(frozen=True, slots=True)
class Kept:
    """Announces `size` raw bytes: a picture that elements of the pages from the next one on refer to by its key."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"strict": True, "extra": "forbid"}

    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Message:
    """Exactly one field is set. `at`: the page about to be read; `unlocked`: so many bytes of a file follow; `tabled`:
    all tables were sent, or not (false); `problem`: what the engine has against a question; `end`: all was said."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"strict": True, "extra": "forbid"}

    document: Document | None = None
    page: PageRecord | None = None
    blob: Blob | None = None
    picture: Picture | None = None
    kept: Kept | None = None
    unlocked: int | None = None
    sandbox: dict[str, str | bool] | None = None
    at: int | None = None
    table: TableRecord | None = None
    tabled: bool | None = None
    answer: Answer | None = None
    problem: str | None = None
    failed: Reason | None = None
    end: bool = False


_adapter: TypeAdapter[Message] = TypeAdapter(Message)


def _text(text: str, limit: int) -> bool:
    return len(text) <= limit and not _FORBIDDEN.search(text)


def _box(box: Box) -> bool:
    x0, y0, x1, y1 = box
    return 0.0 <= x0 <= x1 <= 1.0 and 0.0 <= y0 <= y1 <= 1.0


def _level(level: int | None) -> bool:
    return level is None or 1 <= level <= HEADING_MAX_LEVEL


def _length(value: float | None) -> bool:
    return value is None or (math.isfinite(value) and 0.0 < value <= _MAX_SIZE)


def _locator(locator: Locator) -> bool:
    return (
        _text(locator.part, LOCATOR_MAX_CHARS)
        and _text(locator.sheet, LOCATOR_MAX_CHARS)
        and (locator.slide is None or 1 <= locator.slide <= _MAX_PAGES)
        and locator.rows is None  # a passage has some; an element, one a line
    )


def _rows(element: Element) -> bool:
    """Whether each line has the number of its row, in order."""
    rows = element.rows
    ordered = all(before < after for before, after in pairwise(rows))
    return ordered and rows[0] >= 1 and rows[-1] <= _MAX_SHEET_ROWS and len(rows) == element.text.count("\n") + 1


def _element(element: Element) -> bool:
    if element.picture is not None and not _PICTURE.fullmatch(element.picture):
        return False
    if not (element.text or element.picture) or not _text(element.text, PAGE_MAX_CHARS) or not _level(element.level):
        return False
    if element.language is not None and not _LANGUAGE.match(element.language):
        return False
    if element.box is not None and not _box(element.box):
        return False
    if (element.locator is not None and not _locator(element.locator)) or (element.rows and not _rows(element)):
        return False
    last = 0
    for start, end, *box in element.lines:
        if not (last <= start <= end <= len(element.text) and _box((box[0], box[1], box[2], box[3]))):
            return False
        last = end
    return True


def _page(page: PageRecord) -> bool:
    return (
        1 <= page.number <= _MAX_PAGES
        and _text(page.text, PAGE_MAX_CHARS)
        and _length(page.width)
        and _length(page.height)
        and len(page.elements) <= PAGE_MAX_ELEMENTS
        and sum(len(element.text) for element in page.elements) <= PAGE_MAX_CHARS
        and (page.confidence is None or 0.0 <= page.confidence <= 1.0)
        and all(_level(heading.level) and heading.text for heading in page.headings)
        and all(_text(heading.text, HEADING_MAX_CHARS) for heading in page.headings)
        and len(page.headings) <= HEADING_MAX_LEVEL
        and all(_element(element) for element in page.elements)
        and sum(element.picture is not None for element in page.elements) <= PICTURES_MAX
    )


def _column(column: TableColumn) -> bool:
    return (
        bool(_NAME.fullmatch(column.name) and (not column.raw or _NAME.fullmatch(column.raw)))
        and _text(column.label, LABEL_CHARS)
        and _text(column.unit, 8)
        and len(column.samples) <= 10
        and all(_text(text, SHOWN_CHARS) for text in (column.least, column.most, *column.samples))
        and min(column.empty, column.distinct, column.unread) >= 0
    )


def _table(table: TableRecord) -> bool:
    return (
        _NAME.fullmatch(table.name) is not None
        and _text(table.sheet, LABEL_CHARS)
        and _text(table.title, LABEL_CHARS)
        and 1 <= table.first_row <= table.last_row <= _MAX_SHEET_ROWS
        and 1 <= table.first_column <= table.last_column <= _MAX_SHEET_ROWS
        and (table.header_row is None or 1 <= table.header_row < table.first_row)
        and 1 <= table.rows <= table.last_row
        and 1 <= len(table.columns) <= MAX_COLUMNS
        and all(_column(column) for column in table.columns)
        and len(table.notes) <= 20
        and all(_text(note, _SENTENCE_CHARS) for note in table.notes)
        and table.size > 0
        and (table.page is None or 1 <= table.page <= _MAX_PAGES)
    )


def _holds(message: Message) -> Iterable[bool]:
    if message.document is not None:
        yield 1 <= message.document.page_count <= _MAX_PAGES
        yield _text(message.document.title, HEADING_MAX_CHARS)
        yield len(message.document.notices) <= len(Notice)
    if message.page is not None:
        yield _page(message.page)
    if message.blob is not None:
        yield message.blob.size >= 0 and message.blob.width > 0 and message.blob.height > 0
    if message.kept is not None:
        yield _KEY.fullmatch(message.kept.key) is not None and 0 < message.kept.size <= PICTURE_MAX_BYTES
    if message.table is not None:
        yield _table(message.table)
    if message.problem is not None:
        yield _text(message.problem, _PROBLEM_CHARS)
    if message.picture is not None:
        yield message.picture.width > 0 and message.picture.height > 0
        yield _length(message.picture.page_width) and _length(message.picture.page_height)
        yield 0.0 <= message.picture.ink <= 1.0 and abs(message.picture.skew) <= MOST


def decode(line: bytes) -> Message:
    """The message on a line. Raises Garbage."""
    try:
        message = _adapter.validate_json(line)
    except ValidationError as error:
        raise Garbage from error
    if not all(_holds(message)):
        raise Garbage
    return message
