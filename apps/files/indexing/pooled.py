"""What the installation's pooling replicas do for files, counted: vectors of passages and questions, and scores.

Responsible for: in which lane and how long it may take, by whether somebody waits. Leaves to callers what follows when
it fails, which is an `InferenceError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from prometheus_client import Counter

from inference.admission import Lane
from inference.pooling import Errand, PoolingThread, Vector
from inference.protocol import InferenceError

REQUESTS = Counter("parley_pooling_requests", "Vectors and scores asked of replicas.", ("model", "lane", "outcome"))
T = TypeVar("T")


@lru_cache(maxsize=1)
def replicas() -> PoolingThread:
    """This process's way to the pooling models."""
    return PoolingThread(settings.REDIS_URL, settings.ADMISSION_POLICY)


def for_indexing(user_id: UUID, organization_id: UUID) -> Errand:
    """Nobody waits: the batch lane, with time for a long line."""
    return Errand(Lane.BATCH, _user(user_id), str(organization_id), try_s=60, whole_s=180)


def for_question(user_id: UUID, organization_id: UUID) -> Errand:
    """Somebody waits for the answer behind this."""
    return Errand(Lane.INTERACTIVE, _user(user_id), str(organization_id), try_s=2, whole_s=3)


def _user(id: UUID) -> str:
    """A budget of its own: who uploads a book may go on asking meanwhile."""
    return f"files:{id}"


def embed(model: str, texts: Sequence[str], errand: Errand) -> list[Vector]:
    """Vectors of length 1 by an embedding model. InferenceError."""
    return _counted(model, errand, lambda: replicas().embed(model, texts, errand))


def rerank(question: str, passages: Sequence[str], errand: Errand) -> list[float]:
    """How well each passage answers the question, by the named rerank model. InferenceError."""
    model = settings.RERANK_MODEL
    return _counted(model, errand, lambda: replicas().rerank(model, question, passages, errand))


def _counted(model: str, errand: Errand, call: Callable[[], T]) -> T:
    outcome = "failed"
    try:
        result = call()
        outcome = "ok"
    except InferenceError as error:
        outcome = type(error).__name__
        raise
    finally:
        REQUESTS.labels(model, errand.lane.value, outcome).inc()
    return result
