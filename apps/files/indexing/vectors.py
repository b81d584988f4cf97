"""Whose vectors this installation has: of the embedder in the process, or of the pooling model that is named.

`settings.EMBEDDING_MODEL` alone decides, never which replicas happen to be there: vectors of two models cannot be
compared, so each is stored with the version that made it. A question can be asked of an earlier version too, as long as
what made it is still there (`versions.served`).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import structlog
from django.conf import settings

from apps.files.indexing import embedder, pooled
from apps.files.indexing.embedder import EmbedderUnavailable, Vector
from inference.pooling import Errand
from inference.protocol import InferenceError

log = structlog.get_logger(__name__)
MAX_QUESTION_CHARS = 4_000
_POOLED = "pooled:"


class EmbedderAway(EmbedderUnavailable):
    """No replica makes vectors that can be used now. It may be otherwise later, so nothing is given up."""


def vectors_version() -> str:
    """Names what makes vectors now, and everything that changes them; stored with each of them."""
    return f"{_POOLED}{settings.EMBEDDING_MODEL}" if settings.EMBEDDING_MODEL else embedder.VERSION


def embed_question(text: str, *, user_id: UUID, organization_id: UUID, version: str = "") -> Vector:
    """The vector of a question, of length 1, by the present or a named version. Raises EmbedderUnavailable."""
    version = version or vectors_version()
    if version == embedder.VERSION:
        return embedder.embed_question(text)
    if not version.startswith(_POOLED):
        raise EmbedderUnavailable(f"nothing here makes vectors of {version} any more")
    errand = pooled.for_question(user_id, organization_id)
    (vector,) = _from_replicas(version.removeprefix(_POOLED), [text[:MAX_QUESTION_CHARS]], errand)
    return vector


def embed_passages(texts: Sequence[str], *, user_id: UUID, organization_id: UUID) -> list[Vector]:
    """Vectors of a person's passages, in order. Raises EmbedderUnavailable."""
    if not settings.EMBEDDING_MODEL:
        return embedder.embed_passages(texts)
    return _from_replicas(settings.EMBEDDING_MODEL, texts, pooled.for_indexing(user_id, organization_id))


def _from_replicas(model: str, texts: Sequence[str], errand: Errand) -> list[Vector]:
    try:
        vectors = pooled.embed(model, texts, errand)
    except InferenceError as error:
        log.warning("vectors.away", model=model, error=str(error))
        raise EmbedderAway(str(error)) from error
    return [np.asarray(vector, dtype=np.float32) for vector in vectors]
