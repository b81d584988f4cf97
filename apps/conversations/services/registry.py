"""The registry of replicas as this process read it last: models for people, candidates for routing, capacity."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import redis
import structlog

from apps.core.valkey import valkey
from inference.client import read_records
from inference.protocol import Capacity, ModelInfo
from inference.registry import capacity_of, summarize
from inference.routing.candidates import candidates_of
from inference.routing.types import Candidate

log = structlog.get_logger(__name__)
_FRESH_S = 0.5


@dataclass(slots=True)
class _Read:
    """Half a second old at most; the last known state while Valkey is away."""

    models: tuple[ModelInfo, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    capacity: dict[str, Capacity] = field(default_factory=dict)
    at: float = 0.0


_read = _Read()


def known_models() -> tuple[ModelInfo, ...]:
    """Every model of the registry, the default one first."""
    return _fresh().models


def known_candidates() -> tuple[Candidate, ...]:
    return _fresh().candidates


def known_capacity(model: str) -> Capacity:
    """Sums over its ready replicas; nothing for a model that is not known."""
    return _fresh().capacity.get(model, Capacity(0, 0, 0))


def forget_models() -> None:
    """Read the registry anew at the next question, e.g. between tests."""
    _read.at = 0.0


def _fresh() -> _Read:
    now = time.monotonic()
    if now - _read.at > _FRESH_S:
        try:
            records = read_records(valkey())
        except redis.RedisError as error:
            log.warning("models.unread", error=type(error).__name__)
        else:
            _read.models, _read.candidates = summarize(records), candidates_of(records)
            _read.capacity = {model.id: capacity_of(records, model.id) for model in _read.models}
        _read.at = now
    return _read
