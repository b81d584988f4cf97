"""Giving all passages new vectors when something else makes them than before, while the old ones go on answering.

Each look does little: it arms the embedding of a few files, fewer while new uploads wait for theirs, so nothing is lost
when it is killed and nothing waits behind it. What was made before is retired once nothing of it is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.db import connection

from apps.files.indexing import nearest, versions
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.indexing.vectors import embed_passages
from apps.files.models import FileStage, Passage, StageName, StageState, VectorVersion

WINDOW = 100
"""Files whose vectors are waited for at once, new uploads among them."""
_OPEN = (StageState.PENDING, StageState.RUNNING)
# In the order of the index, so that the first few are found without reading the others. A file whose embedding has
# failed since the change is left alone: its old vectors go on answering.
_DUE = """
    SELECT DISTINCT passage.file_id FROM files_passage AS passage
    JOIN files_file AS file ON file.id = passage.file_id AND file.state IN ('ready', 'partial')
    WHERE {which} AND NOT EXISTS (
        SELECT FROM files_stage AS stage WHERE stage.file_id = passage.file_id AND stage.name = 'embed' AND (
            stage.state IN ('pending', 'running') OR (stage.state = 'failed' AND stage.finished_at >= %(since)s)
        )
    )
    ORDER BY passage.file_id LIMIT %(limit)s
"""
_WITH_OLD = _DUE.format(which="passage.embedding_version = %(version)s")
_WITHOUT = _DUE.format(which="passage.embedding IS NULL")
# Without a hint: the sweep sends those a few at a time.
_ARM = """
    INSERT INTO files_stage (file_id, organization_id, name, state, attempt, failures, due_at, error_code,
                             error_message)
    SELECT id, organization_id, 'embed', 'pending', 0, 0, now(), '', '' FROM files_file WHERE id = ANY(%(files)s)
    ON CONFLICT (file_id, name) DO UPDATE
    SET state = 'pending', failures = 0, due_at = now(), hinted_at = NULL, error_code = '', error_message = ''
    WHERE files_stage.state IN ('done', 'failed')
"""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Renewal:
    """A version that is being replaced: how many passages still have vectors of it."""

    version: str
    left: int


def step() -> int:
    """Arm the next few files; returns how many. Raises nothing of its own."""
    current = versions.choose()
    old = versions.settle(current.version)
    if old and not _prepared(current):
        return 0  # what is to make them is away: the old ones answer
    room = WINDOW - FileStage.objects.filter(name=StageName.EMBED, state__in=_OPEN).count()
    armed = 0
    for due in _due(old, current.chosen_at, room):
        armed += _arm(due)
    return armed


def renewals() -> list[Renewal]:
    """What is still being replaced, and how far that is."""
    return [Renewal(one.version, versions.passages_of(one.version)) for one in versions.served()[1:]]


def _prepared(current: VectorVersion) -> bool:
    """Whether the new vectors' dimension is known and their index is there."""
    dimensions = current.dimensions
    try:
        if dimensions is None:
            dimensions = _dimensions(current.version)
        return dimensions is not None and nearest.ensure_index(dimensions)
    except EmbedderUnavailable as error:
        log.warning("files.reembedding_waits", version=current.version, error=str(error))
        return False


def _dimensions(version: str) -> int | None:
    """By asking for a vector in the name of somebody who has old ones; None when those went just now."""
    any_passage = Passage.objects.only("owner_id", "organization_id").first()
    if any_passage is None:
        return None
    owner = {"user_id": any_passage.owner_id, "organization_id": any_passage.organization_id}
    (vector,) = embed_passages(["dimensions"], **owner)
    versions.hold(version, len(vector))
    return len(vector)


def _due(old: list[str], since: datetime, room: int) -> Iterator[list[UUID]]:
    """Files with vectors of old versions, then those that failed to get any before the change."""
    for statement, version in [*((_WITH_OLD, version) for version in old), (_WITHOUT, "")]:
        if room <= 0:
            return
        with connection.cursor() as cursor:
            cursor.execute(statement, {"version": version, "since": since, "limit": room})
            found = [row[0] for row in cursor.fetchall()]
        room -= len(found)
        yield found


def _arm(files: list[UUID]) -> int:
    if not files:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_ARM, {"files": files})
        return int(cursor.rowcount)
