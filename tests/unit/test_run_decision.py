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


MADE = {"model": "small", "score": None, "reasons": [{"step": "user", "text": "chosen", "facts": {}}]}


def told(*replicas: ReplicaInfo, made: Any = MADE, preferred: str = "", failed: tuple[str, ...] = ()) -> Any:
    view = decision_view(made, lease("a"), replicas, preferred=preferred, failed=failed)
    assert (view["model"], view["replica"]) == ("small", "a")
    return [(reason["step"], reason["text"]) for reason in view["reasons"]]


def test_the_choice_of_the_model_comes_first_and_stays_when_another_replica_goes_on() -> None:
    assert told(replica("a"))[0] == ("user", "chosen")
    first = decision_view(MADE, lease("a"), [replica("a")], preferred="", failed=())
    assert [step for step, _ in told(replica("a"), made=first)] == ["user", "placement"]
    assert [step for step, _ in told(replica("a"), made=None)] == ["placement"]


def test_only_replicas_that_were_ready_count() -> None:
    gone = replica("b", ReplicaState.GONE)
    assert told(replica("a"), gone)[1] == ("placement", "a is the only replica that is ready.")
    assert told(replica("a"), replica("c"), gone)[1] == (
        "placement",
        "a was chosen of 2 replicas by their load and by what they had read.",
    )


def test_a_warm_prefix_and_failures_are_told() -> None:
    both = (replica("a"), replica("b"))
    assert told(*both, preferred="a")[1][0] == "affinity"
    assert told(*both, preferred="b", failed=("b",))[1:] == [
        ("failover", "b broke off before."),
        ("placement", "a was chosen of 2 replicas by their load and by what they had read."),
    ]
