"""Who works on a stage or page, and until when.

A claim raises the row's `attempt`; that number fences every later write. A worker that lost its lease (killed,
frozen, cut off) can write nothing more, whoever took over, and a killed one is followed within a lease.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, connections, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.files.models import ENDED, File, FileStage, Page, PageState, StageName, StageState
from apps.files.pipeline.hints import hint

LEASE = timedelta(seconds=settings.FILE_LEASE_S)
BEAT_S = LEASE.total_seconds() / 3
MAX_FAILURES = 6
MAX_PAGE_FAILURES = 3
_BACKOFF_S, _BACKOFF_MAX_S = 2.0, 300.0

_ARM = """
    INSERT INTO files_stage (file_id, organization_id, name, state, attempt, failures, due_at, hinted_at,
                             error_code, error_message)
    VALUES (%(file)s, %(organization)s, %(name)s, 'pending', 0, 0, now(), now(), '', '')
    ON CONFLICT (file_id, name) DO UPDATE
    SET state = 'pending', failures = 0, due_at = now(), hinted_at = now(), error_code = '', error_message = ''
    WHERE files_stage.state IN ('done', 'failed')
    RETURNING id
"""

log = structlog.get_logger(__name__)


class LeaseLost(Exception):
    """Somebody else holds the stage or page now, or its file was deleted: stop, and write nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one stage of one file. `failures` counts the attempts that ended badly."""

    file_id: UUID
    organization_id: UUID
    owner_id: UUID
    name: StageName
    attempt: int
    failures: int


@dataclass(frozen=True, slots=True)
class PageClaim:
    """The right to recognise one page. `failures` counts the workers that died over it."""

    page_id: UUID
    file_id: UUID
    number: int
    attempt: int
    failures: int


# Claiming


def due(now: datetime) -> Q:
    """Stages that anyone may take at `now`."""
    waiting = Q(state=StageState.PENDING, due_at__lte=now)
    return waiting | Q(state=StageState.RUNNING, lease_until__lt=now)


def claim(file_id: UUID, name: StageName) -> Claim | None:
    """Take the stage if it is due or its lease ran out; None when there is nothing to do."""
    now = timezone.now()
    with transaction.atomic():
        stage = (
            FileStage.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("file")
            .filter(due(now), file_id=file_id, name=name)
            .exclude(file__state__in=ENDED)
            .first()
        )
        if stage is None:
            return None
        stage.failures += stage.state == StageState.RUNNING  # its last worker died
        stage.state, stage.attempt, stage.lease_until = StageState.RUNNING, stage.attempt + 1, now + LEASE
        stage.started_at, stage.finished_at = stage.started_at or now, None
        stage.save(
            update_fields=["state", "attempt", "failures", "lease_until", "started_at", "finished_at"],
            force_update=True,
        )
    return Claim(file_id, stage.organization_id, stage.file.owner_id, name, stage.attempt, stage.failures)


def claim_page(file_id: UUID) -> PageClaim | None:
    """Take the first page that waits for recognition and that nobody works on."""
    now = timezone.now()
    with transaction.atomic():
        page = (
            Page.objects.select_for_update(of=("self",), skip_locked=True)
            .filter(Q(lease_until=None) | Q(lease_until__lt=now), file_id=file_id, state=PageState.OCR)
            .exclude(file__state__in=ENDED)
            .only("id", "file_id", "number", "attempt", "failures", "lease_until")
            .order_by("number")
            .first()
        )
        if page is None:
            return None
        attempt, failures = page.attempt + 1, page.failures + (page.lease_until is not None)
        Page.objects.filter(id=page.id).update(attempt=attempt, failures=failures, lease_until=now + LEASE)
        # Any number of workers share this stage; it is stale when none of them has taken a page for a while.
        FileStage.objects.filter(file_id=file_id, name=StageName.OCR).update(
            state=StageState.RUNNING, lease_until=now + LEASE
        )
    return PageClaim(page.id, file_id, page.number, attempt, failures)


# Holding


def lock_stages(file_id: UUID) -> None:
    """Lock all stages of the file, before the file itself: whoever wants both takes them in this order."""
    list(FileStage.objects.select_for_update().filter(file_id=file_id).order_by("name").values_list("id"))


@contextmanager
def fence(held: Claim | PageClaim, *, ending: bool = False) -> Iterator[None]:
    """A transaction that commits only while the claim is held. Raises LeaseLost before anything is written.

    `ending`: the stage ends in it and what comes next is decided; all stages of the file are locked for that.
    """
    with transaction.atomic():
        if ending:
            lock_stages(held.file_id)
        if not _row(held).select_for_update().exists():
            raise LeaseLost
        yield


@contextmanager
def kept(held: Claim | PageClaim) -> Iterator[threading.Event]:
    """Renew the lease in the background while the block runs; the event is set when it was lost."""
    lost, stop = threading.Event(), threading.Event()
    thread = threading.Thread(target=_renew, args=(held, lost, stop), name="lease", daemon=True)
    thread.start()
    try:
        yield lost
    finally:
        stop.set()
        thread.join()


def _renew(held: Claim | PageClaim, lost: threading.Event, stop: threading.Event) -> None:
    while not stop.wait(BEAT_S):
        try:
            if not _row(held).update(lease_until=timezone.now() + LEASE):
                lost.set()
                return
        except DatabaseError as error:  # the next beat tries again; the fence decides in the end
            log.warning("files.lease_not_renewed", error=type(error).__name__)
        finally:
            connections.close_all()


def _stage(held: Claim) -> QuerySet[FileStage]:
    return FileStage.objects.filter(
        file_id=held.file_id, name=held.name, attempt=held.attempt, state=StageState.RUNNING
    )


def _row(held: Claim | PageClaim) -> QuerySet[Page] | QuerySet[FileStage]:
    if isinstance(held, Claim):
        return _stage(held)
    return Page.objects.filter(id=held.page_id, attempt=held.attempt, state=PageState.OCR)


# Ending. Each is one fenced transaction.


def finish(held: Claim, *, code: str = "", message: str = "") -> None:
    """Close the stage inside the caller's fence; with a code when it ended without its result."""
    state = StageState.FAILED if code else StageState.DONE
    _stage(held).update(
        state=state, finished_at=timezone.now(), lease_until=None, due_at=None, error_code=code, error_message=message
    )


