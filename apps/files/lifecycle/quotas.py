"""How many files and bytes a person and their organization may keep, and how many they do.

Counted from the rows each time, so that nothing can drift: announced bytes from the beginning of an upload, and none
from the moment of a deletion. What is derived from files, pictures of pages among it, is not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Q, QuerySet, Sum

from apps.accounts.public import storage_limits
from apps.accounts.types import Actor
from apps.core.errors import Conflict, QuotaExceeded
from apps.files.access import visible_files
from apps.files.models import File, FileState

UNFINISHED_PER_OWNER = 100
_WITHOUT_CONTENT = ("expired", "missing")


@dataclass(frozen=True, slots=True)
class Usage:
    """What is kept, and how much of it may be; None where nothing bounds it."""

    files: int
    bytes: int
    files_at_most: int | None
    bytes_at_most: int | None

    def as_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "bytes": self.bytes,
            "files_at_most": self.files_at_most,
            "bytes_at_most": self.bytes_at_most,
        }


def usage(actor: Actor) -> tuple[Usage, Usage]:
    """The actor's own and their organization's."""
    limits = storage_limits(actor)
    files = settings.FILES_PER_OWNER if limits.files is None else limits.files
    most = settings.FILE_BYTES_PER_OWNER if limits.bytes is None else limits.bytes
    all_files = File.objects.filter(organization_id=actor.organization_id).exclude(state=FileState.DELETED)
    mine = Usage(*_kept(visible_files(actor)), files, most)
    return mine, Usage(*_kept(all_files), limits.organization_files, limits.organization_bytes)


def _kept(files: QuerySet[File]) -> tuple[int, int]:
    content = ~Q(state=FileState.FAILED, error_code__in=_WITHOUT_CONTENT)
    totals = files.aggregate(count=Count("id"), bytes=Sum("size", default=0, filter=content))
    return totals["count"], totals["bytes"]


def lock_room(actor: Actor) -> None:
    """Counting and adding are one step for each organization; held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"files:room:{actor.organization_id}"])


def check_room(actor: Actor, *, more_files: int, more_bytes: int) -> None:
    """Raises QuotaExceeded when it is too much for the actor or the organization, Conflict for too many uploads.

    At the end of an upload, whose file is counted already, nothing is added; the limit may have been lowered.
    """
    mine, everybody = usage(actor)
    _check(mine, more_files, more_bytes, whose="Your", advice="Delete some first.")
    advice = "Delete some, or ask who runs this installation for more."
    _check(everybody, more_files, more_bytes, whose="Your organization's", advice=advice)
    unfinished = visible_files(actor).filter(state=FileState.UPLOADING).count()
    if more_files and unfinished >= UNFINISHED_PER_OWNER:
        raise Conflict("Too many uploads are unfinished. Finish or delete some first.")


def _check(used: Usage, more_files: int, more_bytes: int, *, whose: str, advice: str) -> None:
    if used.files_at_most is not None and used.files + more_files > used.files_at_most:
        raise QuotaExceeded(
            f"{whose} files are {used.files:,} of {used.files_at_most:,} allowed. {advice}",
            used=used.files, limit=used.files_at_most, unit="files",
        )  # fmt: skip
    if used.bytes_at_most is not None and used.bytes + more_bytes > used.bytes_at_most:
        what = f"This file has {_mib(more_bytes)} MiB. " if more_bytes else ""
        raise QuotaExceeded(
            f"{what}{whose} files take {_mib(used.bytes)} of {_mib(used.bytes_at_most)} MiB allowed. {advice}",
            used=used.bytes, limit=used.bytes_at_most, unit="bytes",
        )  # fmt: skip


def _mib(size: int) -> str:
    return f"{ceil(size / (1 << 20)):,}"
