"""Finds what lost its message or its worker, and sends a message again. Runs every few seconds, does little.

Each queue is looked at first: while it holds a backlog, the messages in it will be reached, and more would
only make it longer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID

import redis
import structlog
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.valkey import valkey
from apps.files.models import ENDED, File, FileStage, FileState
from apps.files.pipeline import reembedding
from apps.files.pipeline.hints import PURGE, hint, queue_of
from apps.files.pipeline.leases import due
from apps.files.pipeline.progress import note
from apps.files.storage import StorageUnavailable, storage
from apps.files.types import FAULTS

BATCH = 200
BACKLOG = 500
PATIENCE = timedelta(seconds=20)
log = structlog.get_logger(__name__)


def sweep() -> dict[str, int]:
    """Send lost hints again and end uploads that were never finished. Returns what was done, for the log."""
    done = {
        "stages": _hint_stages(),
        "purges": _hint_purges(),
        "expired": _expire_uploads(),
        "renewed": reembedding.step(),  # last: with a new model it makes an index first
    }
    if any(done.values()):
        log.info("files.swept", **done)
    return done


def _hint_stages() -> int:
    now = timezone.now()
    found = list(
        FileStage.objects.filter(due(now), Q(hinted_at=None) | Q(hinted_at__lt=now - PATIENCE))
        .exclude(file__state__in=ENDED)
        .order_by("hinted_at")
        .values_list("id", "file_id", "name")[:BATCH]
    )
    by_name: dict[str, list[tuple[int, UUID]]] = defaultdict(list)
    for stage_id, file_id, name in found:
        by_name[name].append((stage_id, file_id))
    return sum(_send(name, stages) for name, stages in by_name.items())


def _send(name: str, stages: list[tuple[int, UUID]]) -> int:
    if _has_backlog(queue_of(name)):
        return 0
    with transaction.atomic():
        # A locked row is in somebody's hands: of a worker that froze with it, until the server ends its session.
        free = FileStage.objects.select_for_update(skip_locked=True).filter(id__in=[stage_id for stage_id, _ in stages])
        hinted = dict(free.values_list("id", "file_id"))
        FileStage.objects.filter(id__in=hinted).update(hinted_at=timezone.now())
    _hint_all(name, hinted.values())
    return len(hinted)


def _hint_all(name: str, file_ids: Iterable[UUID]) -> None:
    for file_id in file_ids:
        hint(name, file_id)


def _has_backlog(queue: str) -> bool:
    try:
        return int(valkey().llen(queue)) > BACKLOG
    except redis.RedisError:
        return True  # nothing could be sent


def _hint_purges() -> int:
    if _has_backlog(queue_of(PURGE)):
        return 0
    overdue = File.objects.filter(
        state=FileState.DELETED, purged_at=None, deleted_at__lt=timezone.now() - PATIENCE
    ).values_list("id", flat=True)[:BATCH]
    _hint_all(PURGE, overdue)
    return len(overdue)


def _expire_uploads() -> int:
    expired = File.objects.filter(state=FileState.UPLOADING, upload_expires_at__lt=timezone.now())[:BATCH]
    done = 0
    try:
        for file in expired:
            storage().abort(file.object_key, file.upload_ref)
            done += _expire(file)
    except StorageUnavailable:
        log.warning("files.store_down")  # the next sweep finds the rest
    return done


def _expire(file: File) -> bool:
    file.state, file.stage = FileState.FAILED, ""
    file.error_code, file.error_message = "expired", FAULTS["expired"]
    changed = File.objects.filter(id=file.id, state=FileState.UPLOADING).update(
        state=file.state, stage="", error_code=file.error_code, error_message=file.error_message
    )
    if changed:
        note(file)
    return bool(changed)
