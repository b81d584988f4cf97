"""Reads of files and pages, as plain values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any
from uuid import UUID

from django.db import connection

from apps.accounts.types import Actor
from apps.core.errors import Invalid, NotFound
from apps.core.ids import parse_id
from apps.files import extraction
from apps.files.access import access_file, access_files, visible_files
from apps.files.models import File, FileState, Page, PageState
from apps.files.types import MAX_PAGES, FileError, FileInfo, FileSummary

LIST_LIMIT = 200


_LEFT = """
    WITH recent AS (
        SELECT file_id, source = 'ocr' AS scanned, indexed_at,
               row_number() OVER (PARTITION BY file_id, source = 'ocr' ORDER BY indexed_at DESC) AS nth
        FROM files_page WHERE file_id = ANY(%(files)s) AND indexed_at IS NOT NULL
    ), paces AS (
        SELECT file_id, scanned, extract(epoch FROM clock_timestamp() - min(indexed_at)) / count(*) AS seconds
        FROM recent WHERE nth <= %(most)s GROUP BY file_id, scanned HAVING count(*) >= %(least)s
    ), pages AS (
        SELECT file_id, count(*) AS known, count(*) FILTER (WHERE state = 'ocr') AS waiting
        FROM files_page WHERE file_id = ANY(%(files)s) GROUP BY file_id
    )
    SELECT file.id, greatest(file.page_count - pages.known, 0), digital.seconds, pages.waiting, scanned.seconds
    FROM files_file AS file JOIN pages ON pages.file_id = file.id
    LEFT JOIN paces AS digital ON digital.file_id = file.id AND NOT digital.scanned
    LEFT JOIN paces AS scanned ON scanned.file_id = file.id AND scanned.scanned
    WHERE file.id = ANY(%(files)s)
"""
_PACE_OF = 40  # the last pages of each sort, which tell how fast it goes now
_PACE_FROM = 3


def seconds_left(files: Sequence[File]) -> dict[UUID, int]:
    """How long the reading of those in work will take still, as fast as their last pages went. Only what is known: a
    file with pages that wait for recognition is left out until some were recognised."""
    ids = [file.id for file in files if file.state == FileState.PROCESSING and file.page_count]
    if not ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_LEFT, {"files": ids, "most": _PACE_OF, "least": _PACE_FROM})
        rows = cursor.fetchall()
    return {
        file_id: ceil(unread * float(digital or 0) + waiting * float(scanned or 0))
        for file_id, unread, digital, waiting, scanned in rows
        if (digital or not unread) and (scanned or not waiting)
    }


def file_info(file: File) -> FileInfo:
    return _info(file, seconds_left([file]))


def _info(file: File, left: Mapping[UUID, int]) -> FileInfo:
    return FileInfo(
        id=file.id,
        name=file.name,
        size=file.size,
        content_type=file.content_type,
        kind=file.kind,
        state=file.state,
        stage=file.stage or None,
        page_count=file.page_count,
        pages_ready=file.pages_ready,
        pages_failed=tuple(file.pages_failed),
        searchable=file.searchable,
        error=FileError(file.error_code, file.error_message) if file.error_code else None,
        scanner=file.scanner or None,
        notices=tuple(file.notices),
        created_at=file.created_at,
        seconds_left=left.get(file.id),
    )


def get_file(actor: Actor, file_id: object) -> FileInfo:
    return file_info(access_file(actor, file_id))


def list_files(actor: Actor, *, cursor: str | None, limit: int) -> tuple[list[FileInfo], str | None]:
    """The actor's files, newest first, and the cursor of the next page. The cursor is the last id seen."""
    files = visible_files(actor).order_by("-id")
    if cursor:
        after = parse_id(cursor)
        if after is None:
            raise Invalid("The cursor is not one that this list gave.", fields={"cursor": ["Not a cursor."]})
        files = files.filter(id__lt=after)
    found = list(files[: limit + 1])
    more, left = len(found) > limit, seconds_left(found[:limit])
    return [_info(file, left) for file in found[:limit]], str(found[limit - 1].id) if more else None


def summarize_files(actor: Actor, file_ids: Sequence[UUID]) -> tuple[FileSummary, ...]:
    """Raises NotFound if any is unknown, foreign or deleted."""
    return tuple(FileSummary(file.id, file.name, file.page_count, file.state) for file in access_files(actor, file_ids))


def summarize_known_files(file_ids: Collection[UUID]) -> tuple[FileSummary, ...]:
    """Summaries of files named by rows that the caller may see already; a deleted one has lost its name."""
    files = File.objects.filter(id__in=list(file_ids)) if file_ids else ()
    return tuple(
        FileSummary(file.id, "" if file.state == FileState.DELETED else file.name, file.page_count, file.state)
        for file in files
    )


# Pages


@dataclass(frozen=True, slots=True)
class PageInfo:
    """One page as its owner sees it; `text` only when it was asked for. `row_numbers` has one for each line of the text
    of a sheet, null where the line is no row; null where the page is of none."""

    number: int
    state: str
    source: str | None
    width: float | None
    height: float | None
    error: FileError | None
    text: str | None = None
    language: str | None = None
    row_numbers: list[int | None] | None = None

    def as_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "number": self.number,
            "state": self.state,
            "source": self.source,
            "width": self.width,
            "height": self.height,
            "error": {"code": self.error.code, "message": self.error.message} if self.error else None,
        }
        if self.text is None:
            return value
        return {**value, "text": self.text, "language": self.language, "row_numbers": self.row_numbers}


def list_pages(actor: Actor, file_id: object) -> list[PageInfo]:
    """Every page of the file, in order; those that were not reached yet are `pending`."""
    file = access_file(actor, file_id)
    fields = ("number", "state", "source", "width", "height", "error_code", "error_message")
    known = {page.number: page for page in Page.objects.filter(file=file).only(*fields)[:MAX_PAGES]}
    count = max(file.page_count or 0, *known, 0)
    return [_page_info(known[number]) if number in known else _unread(number) for number in range(1, count + 1)]


def get_page(actor: Actor, file_id: object, number: int) -> PageInfo:
    """One page with its text. Raises NotFound for a number that the file does not have."""
    file = access_file(actor, file_id)
    page = Page.objects.filter(file=file, number=number).defer("headings").first()
    if page is not None:
        return _page_info(page, with_text=True)
    if 1 <= number <= (file.page_count or 0):
        return _unread(number, text="")
    raise NotFound("The file has no such page.")


def _unread(number: int, text: str | None = None) -> PageInfo:
    return PageInfo(number, PageState.PENDING, None, None, None, None, text)


def _page_info(page: Page, *, with_text: bool = False) -> PageInfo:
    error = FileError(page.error_code, page.error_message) if page.error_code else None
    text = page.text if with_text else None
    language = extraction.main_language(page.elements) if with_text else None
    rows = _row_numbers(page.elements) if with_text else None
    return PageInfo(page.number, page.state, page.source or None, page.width, page.height, error, text, language, rows)


def _row_numbers(elements: Sequence[Mapping[str, Any]]) -> list[int | None] | None:
    if not any("rows" in element for element in elements):
        return None
    numbers: list[int | None] = []
    for element in elements:
        lines = element["text"].count("\n") + 1
        numbers += [*element.get("rows", [None] * lines), None]  # an empty line parts it from the next
    return numbers[:-1]
