"""What other apps may hold of files and passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Literal
from uuid import UUID

from apps.core.errors import AppError
from apps.files.kinds import DRAWN as DRAWN
from apps.files.kinds import ENDINGS as ENDINGS
from apps.files.kinds import KINDS as KINDS
from apps.files.kinds import UNLOCKABLE as UNLOCKABLE
from apps.files.kinds import Kind as Kind
from apps.files.kinds import as_kind as as_kind
from apps.files.kinds import kind_of as kind_of

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 as fractions of the page, origin at the top left."""


BODY = "body"
"""The part of a mail that is the mail itself."""


@dataclass(frozen=True, slots=True)
class Locator:
    """Where in its file a person finds something, where a page would not say it. `part` is the file inside the file, or
    a mail's body; `rows` are the first and the last, by the numbers that the sheet shows."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"strict": True, "extra": "forbid"}

    part: str = ""
    sheet: str = ""
    slide: int | None = None
    rows: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """What is known; absent fields are left out."""
        rows = list(self.rows) if self.rows else None
        known = {"part": self.part, "sheet": self.sheet, "slide": self.slide, "rows": rows}
        return {name: value for name, value in known.items() if value}

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Locator:
        """The inverse of `as_json`."""
        return cls(**{**value, "rows": tuple(value["rows"])} if "rows" in value else value)


@dataclass(frozen=True, slots=True)
class FileSummary:
    id: UUID
    name: str
    page_count: int | None
    state: str


@dataclass(frozen=True, slots=True)
class PassageHit:
    """A passage that retrieval found, with where it stands in its file.

    `table` is the number of the table that it describes; it stands on no page then, and `page` is 0. With `sql` it is
    what that table answered, and was not found but looked up. `locator` says it better than a page, where it is known.
    """

    passage_id: UUID
    file_id: UUID
    file_name: str
    page: int
    heading: str
    text: str
    boxes: tuple[Box, ...]
    source: Literal["digital", "ocr"]
    score: float
    table: int | None = None
    sql: str = ""
    locator: Locator | None = None


@dataclass(frozen=True, slots=True)
class UnreadyFile:
    """What of a file could not be searched: the pages that are named; where none are, all of it.

    `state` says why: it is still being read, nobody gave its password, or it cannot be read, for `reason` if no page
    of it can. While it is being read some pages may have failed.
    """

    file_id: UUID
    file_name: str
    pages_pending: tuple[int, ...] = ()
    pages_failed: tuple[int, ...] = ()
    state: Literal["reading", "needs_password", "failed"] = "reading"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that was searched, though something of it was left out when it was read; see `notice_text`."""

    file_id: UUID
    file_name: str
    codes: tuple[str, ...]

    @property
    def sentences(self) -> list[str]:
        return [notice_text(code, self.file_name) for code in self.codes]

    def unasked(self) -> LeftOut:
        """The same for a model that cannot query tables."""
        return replace(self, codes=tuple("tables_unasked" if code == "text_cut_short" else code for code in self.codes))


