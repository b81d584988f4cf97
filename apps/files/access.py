"""The only road from a request's id to a file's row."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet

from apps.accounts.types import Actor
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.files.models import File, FileState


def visible_files(actor: Actor) -> QuerySet[File]:
    """The files that the actor may see: their own, in the organization they act in, not deleted."""
    return File.objects.filter(organization_id=actor.organization_id, owner_id=actor.user_id).exclude(
        state=FileState.DELETED
    )


def access_file(actor: Actor, file_id: object, *, lock: bool = False) -> File:
    """The file, locked until the transaction ends if asked. Raises NotFound, whyever it may not be seen."""
    known = parse_id(file_id)
    files = visible_files(actor).select_for_update(of=("self",)) if lock else visible_files(actor)
    file = files.filter(id=known).first() if known else None
    if file is None:
        raise NotFound("There is no such file, or you may not see it.")
    return file


def access_files(actor: Actor, file_ids: Iterable[UUID]) -> list[File]:
    """All of the files, in the order given. Raises NotFound if any may not be seen."""
    wanted = list(dict.fromkeys(file_ids))
    found = {file.id: file for file in visible_files(actor).filter(id__in=wanted)}
    if len(found) != len(wanted):
        raise NotFound("One of the files is not there, or you may not see it.")
    return [found[file_id] for file_id in wanted]
