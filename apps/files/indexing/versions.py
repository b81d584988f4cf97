"""Which vectors there are, by what made them, and which of those answer questions.

The settings name what makes vectors now. What made them before is served beside it until every passage has a new one;
`pipeline.reembedding` sees to that.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from apps.files.indexing.vectors import EmbedderAway, vectors_version
from apps.files.models import Passage, VectorVersion

MAX_SERVED = 3
LONG_AGO = timedelta(days=365)
MAX_DIMENSIONS = 4_000
"""What the vector index can hold in half precision."""

# From one version to the next by the index: as many steps as there are versions, however many passages.
_PRESENT = """
    WITH RECURSIVE present AS (
        SELECT min(embedding_version) AS version FROM files_passage WHERE embedding_version > ''
        UNION ALL
        SELECT (SELECT min(embedding_version) FROM files_passage
                WHERE embedding_version > '' AND embedding_version > present.version)
        FROM present WHERE present.version IS NOT NULL
    )
    SELECT version FROM present WHERE version IS NOT NULL
"""
_HOLD = """
    INSERT INTO files_vector_version AS known (version, dimensions, chosen_at) VALUES (%s, %s, statement_timestamp())
    ON CONFLICT (version) DO UPDATE
    SET dimensions = coalesce(known.dimensions, excluded.dimensions), retired_at = NULL
    RETURNING dimensions
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A version whose vectors are searched. `dimensions` is None before its first vector."""

    version: str
    dimensions: int | None


def served() -> tuple[Served, ...]:
    """The present version first, then those that are still being replaced, the newest of them first."""
    current = vectors_version()
    rows = VectorVersion.objects.filter(retired_at=None).order_by("-chosen_at")
    known = dict(rows.values_list("version", "dimensions")[: MAX_SERVED + 1])
    first = Served(current, known.pop(current, None))
    return (first, *(Served(version, dimensions) for version, dimensions in known.items()))[:MAX_SERVED]


def hold(version: str, dimensions: int) -> None:
    """Note that the version has vectors of this many numbers. Raises EmbedderAway when it has others, or too many."""
    if dimensions > MAX_DIMENSIONS:
        raise EmbedderAway(f"{version} gives {dimensions} numbers a text; the index holds {MAX_DIMENSIONS} at most")
    known = VectorVersion.objects.filter(version=version, retired_at=None).values_list("dimensions", flat=True).first()
    if known is None:
        with connection.cursor() as cursor:
            cursor.execute(_HOLD, [version, dimensions])
            (known,) = cursor.fetchone()
    check(version, known, dimensions)


def check(version: str, known: int | None, dimensions: int) -> None:
    """Raises EmbedderAway when vectors of the version have another number of dimensions."""
    if known not in (None, dimensions):
        raise EmbedderAway(
            f"{version} gives {dimensions} numbers a text and has given {known}: a model of another name"
        )


def choose() -> VectorVersion:
    """The row of the version that the settings name, marked as the one chosen last."""
    version = vectors_version()
    latest = VectorVersion.objects.order_by("-chosen_at").first()
    if latest is not None and latest.version == version and latest.retired_at is None:
        return latest
    now = timezone.now()
    row, created = VectorVersion.objects.get_or_create(version=version, defaults={"chosen_at": now})
    if not created:
        row.dimensions = None if row.retired_at else row.dimensions
        row.chosen_at, row.retired_at = now, None
        row.save(force_update=True)
    return row


def settle(current: str) -> list[str]:
    """Retire versions without passages; the versions besides `current` that have some are returned and served."""
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT)
        present = {row[0] for row in cursor.fetchall()}
    others = sorted(present - {current})
    now = timezone.now()
    VectorVersion.objects.filter(retired_at=None).exclude(version__in=[*others, current]).update(retired_at=now)
    VectorVersion.objects.filter(version__in=others).update(retired_at=None)
    missing = set(others) - set(VectorVersion.objects.values_list("version", flat=True))
    VectorVersion.objects.bulk_create(
        [VectorVersion(version=version, chosen_at=now - LONG_AGO) for version in sorted(missing)],
        ignore_conflicts=True,
    )
    return others


def passages_of(version: str) -> int:
    """How many passages have a vector of the version."""
    return Passage.objects.filter(embedding_version=version).count()
