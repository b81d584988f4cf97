"""Records of what was read from a file.

One definition for both sides: the child builds and serialises them; the parent's `wire` module checks types
(pydantic, strict) and ranges before anything is believed. Standard library only, because the child imports
this and must start fast.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Literal

from apps.core.errors import AppError
from apps.files.types import MAX_PAGES
from apps.files.types import Kind as Kind
from apps.files.types import Locator as Locator

PAGE_MAX_CHARS = 400_000
PAGE_MAX_ELEMENTS = 20_000
PICTURES_MAX = 100
PICTURE_MAX_BYTES = 32 << 20
PICTURES_MAX_BYTES = 200 << 20
MAX_PIXELS = 50_000_000
HEADING_MAX_CHARS = 300
HEADING_MAX_LEVEL = 9
LOCATOR_MAX_CHARS = 300

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as fractions of the page as it is displayed, origin at the top left."""

LineBox = tuple[int, int, float, float, float, float]
"""start, end (code points within the element's text), then the box of that line."""

_STRICT: Mapping[str, Any] = {"strict": True, "extra": "forbid", "allow_inf_nan": False}


class Category(StrEnum):
    """What an element is, in `unstructured`'s vocabulary."""

    TITLE = "Title"
    NARRATIVE_TEXT = "NarrativeText"
    LIST_ITEM = "ListItem"
    TABLE = "Table"
    FIGURE_CAPTION = "FigureCaption"
    CODE_SNIPPET = "CodeSnippet"
    IMAGE = "Image"
    HEADER = "Header"
    FOOTER = "Footer"
    PAGE_NUMBER = "PageNumber"
    UNCATEGORIZED_TEXT = "UncategorizedText"
    FORM_KEYS_VALUES = "FormKeysValues"


FURNITURE = frozenset({Category.HEADER, Category.FOOTER, Category.PAGE_NUMBER})
"""Repeated at the edges of pages: part of a page's text, never of a passage."""


class Reason(StrEnum):
    """Why a file, or one page of it, could not be read. Stored as `error_code`."""

    ENCRYPTED = "encrypted"
    WRONG_PASSWORD = "wrong_password"  # noqa: S105 - a reason
    LOCKED = "locked"
    DAMAGED = "damaged"
    EMPTY = "empty"
    TOO_MANY_PAGES = "too_many_pages"
    TOO_LARGE = "too_large"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    UNSUPPORTED = "unsupported"
    OCR_FAILED = "ocr_failed"


class Notice(StrEnum):
    """What was left out of a file that could be read all the same."""

    DEPTH_LIMITED = "depth_limited"
    PARTS_UNREAD = "parts_unread"
    CUT_SHORT = "cut_short"
    PICTURES_UNREAD = "pictures_unread"


SENTENCES: Mapping[Reason, str] = {
    Reason.ENCRYPTED: "The file is protected with a password.",
    Reason.WRONG_PASSWORD: "This password does not open the file. Mind capital letters, and try again.",
    Reason.LOCKED: "This kind of protection cannot be opened here. Remove it and upload the file again.",
    Reason.DAMAGED: "The file is damaged or incomplete. Open it on your computer, save it again and upload that copy.",
    Reason.EMPTY: "There is nothing to read in the file.",
    Reason.TOO_MANY_PAGES: "The file has more pages than can be read. Split it and upload the parts.",
    Reason.TOO_LARGE: "The file's contents are too large once unpacked. Split it or save it in a smaller size.",
    Reason.TIMED_OUT: "Reading took too long and was stopped. Try again, or save the file in a simpler form.",
    Reason.OUT_OF_MEMORY: "Reading needed too much memory and was stopped. Try a smaller or simpler file.",
    Reason.CRASHED: "The file made the reader stop. Save it again with another program and upload that copy.",
    Reason.UNSUPPORTED: "This kind of file cannot be read.",
    Reason.OCR_FAILED: "The text in the picture of this page could not be recognised.",
}


