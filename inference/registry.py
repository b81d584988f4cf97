"""The registry of replicas in Valkey: one hash, one JSON record a replica, each with an expiry of its own.

Responsible for: the record format, publishing, and reading it as models and capacity. A record outlives its
heartbeat on purpose, so that a model whose replicas died is known as unavailable rather than unknown. Beside it a hash
of operators' orders, which outlive heartbeats and restarts: a replica that is ready is then draining or quarantined for
everybody; and the rules of routing, which stand in manifests and are obeyed by the web. Leaves to `supervisor` and
`client` when to publish, and to `client` which replica to use.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import orjson
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from inference.protocol import (
    Capacity,
    ModelInfo,
    ModelState,
    Purpose,
    ReplicaInfo,
    ReplicaState,
)
from inference.routing.types import Rule

REPLICAS_KEY = "inference:replicas"
ORDERS_KEY = "inference:orders"
RULES_KEY = "inference:rules"
CHANGES_CHANNEL = "inference:changes"
HEARTBEAT_S = 2.0
EXPIRY_S = 10.0
FORGET_S = 24 * 3600.0
CHAT = frozenset({Purpose.CHAT})
POOLING = frozenset({Purpose.EMBEDDINGS, Purpose.RERANK})


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What does not change about a model while it is served. `cannot`: abilities (`routing.types.ABILITIES`) that it
    lacks."""

    id: str
    name: str
    context_length: int = 0
    demo: bool = False
    note: str = ""
    default: bool = False
    temperature: float | None = None
    top_p: float | None = None
    level: int = 1
    cost_per_mtok: float = 0.0
    purpose: Purpose = Purpose.CHAT
    cannot: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One replica and the model it serves. `owner` is the publisher, which may delete it."""

    replica: ReplicaInfo
    card: ModelCard
    owner: str = ""

    def at(self, now: float) -> Record:
        """The record as of `now`: gone once its heartbeat has stopped."""
        if self.replica.expires_at >= now or self.replica.state is ReplicaState.GONE:
            return self
        return replace(self, replica=replace(self.replica, state=ReplicaState.GONE, eta_s=None))


_REPLICA_FIELDS = frozenset(f.name for f in fields(ReplicaInfo))
_CARD_FIELDS = frozenset(f.name for f in fields(ModelCard))


_ORDERED = {state.value.encode(): state for state in (ReplicaState.DRAINING, ReplicaState.QUARANTINED)}


def encode_record(record: Record) -> bytes:
    raw = asdict(record.replica)
    raw["capabilities"] = sorted(record.replica.capabilities)
    return orjson.dumps({"replica": raw, "card": asdict(record.card), "owner": record.owner})


def decode_record(data: bytes) -> Record | None:
    """None for what this version cannot read; fields it does not know are left out."""
    try:
        raw = orjson.loads(data)
        facts = {k: v for k, v in raw["replica"].items() if k in _REPLICA_FIELDS}
        facts["state"] = ReplicaState(facts["state"])
        facts["capabilities"] = frozenset(facts.get("capabilities", ()))
        card = {k: v for k, v in raw["card"].items() if k in _CARD_FIELDS}
        card["purpose"] = Purpose(card.get("purpose", Purpose.CHAT))
        card["cannot"] = tuple(card.get("cannot", ()))
        return Record(ReplicaInfo(**facts), ModelCard(**card), str(raw.get("owner", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _decode_all(raw: Mapping[Any, Any], orders: Mapping[bytes, bytes], now: float) -> tuple[Record, ...]:
    records = (decode_record(value) for value in raw.values())
    live = [r.at(now) for r in records if r is not None and r.replica.expires_at > now - FORGET_S]
    return tuple(sorted((_obey(r, orders) for r in live), key=lambda r: r.replica.id))


def _obey(record: Record, orders: Mapping[bytes, bytes]) -> Record:
    order = _ORDERED.get(orders.get(record.replica.id.encode(), b""))
    if order is None or record.replica.state is not ReplicaState.READY:
        return record
    return replace(record, replica=replace(record.replica, state=order))


def read_records(redis: Redis) -> tuple[Record, ...]:
    with redis.pipeline(transaction=False) as pipe:
        pipe.hgetall(REPLICAS_KEY)
        pipe.hgetall(ORDERS_KEY)
        raw, orders = pipe.execute()
    return _decode_all(raw, orders, time.time())


async def fetch_records(redis: AsyncRedis) -> tuple[Record, ...]:
    async with redis.pipeline(transaction=False) as pipe:
        pipe.hgetall(REPLICAS_KEY)
        pipe.hgetall(ORDERS_KEY)
        raw, orders = await pipe.execute()
    return _decode_all(raw, orders, time.time())


def order_replica(redis: Redis, id: str, state: ReplicaState | None) -> None:
    """Take a replica out of routing as draining or quarantined, for all processes and until None takes it back."""
    if state is None:
        redis.hdel(ORDERS_KEY, id)
    elif state in _ORDERED.values():
        redis.hset(ORDERS_KEY, id, state.value)
    else:
        raise ValueError(f"no one can order a replica to be {state.value}")


async def publish_records(redis: AsyncRedis, records: Iterable[Record], *, changed: Iterable[str] = ()) -> None:
    """Write the records, and tell subscribers which models changed."""
    async with redis.pipeline(transaction=False) as pipe:
        for record in records:
            pipe.hset(REPLICAS_KEY, record.replica.id, encode_record(record))
        for model in changed:
            pipe.publish(CHANGES_CHANNEL, orjson.dumps({"model": model}))
        await pipe.execute()


async def publish_rules(redis: AsyncRedis, owner: str, rules: Sequence[Rule]) -> None:
    """Say which rules the owner's manifest has, in place of those that it had."""
    if rules:
        told = [asdict(rule) | {"needs": sorted(rule.needs)} for rule in rules]
        await redis.hset(RULES_KEY, owner, orjson.dumps({"at": time.time(), "rules": told}))
    else:
        await redis.hdel(RULES_KEY, owner)


