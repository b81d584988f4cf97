"""Why a run has this model and this replica, in words for its reader. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inference.client import AUTO, Lease
from inference.protocol import ReplicaInfo, ReplicaState

Reason = dict[str, Any]


def decision_view(
    requested: str, lease: Lease, replicas: Sequence[ReplicaInfo], *, preferred: str, failed: Sequence[str]
) -> dict[str, Any]:
    """`reasons` in the order in which they were weighed: {"step", "text", "facts"} each.

    `preferred`: the replica that had this answer before; `failed`: those that broke off in this attempt.
    """
    ready = [r for r in replicas if r.model == lease.replica.model and r.state is ReplicaState.READY]
    return {
        "model": lease.model.id,
        "replica": lease.replica.id,
        "reasons": [_model(requested, lease), *_failures(failed), _replica(lease, ready, preferred)],
    }


def _reason(step: str, text: str, **facts: Any) -> Reason:
    return {"step": step, "text": text, "facts": facts}


def _model(requested: str, lease: Lease) -> Reason:
    if requested != AUTO:
        return _reason("user", f"You chose {lease.model.name}.", requested=requested)
    return _reason("rule", f"{lease.model.name} is what `auto` stands for at this time.", requested=requested)


def _failures(failed: Sequence[str]) -> list[Reason]:
    return [_reason("failover", f"{replica} broke off before.", replica=replica) for replica in failed]


def _replica(lease: Lease, ready: Sequence[ReplicaInfo], preferred: str) -> Reason:
    chosen, count = lease.replica, len(ready)
    facts = {"replica": chosen.id, "ready": count, "slots": chosen.slots, "running": chosen.running}
    if count <= 1:
        return _reason("load", f"{chosen.id} is the only replica that is ready.", **facts)
    if chosen.id == preferred:
        return _reason("affinity", f"{chosen.id} has the beginning of this conversation in its cache.", **facts)
    return _reason("load", f"{chosen.id} was the least busy of {count} replicas.", **facts)
