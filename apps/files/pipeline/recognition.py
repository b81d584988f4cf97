"""Recognition of pages without text, and of pictures that stand in documents. Any number of workers share one file, a
page at a time.

A worker gives a file up after a while, so that a book of scans does not hold back everybody behind it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import structlog

from apps.core.errors import NotFound
from apps.files import extraction, indexing
from apps.files.extraction import ExtractionFailed, PageRecord, Reason
from apps.files.models import File, Page, PageState, StageName
from apps.files.pipeline import leases, pictures, progress
from apps.files.pipeline.hints import hint
from apps.files.pipeline.leases import LeaseLost, PageClaim
from apps.files.pipeline.steps import OUTSIDE, fill, limits
from apps.files.storage import storage
from apps.files.types import DRAWN, FAULTS, Kind, as_kind

SLICE_S = 15.0
_PAGES_ASKED = 3
log = structlog.get_logger(__name__)


def recognise(file_id: UUID) -> None:
    """Recognise waiting pages of the file until none is left or the time is up, then send the message on."""
    ends, ticker = time.monotonic() + SLICE_S, progress.Progress(file_id)
    held = leases.claim_page(file_id)
    if held is None:
        progress.advance(file_id)
        return
    file = File.objects.get(id=file_id)
    try:
        with _drawn_from(file) as path:
            while held is not None:
                _recognise_page(held, file, path)
                ticker.tick()
                held = leases.claim_page(file_id) if time.monotonic() < ends else None
    except NotFound:
        _fail_waiting(file_id)
    except OUTSIDE as error:
        log.warning("files.page_retry", file_id=str(file_id), error=repr(error))
        if held is not None:
            leases.give_back_page(held)
        hint(StageName.OCR, file_id, countdown=leases.BEAT_S)
        return
    if time.monotonic() < ends:
        progress.advance(file_id)
        pictures.forget(file)
    else:
        hint(StageName.OCR, file_id)


@contextmanager
def _drawn_from(file: File) -> Iterator[Path | None]:
    """The file that pages are drawn from, once a slice: it may be a download. Others only have pictures, each kept by
    itself."""
    if file.kind not in DRAWN:
        yield None
        return
    with storage().local(file.readable_key) as path:
        yield path


def _fail_waiting(file_id: UUID) -> None:
    waiting = Page.objects.filter(file_id=file_id, state=PageState.OCR)
    waiting.exclude(text="").update(state=PageState.READY)
    waiting.update(state=PageState.FAILED, error_code="missing", error_message=FAULTS["missing"])


def _recognise_page(held: PageClaim, file: File, path: Path | None) -> None:
    try:
        page = Page.objects.filter(id=held.page_id).first()
        if page is None:
            raise LeaseLost
        picture = pictures.waiting(page)
        with leases.kept(held):
            record = _read_picture(held, file, page, picture) if picture else _read(held, path, as_kind(file.kind))
        with leases.fence(held):
            _store(held, record, picture)
    except LeaseLost:
        log.info("files.page_lease_lost", file_id=str(held.file_id), page=held.number)


def _read_picture(held: PageClaim, file: File, page: Page, picture: str) -> PageRecord:
    record = PageRecord(number=held.number, error=Reason.CRASHED)
    if held.failures < leases.MAX_PAGE_FAILURES:
        language = extraction.main_language(page.elements) or _language(file.id)
        record = pictures.read(file, picture, limits=limits(), language=language)
    if record.error is not None:
        pictures.say_unread(file.id)
    return record


def _read(held: PageClaim, path: Path | None, kind: Kind) -> PageRecord:
    if held.failures >= leases.MAX_PAGE_FAILURES or path is None:
        return PageRecord(number=held.number, error=Reason.CRASHED)
    try:
        return extraction.ocr_page(path, kind, held.number, limits=limits(), language=_language(held.file_id))
    except ExtractionFailed as failed:
        return PageRecord(number=held.number, error=failed.reason)


def _language(file_id: UUID) -> str | None:
    """What a few pages that were read already are mostly in."""
    read = Page.objects.filter(file_id=file_id, state=PageState.READY).exclude(text="").order_by("-number")
    return extraction.main_language(
        element for elements in read.values_list("elements", flat=True)[:_PAGES_ASKED] for element in elements
    )


def _own_text(page: Page) -> PageRecord:
    elements = PageRecord.elements_of_json(page.elements)
    return PageRecord(number=page.number, elements=elements, confidence=page.confidence)


def _store(held: PageClaim, record: PageRecord, picture: str | None) -> None:
    page = Page.objects.get(id=held.page_id)
    if picture is not None:
        pictures.put_in_place(page, picture, record)
    elif record.error is not None and page.text:
        page.state = PageState.READY  # its own text may be poor, but it is all there is
    else:
        fill(page, extraction.combined(_own_text(page), record))
    page.lease_until = None
    page.save(force_update=True)
    if page.state == PageState.READY:
        indexing.index_page(page.id)
