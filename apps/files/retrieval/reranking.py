"""The best passages judged once more by a rerank model, where one is named; in the order they had, where it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog
from django.conf import settings

from apps.accounts.types import Actor
from apps.files.indexing import pooled
from apps.files.indexing.passages import with_context
from apps.files.types import PassageHit
from inference.protocol import InferenceError

log = structlog.get_logger(__name__)
TOP = 50
"""Passages that are judged: what the two searches rank below is hardly ever what was meant."""
DUPLICATES = 3
"""Times as many as wanted are read, since copies of a passage are given once."""


def depth_for(limit: int) -> int:
    """How many ranked passages to read for a result of `limit`."""
    return max(DUPLICATES * limit, TOP if settings.RERANK_MODEL else 0)


def rerank(actor: Actor, question: str, hits: Sequence[PassageHit]) -> tuple[Sequence[PassageHit], bool]:
    """The hits with the first `TOP` of them in the model's order and with its scores, and whether that was done."""
    if not settings.RERANK_MODEL or not hits:
        return hits, False
    best, others = hits[:TOP], hits[TOP:]
    texts = [with_context(hit.heading, hit.text) for hit in best]
    errand = pooled.for_question(actor.user_id, actor.organization_id)
    try:
        scores = pooled.rerank(question, texts, errand)
    except InferenceError as error:
        log.warning("search.not_reranked", model=settings.RERANK_MODEL, error=str(error))
        return hits, False
    judged = [replace(hit, score=round(score, 6)) for hit, score in zip(best, scores, strict=True)]
    return [*sorted(judged, key=lambda hit: -hit.score), *others], True