def postpone(held: Claim, seconds: float) -> None:
    """Give the stage back, to be taken again in `seconds`; not a failure."""
    with fence(held):
        _give_back(held, seconds, failures=held.failures)


def retry(held: Claim) -> float:
    """Give the stage back after a failure: exponential back-off with jitter. Returns the wait in seconds."""
    base: float = min(_BACKOFF_MAX_S, _BACKOFF_S * 2.0**held.failures)
    seconds = base * random.uniform(0.5, 1.5)  # noqa: S311 - jitter
    with fence(held):
        _give_back(held, seconds, failures=held.failures + 1)
    return seconds


def _give_back(held: Claim, seconds: float, *, failures: int) -> None:
    at = timezone.now() + timedelta(seconds=seconds)
    _stage(held).update(state=StageState.PENDING, due_at=at, hinted_at=at, lease_until=None, failures=failures)
    hint(held.name, held.file_id, countdown=seconds)


def give_back_page(held: PageClaim) -> None:
    """Let another worker have the page at once."""
    _row(held).update(lease_until=None)


def arm(file: File, name: StageName, *, hints: int = 1) -> None:
    """Make the stage due now, unless it is waiting or being worked on already."""
    with connection.cursor() as cursor:
        cursor.execute(_ARM, {"file": file.id, "organization": file.organization_id, "name": name.value})
        armed = cursor.fetchone() is not None
    if armed:
        for _ in range(hints):
            hint(name, file.id)
