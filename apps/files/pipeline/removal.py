"""Removing all that was derived from a file, and the proof that nothing is left.

`STORES` names every place of this app that holds something of a file; other apps add theirs (`add_store`). Removal
and verifier walk the same list; a guard test compares it with the models, so that a new table cannot be forgotten,
and `lifecycle.scanner` looks for leftovers without believing any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, models, transaction
from django.utils import timezone

from apps.files.lifecycle import receipts
from apps.files.models import (
    File,
    FileStage,
    FileState,
    Page,
    Passage,
    Posting,
    Summary,
    SummarySection,
    Table,
    UploadPart,
)
from apps.files.pipeline.copying import LONG_STATEMENTS
from apps.files.storage import storage
from apps.files.types import DeletedFile, OtherStore, Retryable


@dataclass(frozen=True, slots=True)
class Store:
    """A place that holds parts of files: how many of one file are there, and how they are removed."""

    name: str
    count: Callable[[File], int]
    remove: Callable[[File], None]
    model: type[models.Model] | None = None


def prefix(file: File) -> str:
    return f"{file.organization_id}/{file.id}"


def _rows(name: str, model: type[models.Model]) -> Store:
    def rows(file: File) -> models.QuerySet[models.Model]:
        return model._default_manager.filter(file_id=file.id)

    def remove(file: File) -> None:
        found = rows(file)
        found._raw_delete(found.db)

    return Store(name, lambda file: rows(file).count(), remove, model)


def _remove_objects(file: File) -> None:
    storage().delete_prefix(prefix(file))


def _copies(file: File) -> models.QuerySet[File]:
    return File.objects.filter(
        organization_id=file.organization_id, owner_id=file.owner_id, sha256=file.sha256, same_as_id=file.id
    )


def _forget_in_copies(file: File) -> None:
    """The oldest copy becomes the one that further uploads of this content copy."""
    _copies(file).update(same_as_id=None)


# Order matters: writers hold a stage or page row while they write, so those go first and the rest cannot grow back.
STORES: tuple[Store, ...] = (
    _rows("stages", FileStage),
    _rows("pages", Page),
    _rows("postings", Posting),
    _rows("passages and vectors", Passage),
    _rows("sections of the summary", SummarySection),
    _rows("summary", Summary),
    _rows("tables", Table),
    _rows("upload parts", UploadPart),
    Store("objects", lambda file: len(storage().list(prefix(file))), _remove_objects),
    Store("references of copies", lambda file: _copies(file).count(), _forget_in_copies),
)
_added: list[Store] = []


def add_store(other: OtherStore) -> None:
    """Another app holds content of files too: have it counted and removed with the rest."""

    def known(file: File) -> DeletedFile:
        return DeletedFile(file.id, file.organization_id, file.owner_id, file.deleted_at or timezone.now())

    _added.append(Store(other.name, lambda file: other.count(known(file)), lambda file: other.remove(known(file))))


def stores() -> tuple[Store, ...]:
    return (*STORES, *_added)


def leftovers(file_id: UUID, among: Sequence[Store] | None = None) -> dict[str, int]:
    """What any store still holds of the file, by store; empty when nothing is left."""
    file = File.objects.get(id=file_id)
    counts = {store.name: store.count(file) for store in among or stores()}
    return {name: count for name, count in counts.items() if count}


def purge(file_id: UUID, among: Sequence[Store] | None = None) -> None:
    """Remove everything of a deleted file, blank its tombstone and sign the receipt. Repeatable.

    Raises Retryable if anything is left.
    """
    file = File.objects.filter(id=file_id, state=FileState.DELETED, purged_at=None).first()
    if file is None:
        return
    chosen = among or stores()
    receipts.note_found(file, leftovers(file_id))
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LONG_STATEMENTS)
        for store in chosen:
            if store.model is not None:
                store.remove(file)
    for store in chosen:
        if store.model is None:
            store.remove(file)
    if left := leftovers(file_id):
        raise Retryable(f"left after purge: {left}")
    now = timezone.now()
    with transaction.atomic():
        receipts.sign(file, now)
        File.objects.filter(id=file_id).update(
            name="", sha256="", same_as_id=None, error_message="", object_key="", unlocked_key="", upload_ref="",
            purged_at=now,
        )  # fmt: skip
