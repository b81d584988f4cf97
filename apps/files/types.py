"""What other apps may hold of files and passages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as fractions of the page, origin at the top left."""


@dataclass(frozen=True, slots=True)
class FileSummary:
    id: UUID
    name: str
    page_count: int | None
    state: str


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage that retrieval found, with where it stands in its file."""

    passage_id: UUID
    file_id: UUID
    file_name: str
    page: int
    heading: str
    text: str
    boxes: tuple[Box, ...]
    source: Literal["digital", "ocr"]
    score: float


@dataclass(frozen=True, slots=True)
class UnreadyFile:
    """Pages of a file that could not be searched: still being read, or unreadable."""

    file_id: UUID
    file_name: str
    pages_pending: tuple[int, ...]
    pages_failed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[PassageHit, ...]
    mode: Literal["hybrid", "keyword"]
    unready: tuple[UnreadyFile, ...]
