"""Where a file stands, derived from its rows: counters, the next stages, the final state, live notes.

Nothing is counted up or carried along, so whatever was killed or done twice, the next look is right.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import redis
from django.db import connection, transaction

from apps.core.notify import notify_user
from apps.core.valkey import valkey
from apps.files import indexing
from apps.files.models import (
    ENDED,
    File,
    FileStage,
    FileState,
    Page,
    PageState,
    Passage,
    Searchable,
    StageName,
    StageState,
)
from apps.files.pipeline.freshness import note_searchable
from apps.files.pipeline.leases import Claim, arm, fence, finish, lock_stages
from apps.files.selectors import file_info
from apps.files.types import FAULTS, UNLOCKABLE

NOTE_INTERVAL_S = 0.25
OCR_FANOUT = 4
_LISTED = 12
CANCELLED = "cancelled"

_COUNTS = """
    SELECT count(*) FILTER (WHERE state = 'ready' AND indexed_at IS NOT NULL),
           count(*) FILTER (WHERE state = 'ready' AND indexed_at IS NULL),
           count(*) FILTER (WHERE state = 'ocr'),
           coalesce(array_agg(number ORDER BY number) FILTER (WHERE state = 'failed'), '{}')
    FROM files_page WHERE file_id = %s
"""


@dataclass(frozen=True, slots=True)
class _Counts:
    ready: int
    unindexed: int
    unrecognised: int
    failed: list[int]


def _counts(file_id: UUID) -> _Counts:
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [file_id])
        return _Counts(*cursor.fetchone())


# Notes


def note(file: File) -> None:
    """Tell the owner's open pages where the file stands, once the transaction commits."""
    notify_user(file.owner_id, {"type": "file", "file": file_info(file).as_json()})


