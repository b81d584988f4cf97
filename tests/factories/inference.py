"""Replicas in the registry, as a supervisor would publish them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import count

from apps.core.valkey import valkey
from inference.client import Ask, Lane, Tier
from inference.protocol import ReplicaInfo, ReplicaState
from inference.registry import REPLICAS_KEY, ModelCard, Record, encode_record, stamp


def publish_replica(
    model: str = "fake",
    *,
    slots: int = 100,
    state: ReplicaState = ReplicaState.READY,
    level: int = 1,
    region: str = "",
    cannot: tuple[str, ...] = (),
    context_length: int = 4096,
    number: int = 1,
    weights: str = "",
) -> None:
    """A replica that is known but that nobody can reach, one a model, number and region."""
    info = replica(model, slots=slots, state=state, region=region)
    info = replace(info, id=f"{model}-{number}{region}", weights_digest=weights)
    card = ModelCard(model, model.title(), context_length=context_length, level=level, cannot=cannot)
    record = Record(stamp(info, lasting_s=120), card)
    valkey().hset(REPLICAS_KEY, info.id, encode_record(record))


def replica(
    model: str = "m", *, slots: int = 100, state: ReplicaState = ReplicaState.READY, region: str = ""
) -> ReplicaInfo:
    return ReplicaInfo(f"{model}-1{region}", model, "http://127.0.0.1:9", "fake", state, slots=slots, region=region)


_tickets = count(1)


def ask(
    model: str = "m",
    *,
    prefer: str = "",
    avoid: Collection[str] = (),
    lane: Lane = Lane.INTERACTIVE,
    region: str = "",
) -> Ask:
    """A small request of somebody."""
    ticket = f"t-{next(_tickets)}"
    return Ask(ticket, model, lane, Tier.FREE, "user", "organization", 10, 10, prefer, tuple(avoid), region=region)
