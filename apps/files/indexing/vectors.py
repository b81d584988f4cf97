"""Whose vectors this installation has: of the embedder in the process, or of the pooling model that is named.

`settings.EMBEDDING_MODEL` alone decides, never which replicas happen to be there: vectors of two models cannot be
compared, so each is stored with the version that made it, and only those of the present version are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import structlog
from django.conf import settings

from apps.files.indexing import embedder, pooled
from apps.files.indexing.embedder import EmbedderUnavailable, Vector
from apps.files.models import EMBEDDING_DIMENSIONS
from inference.pooling import Errand
from inference.protocol import InferenceError

log = structlog.get_logger(__name__)
MAX_QUESTION_CHARS = 4_000


class EmbedderAway(EmbedderUnavailable):
    """No replica makes vectors that can be used now. It may be otherwise later, so nothing is given up."""


def vectors_version() -> str:
    """Names what makes vectors now, and everything that changes them; stored with each of them."""
    return f"pooled:{settings.EMBEDDING_MODEL}" if settings.EMBEDDING_MODEL else embedder.VERSION


def embed_question(text: str, *, user_id: UUID, organization_id: UUID) -> Vector:
    """The vector of a question, of length 1. Raises EmbedderUnavailable."""
    if not settings.EMBEDDING_MODEL:
        return embedder.embed_question(text)
    (vector,) = _from_replicas([text[:MAX_QUESTION_CHARS]], pooled.for_question(user_id, organization_id))
    return vector


def embed_passages(texts: Sequence[str], *, user_id: UUID, organization_id: UUID) -> list[Vector]:
    """Vectors of a person's passages, in order. Raises EmbedderUnavailable."""
    if not settings.EMBEDDING_MODEL:
        return embedder.embed_passages(texts)
    return _from_replicas(texts, pooled.for_indexing(user_id, organization_id))


def _from_replicas(texts: Sequence[str], errand: Errand) -> list[Vector]:
    model = settings.EMBEDDING_MODEL
    try:
        vectors = pooled.embed(texts, errand)
    except InferenceError as error:
        log.warning("vectors.away", model=model, error=str(error))
        raise EmbedderAway(str(error)) from error
    if vectors and len(vectors[0]) != EMBEDDING_DIMENSIONS:
        message = f"{model} gives {len(vectors[0])} numbers a text and the index holds {EMBEDDING_DIMENSIONS}"
        log.error("vectors.refused", model=model, error=message)
        raise EmbedderAway(message)
    return [np.asarray(vector, dtype=np.float32) for vector in vectors]
