"""Vectors for the passages of a file, a few at a time, so that any number of workers may be killed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection
from django.db.models import Q

from apps.files.indexing.embedder import VERSION, Vector, embed_passages
from apps.files.indexing.passages import with_context
from apps.files.models import Passage

EMBEDDING_VERSION = VERSION
BATCH = 16

_STORE = """
UPDATE files_passage AS passage SET embedding = made.vector::vector, embedding_version = %(version)s
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS made(id, vector)
WHERE passage.id = made.id AND passage.file_id = %(file)s
"""


def as_literal(vector: Vector) -> str:
    """The vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


def _waiting(file_id: UUID) -> list[tuple[UUID, str, str]]:
    passages = Passage.objects.filter(file_id=file_id, file__deleted_at=None)
    stale = passages.filter(Q(embedding=None) | ~Q(embedding_version=VERSION))
    return list(stale.order_by("page_number", "ordinal").values_list("id", "heading", "text")[:BATCH])


def _store(file_id: UUID, ids: Sequence[UUID], vectors: Sequence[Vector]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE,
            {
                "version": VERSION,
                "ids": list(ids),
                "vectors": [as_literal(vector) for vector in vectors],
                "file": file_id,
            },
        )
        return int(cursor.rowcount)


def embed_some(file_id: UUID) -> int:
    """Give the next few passages of the file that lack one a vector of the present version; 0 when none is left.

    What was done stays done. Raises EmbedderUnavailable.
    """
    batch = _waiting(file_id)
    if not batch:
        return 0
    vectors = embed_passages([with_context(heading, text) for _, heading, text in batch])
    # None is stored when the page was indexed anew or removed meanwhile; whoever did that has it embedded.
    return _store(file_id, [passage_id for passage_id, _, _ in batch], vectors)


def embed_file(file_id: UUID) -> int:
    """Give all passages of the file vectors; returns how many it gave. Raises EmbedderUnavailable."""
    done = 0
    while given := embed_some(file_id):
        done += given
    return done
