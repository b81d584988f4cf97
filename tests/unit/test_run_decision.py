"""Why a run has its model and replica, told from what the pool knew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apps.conversations.runner.decision import decision_view, was_good
from apps.conversations.types import RunResult, RunState
from inference.client import Lease
from inference.engines.fake import FakeEngine
from inference.protocol import ModelInfo, ModelState, ReplicaInfo, ReplicaState
from tests.factories.runner import claimed_run


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


@pytest.mark.parametrize(
    ("requested", "state", "code", "good"),
    [
        ("auto", RunState.COMPLETED, "", True),
        ("auto", RunState.INCOMPLETE, "", True),
        ("auto", RunState.INCOMPLETE, "replica_failed", False),
        ("auto", RunState.FAILED, "invalid_output", False),
        ("auto", RunState.FAILED, "overloaded", None),
        ("auto", RunState.FAILED, "rejected", None),
        ("auto", RunState.CANCELLED, "", None),
        ("small", RunState.COMPLETED, "", None),
        ("small", RunState.FAILED, "replica_failed", None),
    ],
)
def test_only_what_auto_asked_and_the_model_did_tells_its_quality(
    requested: str, state: RunState, code: str, good: bool | None
) -> None:
    result = RunResult(state, "", None, error={"code": code, "message": "", "retry_after_s": None} if code else None)
    assert was_good(replace(claimed_run(), requested=requested), result) is good
