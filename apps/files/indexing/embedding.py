"""Vectors for the passages of a file, a few at a time, so that any number of workers may be killed meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from apps.files.indexing.embedder import Vector
from apps.files.indexing.passages import with_context
from apps.files.indexing.vectors import embed_passages, vectors_version
from apps.files.indexing.versions import hold
from apps.files.models import Passage

BATCH = 16

_STORE = """
UPDATE files_passage AS passage SET embedding = made.vector::vector, embedding_version = %(version)s
FROM unnest(%(ids)s::uuid[], %(vectors)s::text[]) AS made(id, vector)
WHERE passage.id = made.id AND passage.file_id = %(file)s
"""


def as_literal(vector: Vector) -> str:
    """The vector as pgvector reads it."""
    return "[" + ",".join(f"{value:.6g}" for value in vector.tolist()) + "]"


def unembedded(file_id: UUID) -> QuerySet[Passage]:
    """The passages of the file that lack a vector of the present version."""
    passages = Passage.objects.filter(file_id=file_id, file__deleted_at=None)
    return passages.filter(Q(embedding=None) | ~Q(embedding_version=vectors_version()))


def searched_text(passage: Passage) -> str:
    """What a passage's vector is made of."""
    return with_context(passage.heading, passage.text)


def _store(file_id: UUID, version: str, ids: Sequence[UUID], vectors: Sequence[Vector]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            _STORE,
            {
                "version": version,
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
    columns = ("id", "owner_id", "organization_id", "heading", "text")
    batch = list(unembedded(file_id).order_by("page_number", "ordinal").only(*columns)[:BATCH])
    if not batch:
        return 0
    texts = [searched_text(passage) for passage in batch]
    version = vectors_version()
    vectors = embed_passages(texts, user_id=batch[0].owner_id, organization_id=batch[0].organization_id)
    hold(version, len(vectors[0]))
    # None is stored when the page was indexed anew or removed meanwhile; whoever did that has it embedded.
    return _store(file_id, version, [passage.id for passage in batch], vectors)


def embed_file(file_id: UUID) -> int:
    """Give all passages of the file vectors; returns how many it gave. Raises EmbedderUnavailable."""
    done = 0
    while given := embed_some(file_id):
        done += given
    return done
