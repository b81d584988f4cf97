"""The registry of replicas as this process read it last: models for people, candidates for routing, capacity.

What must stay in a region sees the registry as if there were no replicas elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import redis
import structlog

from apps.core.valkey import valkey
from inference.client import read_records
from inference.protocol import Capacity, ModelInfo, ReplicaState
from inference.quality import read_quality
from inference.registry import Record, capacity_of, read_rules, summarize
from inference.routing.candidates import candidates_of
from inference.routing.types import Candidate, Rule

log = structlog.get_logger(__name__)
_FRESH_S, _JUDGED_S = 0.5, 10.0


@dataclass(frozen=True, slots=True)
class _View:
    """The registry as it is from one region; empty for any."""

    models: tuple[ModelInfo, ...]
    candidates: tuple[Candidate, ...]
    capacity: dict[str, Capacity]
    lines: dict[str, str]


@dataclass(slots=True)
class _Read:
    """Half a second old at most, `quality` ten seconds; the last known state while Valkey is away. `views`: by region,
    made when needed."""

    records: tuple[Record, ...] = ()
    rules: tuple[Rule, ...] = ()
    quality: Mapping[str, float] = field(default_factory=dict)
    views: dict[str, _View] = field(default_factory=dict)
    at: float = 0.0
    judged_at: float = 0.0


_read = _Read()


def known_models(region: str = "") -> tuple[ModelInfo, ...]:
    """Every model of the registry with a replica in the region, the default one first."""
    return _fresh(region).models


def known_candidates(region: str = "") -> tuple[Candidate, ...]:
    """Every model of the registry, as ready as its replicas in the region are."""
    return _fresh(region).candidates


def known_capacity(model: str, region: str = "") -> Capacity:
    """Sums over its ready replicas in the region; nothing for a model that is not known."""
    return _fresh(region).capacity.get(model, Capacity(0, 0, 0))


def known_line(model: str, region: str = "") -> str:
    """The admission's line of the model: of the region, or of where there is most room."""
    return _fresh(region).lines.get(model, model)


def known_rules() -> tuple[Rule, ...]:
    """The rules of routing that the manifests say."""
    _fresh()
    return _read.rules


def forget_models() -> None:
    """Read the registry anew at the next question, e.g. between tests."""
    _read.at = _read.judged_at = 0.0


def _fresh(region: str = "") -> _View:
    now = time.monotonic()
    if now - _read.at > _FRESH_S:
        try:
            _read.records, _read.rules = read_records(valkey()), read_rules(valkey())
            if now - _read.judged_at > _JUDGED_S:
                _read.quality, _read.judged_at = read_quality(valkey()), now
        except redis.RedisError as error:
            log.warning("models.unread", error=type(error).__name__)
        else:
            _read.views = {}
        _read.at = now
    view = _read.views.get(region)
    if view is None:
        view = _read.views[region] = _view(_read.records, region, _read.quality)
    return view


def _view(records: Sequence[Record], region: str, quality: Mapping[str, float]) -> _View:
    here = [record for record in records if region in ("", record.replica.region)]
    models = summarize(here)
    capacity = {model.id: capacity_of(here, model.id) for model in models}
    return _View(models, candidates_of(records, region, quality), capacity, _lines(here))


def _lines(records: Sequence[Record]) -> dict[str, str]:
    work: dict[str, dict[str, list[int]]] = {}
    for replica in (record.replica for record in records if record.replica.state is ReplicaState.READY):
        sums = work.setdefault(replica.model, {}).setdefault(replica.line, [0, 0])
        sums[0] += replica.running + replica.waiting
        sums[1] += replica.slots
    return {
        model: min(lines, key=lambda line: lines[line][0] / max(1, lines[line][1])) for model, lines in work.items()
    }
