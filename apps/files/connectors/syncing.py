"""Keeping an owner's files in step with a place outside.

Each item has a row that says which version of it which file holds. A new version becomes a file beside the old one,
which is deleted once the new one can be read. Everything can be broken off anywhere: the file's id is on the row before
the file exists, so the next round finds what was begun. One round at a time for a place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.accounts.types import Actor
from apps.core.errors import AppError, NotFound
from apps.core.ids import new_id
from apps.files import services
from apps.files.connectors.folder import LocalFolder
from apps.files.connectors.types import Connector, ConnectorError, Item, Listing
from apps.files.models import File, FileState, Sync, SyncItem

EVERY = timedelta(minutes=5)
NEW_A_ROUND = 200
BYTES_A_ROUND = 1 << 30
"""More than that waits for the next round, so that no round holds a worker for long."""
_SETTLED = (FileState.READY, FileState.PARTIAL, FileState.NEEDS_PASSWORD)
log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Outcome:
    """What a round did. `busy`: another round is at it, and this one did nothing. `waiting`: left for the next."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: int = 0
    waiting: int = 0
    skipped: int = 0
    busy: bool = False


def sync(actor: Actor, connector: Connector, *, allow_empty: bool = False) -> Outcome:
    """One round. Raises ConnectorError when the place cannot be listed, having changed nothing.

    A place that is empty all at once is more likely not mounted than emptied: it is refused unless `allow_empty`.
    """
    row, _ = Sync.objects.get_or_create(
        organization_id=actor.organization_id, owner_id=actor.user_id, kind=connector.kind, location=connector.location
    )
    with _alone(row) as alone:
        if not alone:
            return Outcome(busy=True)
        row.refresh_from_db()
        try:
            return _Round(actor, connector, row).run(allow_empty=allow_empty)
        except ConnectorError as error:
            _note(row, error=str(error))
            raise


def sync_due() -> int:
    """A round for every place whose last one is some minutes ago; returns how many. Called by the schedule."""
    due = Sync.objects.exclude(synced_at__gt=timezone.now() - EVERY).order_by("synced_at")[:100]
    done = 0
    for row in due:
        actor = Actor(user_id=row.owner_id, organization_id=row.organization_id)
        try:
            sync(actor, LocalFolder(row.location, settings.CONNECTOR_ROOTS))
        except ConnectorError as error:
            _note(row, error=str(error))
            log.warning("files.sync_failed", sync=str(row.id), error=str(error))
        done += 1
    return done


@contextmanager
def _alone(row: Sync) -> Iterator[bool]:
    """Whether nobody else is at it. The lock is the connection's, so it ends with a process that is killed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [f"files:sync:{row.id}"])
        taken = bool(cursor.fetchone() == (True,))
    try:
        yield taken
    finally:
        if taken:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [f"files:sync:{row.id}"])


def _note(row: Sync, *, error: str = "", cursor: str | None = None) -> None:
    Sync.objects.filter(id=row.id).update(
        error=error[:500], synced_at=timezone.now(), cursor=row.cursor if cursor is None else cursor
    )


class _Round:
    def __init__(self, actor: Actor, connector: Connector, row: Sync) -> None:
        self._actor, self._connector, self._row = actor, connector, row
        self._known = {item.external_id: item for item in SyncItem.objects.filter(sync=row)}
        self._new = self._bytes = 0
        self.outcome = Outcome()

    def run(self, *, allow_empty: bool) -> Outcome:
        listing = self._connector.list(self._row.cursor)
        if listing.complete and not listing.items and self._known and not allow_empty:
            raise ConnectorError(f"{self._connector.location} is empty all at once. Is it mounted?")
        self.outcome.skipped = listing.skipped
        for row in self._known.values():
            self._promote(row)
        for external_id in self._gone(listing):
            self._remove(self._known[external_id])
        for item in listing.items:
            self._take(item)
        _note(self._row, cursor="" if self.outcome.waiting else listing.cursor)
        return self.outcome

    def _gone(self, listing: Listing) -> set[str]:
        gone = set(listing.deleted) & set(self._known)
        return gone | (set(self._known) - {item.external_id for item in listing.items} if listing.complete else set())

    def _take(self, item: Item) -> None:
        row = self._known.get(item.external_id) or SyncItem(
            sync=self._row, organization_id=self._row.organization_id, external_id=item.external_id
        )
        begun = row.pending_version == item.version
        if row.version == item.version or (begun and (row.pending_id is None or self._exists(row.pending_id))):
            self.outcome.unchanged += 1
        elif self._new >= NEW_A_ROUND or (self._bytes + item.size > BYTES_A_ROUND and self._new):
            self.outcome.waiting += 1
        else:
            self._new += 1
            self._bytes += item.size
            self._ingest(row, item)

    def _exists(self, file_id: UUID) -> bool:
        return File.objects.filter(id=file_id, owner_id=self._row.owner_id).exists()

    def _ingest(self, row: SyncItem, item: Item) -> None:
        """What is too large or of a wrong kind is not tried again before it changes; what is away or full is."""
        is_new = not row.version
        try:
            data = self._connector.read(item, at_most=settings.FILE_MAX_BYTES)
            if row.pending_version != item.version:
                self._discard(row)
                row.pending_id, row.pending_version = new_id(), item.version
            row.error = ""
            row.save()
            assert row.pending_id is not None
            services.add_file(self._actor, file_id=row.pending_id, name=item.name, data=data)
        except (AppError, ConnectorError) as error:
            self.outcome.failed += 1
            row.error = str(error)[:500]
            if isinstance(error, AppError) and error.status in (413, 415, 422):
                row.pending_id = None
            row.save()
            return
        self.outcome.added += is_new
        self.outcome.changed += not is_new

    def _promote(self, row: SyncItem) -> None:
        """Once the new version can be read, or asks for its password, the old one goes. One that failed stays beside
        the old one, where its owner sees why."""
        if row.pending_id is None:
            return
        pending = File.objects.filter(id=row.pending_id, owner_id=self._row.owner_id).first()
        if pending is None or pending.state not in (*_SETTLED, FileState.DELETED):
            return
        if pending.state != FileState.DELETED:  # else its owner wanted the new version gone, and not the old
            if row.current_id is not None:
                self._delete(row.current_id)
            row.current_id = row.pending_id
        row.version = row.pending_version
        row.pending_id, row.pending_version = None, ""
        row.save()

    def _discard(self, row: SyncItem) -> None:
        """A newer version came before the one that was begun could be read."""
        if row.pending_id is not None and row.pending_id != row.current_id:
            self._delete(row.pending_id)

    def _remove(self, row: SyncItem) -> None:
        for file_id in (row.current_id, row.pending_id):
            if file_id is not None:
                self._delete(file_id)
        row.delete()
        del self._known[row.external_id]
        self.outcome.removed += 1

    def _delete(self, file_id: UUID) -> None:
        try:
            services.delete_file(self._actor, file_id)
        except NotFound:
            services.drop_unborn(self._actor, file_id)  # its owner deleted it, or it never came to be
