"""What other apps may hold of files and passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast, get_args
from uuid import UUID

from apps.core.errors import AppError

Kind = Literal["pdf", "docx", "text", "markdown", "image"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def as_kind(value: str) -> Kind:
    """A kind read from a row. Raises ValueError for a value that this version does not know."""
    return KINDS[KINDS.index(cast(Kind, value))]


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
    """`mode` is "keyword" when no vectors could be used. `reranked`: a model judged the best of both once more."""

    hits: tuple[PassageHit, ...]
    mode: Literal["hybrid", "keyword"]
    unready: tuple[UnreadyFile, ...]
    reranked: bool = False


FAULTS: Mapping[str, str] = {
    "empty": "There is nothing to read in the file.",
    "damaged": "The file is damaged or incomplete. Open it on your computer, save it again and upload that copy.",
    "encrypted": "The file is protected with a password. Remove the protection and upload it again.",
    "mislabelled": "The file is not what its name says.",
    "bomb": "The file unpacks to far more than it should and was not opened.",
    "infected": "A malware scanner flagged the file. It was not opened.",
    "size_mismatch": "The upload is not as large as announced. Upload the file again.",
    "missing": "The uploaded content is gone. Upload the file again.",
    "unavailable": "A part of the system that reads files does not answer. Try again later.",
    "crashed": "Reading the file failed again and again. Try again, or save it with another program first.",
    "expired": "The upload was not finished in time. Upload the file again.",
}


class FileFault(AppError):
    """A final reason why a file cannot be read; `reason` is stored as the file's `error.code`."""

    code, status, title = "unreadable_file", 422, "The file cannot be read"

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or FAULTS[reason], reason=reason)
        self.reason = reason


class Retryable(Exception):
    """Something outside the file failed; the same step may work later. The text is for logs and operators."""


@dataclass(frozen=True, slots=True)
class FileError:
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file as its owner sees it, in the API and in live notes."""

    id: UUID
    name: str
    size: int
    content_type: str
    kind: str
    state: str
    stage: str | None
    page_count: int | None
    pages_ready: int
    pages_failed: tuple[int, ...]
    searchable: str
    error: FileError | None
    scanner: str | None
    created_at: datetime

    def as_json(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "name": self.name,
            "size": self.size,
            "content_type": self.content_type,
            "kind": self.kind,
            "state": self.state,
            "stage": self.stage,
            "page_count": self.page_count,
            "pages_ready": self.pages_ready,
            "pages_failed": list(self.pages_failed),
            "searchable": self.searchable,
            "error": {"code": self.error.code, "message": self.error.message} if self.error else None,
            "scanner": self.scanner,
            "created_at": self.created_at.isoformat().replace("+00:00", "Z"),
        }