class ExtractionFailed(AppError):
    """The whole file cannot be read; `reason` says why and `message` is a sentence for its owner."""

    code, status, title = "unreadable_file", 422, "The file cannot be read"

    def __init__(self, reason: Reason, message: str = "") -> None:
        super().__init__(message or SENTENCES[reason], reason=reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Element:
    """A heading, paragraph, list item, table... of one page. Boxes are absent where a page has no image, and the
    language (ISO 639-1) where it cannot be told. Of a sheet's table `rows` has the number of each line's row. `picture`
    names one that stands here and was not recognised yet: the key of its bytes, a slash, and which of its pages is
    meant; only such an element may be without text."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    category: Category
    text: str
    box: Box | None = None
    level: int | None = None
    lines: tuple[LineBox, ...] = ()
    language: str | None = None
    locator: Locator | None = None
    rows: tuple[int, ...] = ()
    picture: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The form kept in `Page.elements`; absent fields are left out."""
        value: dict[str, Any] = {"category": self.category.value, "text": self.text}
        if self.box is not None:
            value["box"] = self.box
        if self.level is not None:
            value["level"] = self.level
        if self.lines:
            value["lines"] = self.lines
        if self.language is not None:
            value["language"] = self.language
        if self.locator is not None:
            value["locator"] = self.locator.as_json()
        if self.rows:
            value["rows"] = self.rows
        if self.picture is not None:
            value["picture"] = self.picture
        return value


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that a page's first passage stands under."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class PageRecord:
    """One page as it was read. `width` and `height` are points (PDF) or pixels (images), None for text kinds.

    `needs_ocr`: there is a picture of text, also as an element, or text whose characters cannot be trusted, so that
    recognition should be tried. `confidence` (0..1) is that of the recognition, or of text that cannot be trusted.
    `headings` is the heading path in force where the page begins.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    number: int
    source: Literal["digital", "ocr"] | None = None
    text: str = ""
    width: float | None = None
    height: float | None = None
    elements: tuple[Element, ...] = ()
    headings: tuple[Heading, ...] = ()
    needs_ocr: bool = False
    confidence: float | None = None
    error: Reason | None = None

    @property
    def error_message(self) -> str:
        return SENTENCES[self.error] if self.error else ""

    def elements_json(self) -> list[dict[str, Any]]:
        return [element.as_json() for element in self.elements]

    @classmethod
    def elements_of_json(cls, values: Iterable[Mapping[str, Any]]) -> tuple[Element, ...]:
        """The inverse of `elements_json`."""
        return tuple(
            Element(
                category=Category(value["category"]),
                text=value["text"],
                box=tuple(value["box"]) if "box" in value else None,
                level=value.get("level"),
                lines=tuple(map(tuple, value.get("lines", ()))),
                language=value.get("language"),
                locator=Locator.of_json(value["locator"]) if "locator" in value else None,
                rows=tuple(value.get("rows", ())),
                picture=value.get("picture"),
            )
            for value in values
        )

    def headings_json(self) -> list[list[Any]]:
        return [[heading.level, heading.text] for heading in self.headings]


@dataclass(frozen=True, slots=True)
class Document:
    """What is known of a file as a whole, before its first page."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    page_count: int
    title: str = ""
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one extraction. Time is what the child takes; time spent by the caller's `on_page` is not counted."""

    max_pages: int = MAX_PAGES
    wall_s: float = 600.0
    page_s: float = 15.0
    cpu_s: int = 400
    memory_bytes: int = 1 << 30
    output_bytes: int = 512 << 20
    scratch_bytes: int = 256 << 20
    unpacked_bytes: int = 400 << 20
    max_pixels: int = MAX_PIXELS
    max_restarts: int = 8
    max_timeouts: int = 3
    ocr_languages: tuple[str, ...] = ("eng",)
