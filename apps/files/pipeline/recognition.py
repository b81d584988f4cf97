"""Recognition of pages without text. Any number of workers share one file, a page at a time.

A worker gives a file up after a while, so that a book of scans does not hold back everybody behind it.
"""

from __future__ import annotations

import time
from uuid import UUID

import structlog

from apps.files import extraction, indexing
from apps.files.extraction import ExtractionFailed, PageRecord, Reason
from apps.files.models import File, Page, PageState, StageName
from apps.files.pipeline import leases, progress
from apps.files.pipeline.hints import hint
from apps.files.pipeline.leases import LeaseLost, PageClaim
from apps.files.pipeline.steps import OUTSIDE, fill, limits
from apps.files.storage import storage
from apps.files.types import as_kind

SLICE_S = 60.0
log = structlog.get_logger(__name__)


def recognise(file_id: UUID) -> None:
    """Recognise waiting pages of the file until none is left or the time is up, then send the message on."""
    ends = time.monotonic() + SLICE_S
    ticker = progress.Progress(file_id)
    while held := leases.claim_page(file_id):
        try:
            _recognise_page(held)
        except LeaseLost:
            log.info("files.page_lease_lost", file_id=str(file_id), page=held.number)
        except OUTSIDE as error:
            log.warning("files.page_retry", file_id=str(file_id), page=held.number, error=repr(error))
            leases.give_back_page(held)
            hint(StageName.OCR, file_id, countdown=leases.BEAT_S)
            return
        ticker.tick()
        if time.monotonic() > ends:
            hint(StageName.OCR, file_id)
            return
    progress.advance(file_id)


def _recognise_page(held: PageClaim) -> None:
    with leases.kept(held):
        record = _read(held)
    with leases.fence(held):
        page = Page.objects.get(id=held.page_id)
        if record.error is not None and page.text:
            page.state = PageState.READY  # its own text may be poor, but it is all there is
        else:
            fill(page, record)
        page.lease_until = None
        page.save(force_update=True)
        if page.state == PageState.READY:
            indexing.index_page(page.id)


def _read(held: PageClaim) -> PageRecord:
    if held.failures >= leases.MAX_PAGE_FAILURES:
        return PageRecord(number=held.number, error=Reason.CRASHED)
    file = File.objects.get(id=held.file_id)
    try:
        with storage().local(file.object_key) as path:
            return extraction.ocr_page(path, as_kind(file.kind), held.number, limits=limits())
    except ExtractionFailed as failed:
        return PageRecord(number=held.number, error=failed.reason)
