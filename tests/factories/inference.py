"""Replicas in the registry, as a supervisor would publish them."""

from __future__ import annotations

from apps.core.valkey import valkey
from inference.protocol import ReplicaInfo, ReplicaState
from inference.registry import REPLICAS_KEY, ModelCard, Record, encode_record, stamp


def publish_replica(model: str = "fake", *, slots: int = 100, state: ReplicaState = ReplicaState.READY) -> None:
    """A replica that is known but that nobody can reach."""
    info = ReplicaInfo(f"{model}-1", model, "http://127.0.0.1:9", "fake", state, slots=slots)
    record = Record(stamp(info, lasting_s=120), ModelCard(model, model.title(), context_length=4096))
    valkey().hset(REPLICAS_KEY, info.id, encode_record(record))