class Progress:
    """Counters and notes while pages arrive: at most four a second for a file, over all processes."""

    def __init__(self, file_id: UUID) -> None:
        self._file_id = file_id
        self._next = 0.0

    def tick(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + NOTE_INTERVAL_S
        if not _first_within_interval(self._file_id):
            return
        counts = _counts(self._file_id)
        _update(self._file_id, _counters(counts))
        if file := File.objects.filter(id=self._file_id).first():
            note(file)


def _first_within_interval(file_id: UUID) -> bool:
    try:
        return bool(valkey().set(f"files:note:{file_id}", b"1", nx=True, px=int(NOTE_INTERVAL_S * 1000)))
    except redis.RedisError:
        return False  # a note could not be sent either


def _counters(counts: _Counts) -> dict[str, Any]:
    searchable = {"searchable": Searchable.KEYWORD} if counts.ready else {}
    return {"pages_ready": counts.ready, "pages_failed": counts.failed, **searchable}


def _update(file_id: UUID, values: dict[str, Any]) -> None:
    File.objects.filter(id=file_id).exclude(state=FileState.DELETED).update(**values)


# What comes next


def started(held: Claim) -> None:
    """Show the stage that work has begun on. Vectors are made behind a file that is ready already."""
    _update(held.file_id, {"stage": held.name})
    if file := File.objects.filter(id=held.file_id).first():
        note(file)


def conclude(held: Claim) -> None:
    """End the stage and arm what comes next, inside the caller's ending fence: who is killed does both or neither."""
    finish(held)
    advance(held.file_id)


def advance(file_id: UUID) -> None:
    """Arm the stages that have work, or settle the file when none is left. Safe to call at any time."""
    with transaction.atomic():
        lock_stages(file_id)
        # Not the lock that would keep workers from adding pages while they hold rows that are wanted here.
        file = File.objects.select_for_update(no_key=True).filter(id=file_id).first()
        if file is None or file.state in (*ENDED, FileState.UPLOADING):
            return
        stages = dict(FileStage.objects.filter(file_id=file_id).values_list("name", "state"))
        counts = _counts(file_id)
        file.pages_ready, file.pages_failed = counts.ready, counts.failed
        if counts.ready and file.searchable == Searchable.NONE:
            file.searchable = Searchable.KEYWORD
        if stages.get(StageName.PARSE) in (StageState.DONE, StageState.FAILED):
            _after_parse(file, stages, counts)
        file.save(force_update=True)
        note(file)


def _after_parse(file: File, stages: dict[str, str], counts: _Counts) -> None:
    unembedded = indexing.unembedded(file.id).exists()
    waiting = [
        (StageName.OCR, counts.unrecognised > 0),
        (StageName.INDEX, counts.unindexed > 0),
        (StageName.EMBED, unembedded and stages.get(StageName.EMBED) != StageState.FAILED),
    ]
    due = [name for name, has_work in waiting if has_work]
    for name in due:
        arm(file, name, hints=min(counts.unrecognised, OCR_FANOUT) if name == StageName.OCR else 1)
    if StageName.OCR not in due:
        FileStage.objects.filter(file=file, name=StageName.OCR).exclude(state=StageState.DONE).update(
            state=StageState.DONE, lease_until=None, due_at=None
        )
    file.stage = due[0] if due else ""
    if not set(due) - {StageName.EMBED}:
        _settle(file, counts, embedded=not unembedded)


def _settle(file: File, counts: _Counts, *, embedded: bool) -> None:
    """Every page is readable and indexed, or has failed."""
    if not counts.ready:
        first = Page.objects.filter(file=file, state=PageState.FAILED).order_by("number").first()
        set_failed(file, first.error_code if first else "empty", first.error_message if first else FAULTS["empty"])
    elif not Passage.objects.filter(file=file).exists():
        set_failed(file, "empty", FAULTS["empty"])
    else:
        stopped = Page.objects.filter(file=file, state=PageState.FAILED, error_code=CANCELLED).exists()
        file.state = FileState.PARTIAL if counts.failed else FileState.READY
        file.error_code = CANCELLED if stopped else "pages_failed" if counts.failed else ""
        file.error_message = _unreadable(counts.failed, stopped=stopped) if counts.failed else ""
        file.searchable = Searchable.HYBRID if embedded else Searchable.KEYWORD
        note_searchable(file)


def _unreadable(numbers: list[int], *, stopped: bool) -> str:
    named = ", ".join(str(number) for number in numbers[:_LISTED])
    more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
    which = f"page {named}" if len(numbers) == 1 else f"pages {named}{more}"
    if stopped:
        return f"Reading was stopped: {which} {'was' if len(numbers) == 1 else 'were'} not read."
    return f"{which.capitalize()} could not be read."


# Failure


def fail(held: Claim, code: str, message: str) -> None:
    """End the stage for good. What was read before stays usable; the file fails only when nothing was."""
    with fence(held, ending=True):
        finish(held, code=code, message=message)
        file = File.objects.select_for_update(no_key=True).get(id=held.file_id)
        if held.name == StageName.PARSE and Page.objects.filter(file=file).exists():
            fail_missing_pages(file, code, message)
        elif held.name == StageName.INDEX:
            Page.objects.filter(file=file, state=PageState.READY, indexed_at=None).update(
                state=PageState.FAILED, error_code=code, error_message=message
            )
        elif held.name != StageName.EMBED:
            set_failed(file, code, message)
            file.save(force_update=True)
            note(file)
        advance(held.file_id)


def set_failed(file: File, code: str, message: str) -> None:
    asks = code == "encrypted" and file.kind in UNLOCKABLE
    file.state, file.stage = FileState.NEEDS_PASSWORD if asks else FileState.FAILED, ""
    file.searchable = Searchable.NONE
    if code == "encrypted" and not asks:
        message = FAULTS["locked"]
    file.error_code, file.error_message = code, message[:500]


def fail_missing_pages(file: File, code: str, message: str) -> None:
    present = set(Page.objects.filter(file=file).values_list("number", flat=True))
    missing = [number for number in range(1, (file.page_count or 0) + 1) if number not in present]
    Page.objects.bulk_create(
        [
            Page(
                file=file,
                organization_id=file.organization_id,
                number=number,
                state=PageState.FAILED,
                error_code=code,
                error_message=message[:500],
            )
            for number in missing
        ],
        ignore_conflicts=True,
    )
