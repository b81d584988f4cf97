"""The chat models of the registry as candidates for an answer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inference.protocol import Purpose, ReplicaState
from inference.registry import Record
from inference.routing.types import ABILITIES, NO_FACTS, Candidate


def candidates_of(
    records: Iterable[Record], region: str = "", quality: Mapping[str, float] = NO_FACTS
) -> tuple[Candidate, ...]:
    """One a model; the work of its ready replicas over their slots is its pressure. With a `region` only the replicas
    there can make it ready, and count. `quality`: of the models that were measured."""
    by_model: dict[str, list[Record]] = {}
    for record in records:
        if record.card.purpose is Purpose.CHAT:
            by_model.setdefault(record.card.id, []).append(record)
    return tuple(_candidate(group, region, quality.get(id)) for id, group in by_model.items())


def _candidate(group: list[Record], region: str, quality: float | None) -> Candidate:
    card = max(group, key=lambda record: record.replica.updated_at).card
    ready = [r.replica for r in group if r.replica.state is ReplicaState.READY and region in ("", r.replica.region)]
    lengths = [replica.context_length for replica in ready if replica.context_length]
    return Candidate(
        id=card.id,
        level=card.level,
        context_length=min(lengths, default=card.context_length),
        capabilities=ABILITIES.difference(card.cannot),
        regions=frozenset(record.replica.region for record in group if record.replica.region),
        ready=bool(ready),
        pressure=sum(r.running + r.waiting for r in ready) / max(1, sum(r.slots for r in ready)),
        cost_per_mtok=card.cost_per_mtok,
        quality=quality,
    )