@dataclass(frozen=True, slots=True)
class SurveyedFile:
    """One file of a survey. `pages`: those whose text is given. `summarised`: those that the summaries given are of.
    `found`: those that have the words, of all its pages."""

    file_id: UUID
    file_name: str
    page_count: int
    pages: tuple[int, ...] = ()
    summarised: tuple[int, ...] = ()
    found: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OutlineLine:
    """A section of a file, with the summary of it where there is one. `pages`: whose text the summary was made of."""

    file_id: UUID
    title: str
    first_page: int
    last_page: int
    text: str = ""
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """How a question that is about whole files was gone about: `spread` gives passages evenly through them, `summary`
    the summaries of their sections too, `words` those that have the words of the question, looked for everywhere.

    `order`: the places of the hits in the order in which they are given up last, so that any first part of it is spread
    over the files as evenly as it can be.
    """

    way: Literal["spread", "summary", "words"]
    files: tuple[SurveyedFile, ...]
    words: tuple[str, ...] = ()
    outline: tuple[OutlineLine, ...] = ()
    order: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`mode` is "keyword" when there are no vectors yet, "away" when none could be used, and "mixed" when those of some
    passages could not, because what made them is away; where there is nothing to search it is "hybrid".
    `reranked`: a model judged the best of both once more. `survey` is set for questions about whole files; the hits
    then are in the order of the files. `looked_up`: answers of tables, which are given after the hits. `left_out`:
    files that were not read whole."""

    hits: tuple[PassageHit, ...]
    mode: Literal["hybrid", "mixed", "keyword", "away"]
    unready: tuple[UnreadyFile, ...]
    reranked: bool = False
    survey: Survey | None = None
    looked_up: tuple[PassageHit, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


FAULTS: Mapping[str, str] = {
    "empty": "There is nothing to read in the file.",
    "damaged": "The file is damaged or incomplete. Open it on your computer, save it again and upload that copy.",
    "encrypted": "The file is protected with a password.",
    "locked": "The file is protected in a way that cannot be opened here. Remove the protection and upload it again.",
    "mislabelled": "The file is not what its name says.",
    "bomb": "The file unpacks to far more than it should and was not opened.",
    "infected": "A malware scanner flagged the file. It was not opened.",
    "size_mismatch": "The upload is not as large as announced. Upload the file again.",
    "missing": "The uploaded content is gone. Upload the file again.",
    "unavailable": "A part of the system that reads files does not answer. Try again later.",
    "crashed": "Reading the file failed again and again. Try again, or save it with another program first.",
    "cancelled": "Reading was stopped before anything was read.",
    "expired": "The upload was not finished in time. Upload the file again.",
}

MAX_PAGES = 2_000
"""Pages that are read of one file: kinds without pages of their own are cut into some of 3,000 characters."""

NOTICES: Mapping[str, str] = {
    "depth_limited": "Files inside {name} were read to a depth of three only.",
    "parts_unread": "Some of the files or pictures inside {name} could not be read.",
    "pictures_unread": "Some pictures inside {name} were not recognised: too many, too large, or damaged.",
    "cut_short": f"Only the beginning of {{name}} was read: it breaks off, or is over {MAX_PAGES:,} pages long and "
    "should be split.",
    "tables_cut": "Some tables of {name} were left out: a file can have 100, of 500 columns each.",
    "tables_unread": "The tables of {name} could not be made ready for questions in SQL; its text was read.",
    "tables_too_large": "The tables of {name} are too large for questions in SQL; its text was read. Split the file.",
}
"""What was left out of a file that could be read all the same."""


_OF_ANSWERS: Mapping[str, str] = {
    "text_cut_short": "Only the beginning of {name} was read as text; its tables can be queried in SQL.",
    "tables_unasked": "Only the beginning of {name} was read as text, and its tables were not queried in SQL, which "
    "the model asked cannot do.",
}
"""Said in place of `cut_short` where the file has tables, by whether the model can query them."""


def notice_text(code: str, name: str = "the file") -> str:
    return {**NOTICES, **_OF_ANSWERS}[code].format(name=name)


class FileFault(AppError):
    """A final reason why a file cannot be read; `reason` is stored as the file's `error.code`."""

    code, status, title = "unreadable_file", 422, "The file cannot be read"

    def __init__(self, reason: str, message: str = "") -> None:
        super().__init__(message or FAULTS[reason], reason=reason)
        self.reason = reason


class Retryable(Exception):
    """Something outside the file failed; the same step may work later. The text is for logs and operators."""


FIRST_PAGE, WHOLE_FILE = "first_page", "whole_file"
"""What is measured from the end of an upload: until its first page could be searched, and until all of it could."""


@dataclass(frozen=True, slots=True)
class FreshnessCounts:
    """A histogram of one of the two and one kind of file: files that took at most each bound, and all their seconds."""

    what: str
    kind: str
    buckets: tuple[tuple[float, int], ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class RecentFreshness:
    """Seconds from the end of the upload that half and 95 % of the recent files took. An empty `kind` is all kinds."""

    kind: str
    files: int
    first_p50: float
    first_p95: float
    whole_p50: float
    whole_p95: float


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """A file whose remains are being removed, for stores that other apps keep."""

    id: UUID
    organization_id: UUID
    owner_id: UUID
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class OtherStore:
    """A place in another app that holds content of files: how much of one file is there, and how it is removed."""

    name: str
    count: Callable[[DeletedFile], int]
    remove: Callable[[DeletedFile], None]


@dataclass(frozen=True, slots=True)
class ReceiptInfo:
    """What a deletion removed, by store. `signature` is the deployment's, over all the rest and the owner."""

    id: UUID
    bytes: int
    deleted_at: datetime
    purged_at: datetime
    removed: Mapping[str, int]
    signature: str


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
    notices: tuple[str, ...]
    created_at: datetime
    seconds_left: int | None = None

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
            "notices": [{"code": code, "message": notice_text(code)} for code in self.notices],
            "created_at": self.created_at.isoformat().replace("+00:00", "Z"),
            "seconds_left": self.seconds_left,
        }