def read_rules(redis: Redis) -> tuple[Rule, ...]:
    """Those of all owners, in the order of their names; what two say alike counts once. Those of an owner that has said
    nothing for a day are forgotten, and what this version cannot read is left out."""
    raw: Any = redis.hgetall(RULES_KEY)
    said = [rule for _, value in sorted(raw.items()) for rule in _decode_rules(value)]
    return tuple(dict.fromkeys(said))


def _decode_rules(data: bytes) -> list[Rule]:
    try:
        raw = orjson.loads(data)
        if raw["at"] < time.time() - FORGET_S:
            return []
        return [Rule(**{**rule, "needs": frozenset(rule["needs"])}) for rule in raw["rules"]]
    except (ValueError, KeyError, TypeError):
        return []


async def forget_records(redis: AsyncRedis, ids: Iterable[str]) -> None:
    if wanted := list(ids):
        await redis.hdel(REPLICAS_KEY, *wanted)


def stamp(replica: ReplicaInfo, *, lasting_s: float = EXPIRY_S) -> ReplicaInfo:
    now = time.time()
    return replace(replica, updated_at=now, expires_at=now + lasting_s)


# ---------------------------------------------------------------- models, as people see them


def summarize(records: Iterable[Record], purposes: Collection[Purpose] = CHAT) -> tuple[ModelInfo, ...]:
    """One entry a model: ready when any replica is, loading when one will be. The default model comes first."""
    by_model: dict[str, list[Record]] = {}
    for record in records:
        if record.card.purpose in purposes:
            by_model.setdefault(record.card.id, []).append(record)
    models = [_model_info(group) for group in by_model.values()]
    return tuple(sorted(models, key=lambda m: (not m.default, m.id)))


def _model_info(group: list[Record]) -> ModelInfo:
    newest = max(group, key=lambda r: r.replica.updated_at)
    card, states = newest.card, [r.replica.state for r in group]
    loading = [r.replica for r in group if r.replica.state in (ReplicaState.STARTING, ReplicaState.WARMING)]
    ready = states.count(ReplicaState.READY)
    state = ModelState.READY if ready else ModelState.LOADING if loading else ModelState.UNAVAILABLE
    first = min(loading, key=lambda r: float("inf") if r.eta_s is None else r.eta_s) if loading and not ready else None
    return ModelInfo(
        id=card.id,
        name=card.name,
        state=state,
        context_length=max((r.replica.context_length for r in group), default=0) or card.context_length,
        eta_s=_eta_now(first),
        phase=first.phase if first else "",
        demo=card.demo,
        note=card.note,
        default=card.default,
        replicas_ready=ready,
        replicas_total=len(group),
        temperature=card.temperature,
        top_p=card.top_p,
    )


def _eta_now(replica: ReplicaInfo | None) -> int | None:
    if replica is None or replica.eta_s is None:
        return None
    return max(1, round(replica.eta_s - (time.time() - replica.updated_at)))


def read_models(redis: Redis) -> tuple[ModelInfo, ...]:
    return summarize(read_records(redis))


def mixed_weights(records: Iterable[Record]) -> dict[str, dict[str, str]]:
    """The models whose replicas are known to have different weights, each with the digests of its replicas by their
    ids. Replicas that are gone do not count, nor those of which nobody knows."""
    known: dict[str, dict[str, str]] = {}
    for replica in (record.replica for record in records if record.replica.state is not ReplicaState.GONE):
        if replica.weights_digest:
            known.setdefault(replica.model, {})[replica.id] = replica.weights_digest
    return {model: digests for model, digests in known.items() if len(set(digests.values())) > 1}


def capacity_of(records: Iterable[Record], model: str) -> Capacity:
    ready = [r.replica for r in records if r.card.id == model and r.replica.state is ReplicaState.READY]
    return Capacity(
        slots=sum(r.slots for r in ready),
        running=sum(r.running for r in ready),
        waiting=sum(r.waiting for r in ready),
    )
