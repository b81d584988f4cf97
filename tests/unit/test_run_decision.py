"""Why a run has its model and replica, told from what the pool knew."""

from __future__ import annotations

from typing import Any

from apps.conversations.runner.decision import decision_view
from inference.client import Lease
from inference.engines.fake import FakeEngine
from inference.protocol import ModelInfo, ModelState, ReplicaInfo, ReplicaState


def replica(id: str, state: ReplicaState = ReplicaState.READY) -> ReplicaInfo:
    return ReplicaInfo(id, "small", "fake://", "fake", state, slots=4, running=1)


def lease(id: str) -> Lease:
    model = ModelInfo("small", "Small 1B", ModelState.READY, 4096)
    return Lease(FakeEngine(), replica(id), model, 0.0, lambda error, asked_at: None)


def told(*replicas: ReplicaInfo, requested: str = "auto", preferred: str = "", failed: tuple[str, ...] = ()) -> Any:
    view = decision_view(requested, lease("a"), replicas, preferred=preferred, failed=failed)
    assert (view["model"], view["replica"]) == ("small", "a")
    return [(reason["step"], reason["text"]) for reason in view["reasons"]]


def test_a_persons_choice_comes_first() -> None:
    assert told(replica("a"), requested="small")[0] == ("user", "You chose Small 1B.")
    assert told(replica("a"))[0] == ("rule", "Small 1B is what `auto` stands for at this time.")


def test_only_replicas_that_were_ready_count() -> None:
    gone = replica("b", ReplicaState.GONE)
    assert told(replica("a"), gone)[1] == ("load", "a is the only replica that is ready.")
    assert told(replica("a"), replica("c"), gone)[1] == ("load", "a was the least busy of 2 replicas.")


def test_a_warm_prefix_and_failures_are_told() -> None:
    both = (replica("a"), replica("b"))
    assert told(*both, preferred="a")[1][0] == "affinity"
    assert told(*both, preferred="b", failed=("b",))[1:] == [
        ("failover", "b broke off before."),
        ("load", "a was the least busy of 2 replicas."),
    ]
