"""What readers of a run are told besides its text, as events. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.client import Lease, WaitState

Event = dict[str, Any]


def waiting_event(attempt: int, wait: WaitState) -> Event:
    estimate = None if wait.estimated_wait_s is None else round(wait.estimated_wait_s, 1)
    return {
        "type": "state",
        "state": "queued",
        "attempt": attempt,
        "position": wait.position,
        "estimated_wait_s": estimate,
    }


def running_event(attempt: int, lease: Lease, looking_in: Sequence[str]) -> Event:
    """`looking_in`: names of files whose tables are consulted before the answer."""
    return {
        "type": "state",
        "state": "running",
        "attempt": attempt,
        "position": None,
        "estimated_wait_s": None,
        "model": lease.model.id,
        "replica": lease.replica.id,
        **({"looking_in": list(looking_in)} if looking_in else {}),
    }


def failover(at: int, attempt: int, replica: str, *, other_weights: bool) -> Event:
    """Where an answer was taken up again: `at` code points. `other_weights` stands there only where it is so."""
    told = {"at": at, "attempt": attempt, "replica": replica}
    return {**told, "other_weights": True} if other_weights else told


def escalation(reason: Mapping[str, Any]) -> Event:
    facts = reason["facts"]
    return {"from_model": facts["from"], "to_model": facts["to"], "why": facts["why"]}
