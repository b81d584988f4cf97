"""The work of each stage, given a claim. Each step can be broken off anywhere and taken up again.

A step writes under its claim's fence and raises what went wrong; `run` turns that into the stage's next state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from apps.core.errors import NotFound
from apps.files import extraction, indexing
from apps.files.extraction import Document, ExtractionFailed, Limits, PageRecord
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.indexing.vectors import EmbedderAway
from apps.files.models import File, FileStage, FileState, Page, PageState, StageName
from apps.files.pipeline import copying, leases, pictures, progress, tabling
from apps.files.pipeline.leases import Claim, LeaseLost
from apps.files.scanning import inspect
from apps.files.storage import StorageUnavailable, storage
from apps.files.types import FAULTS, FileFault, Retryable, as_kind

COPY_WAIT_S, COPY_WAIT_MAX_S = 2.0, 30.0
EMBED_WAIT_S, EMBED_WAIT_MAX_S = 5.0, 300.0
EMBED_SLICE_S = 2.0  # an upload behind two long files waits as long for its first page
Lost = threading.Event
log = structlog.get_logger(__name__)

OUTSIDE = (
    Retryable,
    StorageUnavailable,
    EmbedderUnavailable,
    OperationalError,
    InterfaceError,
    OSError,
    SoftTimeLimitExceeded,
)
"""Failures that say nothing about the file."""


class Wait(Exception):
    """Not a failure: look again in `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def limits() -> Limits:
    return Limits(max_pages=settings.FILE_MAX_PAGES)


def run(file_id: UUID, name: StageName) -> None:
    """Do the stage if it is due; nothing otherwise.

    What is raised is a bug: the lease runs out and the stage is tried again, like one whose worker was killed.
    """
    held = leases.claim(file_id, name)
    if held is None:
        return
    try:
        if held.failures >= leases.MAX_FAILURES:
            raise FileFault("crashed")
        progress.started(held)
        with leases.kept(held) as lost:
            STEPS[name](held, lost)
    except LeaseLost:
        log.info("files.lease_lost", file_id=str(file_id), stage=name)
    except Wait as wait:
        _unless_lost(partial(leases.postpone, held, wait.seconds))
    except ExtractionFailed as failed:
        _unless_lost(partial(progress.fail, held, failed.reason.value, failed.message))
    except NotFound:
        _unless_lost(partial(progress.fail, held, "missing", FAULTS["missing"]))
    except FileFault as fault:
        _unless_lost(partial(progress.fail, held, fault.reason, fault.message))
    except OUTSIDE as error:
        _retry(held, error)


def _retry(held: Claim, error: BaseException) -> None:
    log.warning("files.retry", file_id=str(held.file_id), stage=held.name, error=repr(error), failures=held.failures)
    if held.failures + 1 >= leases.MAX_FAILURES:
        _unless_lost(partial(progress.fail, held, "unavailable", FAULTS["unavailable"]))
    else:
        _unless_lost(partial(leases.retry, held))


def _unless_lost(end: Callable[[], object]) -> None:
    try:
        end()
    except LeaseLost:
        log.info("files.lease_lost_at_end")


# Verify


def verify(held: Claim, lost: Lost) -> None:
    file = File.objects.get(id=held.file_id)
    size = storage().size(file.readable_key)
    if size is None:
        raise FileFault("missing")
    if size > settings.FILE_MAX_BYTES or (size != file.size and not file.unlocked_key):
        raise FileFault("size_mismatch")
    with storage().local(file.readable_key) as path:
        found = inspect(path, as_kind(file.kind), clamd_socket=settings.CLAMD_SOCKET)
    with leases.fence(held):
        copying.lock_content(held.owner_id, found.sha256)
        same_as = copying.known_copy(file, found.sha256)
        File.objects.filter(id=file.id).update(
            sha256=found.sha256, scanner=found.scanner, same_as_id=same_as, stage=StageName.PARSE
        )
        leases.finish(held)
        leases.arm(file, StageName.PARSE)


# Parse


def parse(held: Claim, lost: Lost) -> None:
    file = File.objects.get(id=held.file_id)
    if file.same_as_id and _copy(held, file):
        return
    with storage().local(file.readable_key) as path:
        _read(held, lost, file, path, tabling.publish_sheets(held, file, path))
    notices = tabling.publish_found(held, file)
    with leases.fence(held, ending=True):
        if notices:
            known = File.objects.values_list("notices", flat=True).get(id=file.id)
            File.objects.filter(id=file.id).update(notices=[*known, *notices])
        progress.conclude(held)


def _read(held: Claim, lost: Lost, file: File, path: Path, notices: tuple[str, ...]) -> None:
    reader = _Reader(held, lost, file, notices)
    extraction.run(
        path,
        as_kind(file.kind),
        limits=limits(),
        first=reader.first,
        on_start=reader.on_start,
        on_page=reader.on_page,
        on_picture=reader.on_picture,
    )


def _copy(held: Claim, file: File) -> bool:
    """Take the derived rows of the earlier file with this content. False when that one turned out to be of no use."""
    tables = tabling.copy_objects(file)
    with leases.fence(held, ending=True):
        source = copying.lock_source(file)
        if source is None:
            File.objects.filter(id=file.id).update(same_as_id=None)
            return False
        if source.state == FileState.PROCESSING or tables != tabling.numbers(source.id):
            waiting = True
        else:
            waiting = False
            Page.objects.filter(file=file).delete()
            copying.copy_derived(source.id, file.id)
            File.objects.filter(id=file.id).update(page_count=source.page_count, notices=source.notices)
            progress.conclude(held)
    if waiting:
        raise _wait_for(file, COPY_WAIT_S, COPY_WAIT_MAX_S)
    return True


def _wait_for(file: File, least_s: float, most_s: float) -> Wait:
    """A tenth of the file's age: short for who watches it, and rare for what has waited long."""
    age = (timezone.now() - file.created_at).total_seconds()
    return Wait(min(most_s, max(least_s, age / 10)))


class _Reader:
    """Publishes pages as they come: a page and its index are one transaction."""

    def __init__(self, held: Claim, lost: Lost, file: File, notices: tuple[str, ...]) -> None:
        self._held, self._lost, self._file, self._notices = held, lost, file, notices
        self._known = set(Page.objects.filter(file=file).values_list("number", flat=True))
        self._progress = progress.Progress(file.id)
        self._failures = held.failures
        self.first = 1
        while self.first in self._known:
            self.first += 1

    def on_start(self, document: Document) -> None:
        with leases.fence(self._held):
            notices = [*document.notices, *self._notices]
            File.objects.filter(id=self._file.id).update(page_count=document.page_count, notices=notices)

    def on_picture(self, key: str, data: bytes) -> None:
        if self._lost.is_set():
            raise LeaseLost
        pictures.keep(self._file, key, data)

    def on_page(self, record: PageRecord) -> None:
        if self._lost.is_set():
            raise LeaseLost
        if record.number in self._known:
            return
        with leases.fence(self._held):
            page = Page(file=self._file, organization_id=self._file.organization_id, number=record.number)
            fill(page, record)
            page.save(force_insert=True)
            if page.state != PageState.FAILED:
                indexing.index_page(page.id)
            if self._failures:  # getting further is not what a poisonous file does
                FileStage.objects.filter(file=self._file, name=self._held.name).update(failures=0)
                self._failures = 0
        self._progress.tick()


def fill(page: Page, record: PageRecord) -> None:
    """Put what was read into the row. A page that waits for recognition keeps what text it has until then."""
    page.source = record.source or ""
    page.text, page.width, page.height = record.text, record.width, record.height
    page.elements, page.headings = record.elements_json(), record.headings_json()
    page.confidence = record.confidence
    page.state = PageState.OCR if record.needs_ocr else PageState.READY
    if record.error is not None:
        page.state = PageState.FAILED
        page.error_code, page.error_message = record.error.value, record.error_message


# Index and embed


def index(held: Claim, lost: Lost) -> None:
    """Pages whose index was not made where they were read."""
    for page_id in Page.objects.filter(file_id=held.file_id, state=PageState.READY, indexed_at=None).values_list(
        "id", flat=True
    ):
        if lost.is_set():
            raise LeaseLost
        with leases.fence(held):
            indexing.index_page(page_id)
    with leases.fence(held, ending=True):
        progress.conclude(held)


def embed(held: Claim, lost: Lost) -> None:
    """A slice of a long file at a time, so that it does not hold back everybody behind it. While no replica makes
    vectors the file waits for one, however long: keywords find it meanwhile."""
    ends = time.monotonic() + EMBED_SLICE_S
    try:
        while indexing.embed_some(held.file_id):
            if lost.is_set():
                raise LeaseLost
            if time.monotonic() > ends:
                raise Wait(0)
    except EmbedderAway as away:
        raise _wait_for(File.objects.get(id=held.file_id), EMBED_WAIT_S, EMBED_WAIT_MAX_S) from away
    with leases.fence(held, ending=True):
        progress.conclude(held)


STEPS: dict[StageName, Callable[[Claim, Lost], None]] = {
    StageName.VERIFY: verify,
    StageName.PARSE: parse,
    StageName.INDEX: index,
    StageName.EMBED: embed,
}
