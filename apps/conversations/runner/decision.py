"""Why a run has this model and this replica, in words for its reader. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apps.conversations.types import ClaimedRun, RunResult, RunState
from inference.client import AUTO, Lease
from inference.protocol import ReplicaInfo, ReplicaState
from inference.routing import router
from inference.routing.types import Candidate, Decision, Step
from inference.routing.types import Reason as Weighed

Reason = dict[str, Any]
_OF_REPLICA = ("placement", "affinity", "failover")
_OF_MODEL = ("replica_failed", "invalid_output")


def decision_view(
    made: Mapping[str, Any] | None,
    lease: Lease,
    replicas: Sequence[ReplicaInfo],
    *,
    preferred: str,
    failed: Sequence[str],
) -> dict[str, Any]:
    """`reasons` in the order in which they were weighed: {"step", "text", "facts"} each.

    `made`: the choice of the model, as the run keeps it. `preferred`: the replica that had this answer or its
    conversation before; `failed`: those that broke off in this attempt.
    """
    choice = dict(made or {"reasons": []})
    region = choice.get("region", "")
    ready = [
        r
        for r in replicas
        if r.model == lease.replica.model and r.state is ReplicaState.READY and region in ("", r.region)
    ]
    # A run that is taken over has the replica's reasons of the attempt before.
    of_model = [reason for reason in choice["reasons"] if reason["step"] not in _OF_REPLICA]
    return choice | {
        "model": lease.model.id,
        "replica": lease.replica.id,
        "reasons": [*of_model, *_failures(failed), _replica(lease, ready, preferred)],
    }


def escalated(made: Mapping[str, Any], candidates: Sequence[Candidate], *, why: str) -> dict[str, Any] | None:
    """`made` with the next stronger model in it, and the reason as its last one. None where none is left to go to, or
    a person chose the model."""
    level = next((c.level for c in candidates if c.id == made["model"]), None)
    if level is None:
        return None
    of_model = [reason for reason in made["reasons"] if reason["step"] not in _OF_REPLICA]
    reasons = tuple(Weighed(Step(r["step"]), r["text"], r["facts"]) for r in of_model)
    decision = Decision(made["model"], level, reasons, tuple(made["alternatives"]), made["score"])
    found = router.escalate(decision, candidates, why=why)
    if found is None:
        return None
    last = found.reasons[-1]
    return {
        **made,
        "model": found.model,
        "alternatives": list(found.alternatives),
        "reasons": [*of_model, _reason(last.step.value, last.text, **last.facts)],
    }


def escalations(made: Mapping[str, Any] | None) -> list[Reason]:
    """The reasons for which stronger models were asked, in order; `facts` with the tokens that the one before took."""
    return [reason for reason in (made or {}).get("reasons", ()) if reason["step"] == Step.ESCALATION]


def was_good(run: ClaimedRun, result: RunResult) -> bool | None:
    """Whether the model managed a question that `auto` gave it. None where the end says nothing of the model: where a
    person chose it or stopped it, or it was never asked."""
    if run.requested != AUTO or (result.error and result.error["code"] not in _OF_MODEL):
        return None
    return None if result.state is RunState.CANCELLED else result.error is None


def _reason(step: str, text: str, **facts: Any) -> Reason:
    return {"step": step, "text": text, "facts": facts}


def _failures(failed: Sequence[str]) -> list[Reason]:
    return [_reason("failover", f"{replica} broke off before.", replica=replica) for replica in failed]


def _replica(lease: Lease, ready: Sequence[ReplicaInfo], preferred: str) -> Reason:
    chosen, count = lease.replica, len(ready)
    facts = {"replica": chosen.id, "ready": count, "slots": chosen.slots, "running": chosen.running}
    if count <= 1:
        return _reason("placement", f"{chosen.id} is the only replica that is ready.", **facts)
    if chosen.id == preferred:
        return _reason("affinity", f"{chosen.id} has the beginning of this conversation in its cache.", **facts)
    return _reason(
        "placement", f"{chosen.id} was chosen of {count} replicas by their load and by what they had read.", **facts
    )
