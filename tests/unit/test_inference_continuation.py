"""Which answers may go on elsewhere after they broke off."""

from __future__ import annotations

from typing import Any

import pytest

from inference.continuation import NOBODY, Origin, Verdict, Written, choices_of, is_structured, judge
from inference.protocol import ReplicaInfo, ReplicaState

CASES = {
    "plain, nothing yet": (Written(shown=False), Verdict.CONTINUE),
    "plain, half": (Written(shown=True), Verdict.CONTINUE),
    "several answers, nothing yet": (Written(shown=False, choices=2), Verdict.RESTART),
    "several answers, half": (Written(shown=True, choices=2), Verdict.FAIL),
    "structured, nothing yet": (Written(shown=False, structured=True), Verdict.RESTART),
    "structured, half": (Written(shown=True, structured=True), Verdict.FAIL),
    "a tool was started, nothing shown": (Written(shown=False, dispatched=1), Verdict.FAIL),
    "a tool was started": (Written(shown=True, dispatched=2), Verdict.FAIL),
    "a tool was started, structured": (Written(shown=False, structured=True, dispatched=1), Verdict.FAIL),
}


@pytest.mark.parametrize(("written", "verdict"), CASES.values(), ids=CASES)
def test_the_verdict(written: Written, verdict: Verdict) -> None:
    found, reason = judge(written)
    assert found is verdict
    assert bool(reason) == (verdict is Verdict.FAIL), "a refusal has its reason, and nothing else has one"


@pytest.mark.parametrize(
    ("extra", "structured"),
    [
        ({}, False),
        ({"response_format": {"type": "text"}}, False),
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, True),
        ({"structured_outputs": {"regex": "a+"}}, True),
        ({"guided_choice": ["yes", "no"]}, True),
        ({"guided_choice": None, "logit_bias": {"5": 1}}, False),
        ({"tools": [{}]}, True),
        ({"tools": [{}], "tool_choice": "none"}, False),
        ({"tools": []}, False),
    ],
)
def test_what_counts_as_structured(extra: dict[str, Any], structured: bool) -> None:
    assert is_structured(extra) is structured


def test_how_many_answers_are_asked_for() -> None:
    assert [choices_of(extra) for extra in ({}, {"n": None}, {"n": 1}, {"n": 3})] == [1, 1, 1, 3]


def replica(id: str, *, weights: str = "", tokenizer: str = "") -> ReplicaInfo:
    state = ReplicaState.READY
    return ReplicaInfo(id, "m", "http://h", "vllm", state, weights_digest=weights, tokenizer_digest=tokenizer)


@pytest.mark.parametrize(
    ("origin", "other", "alike"),
    [
        (Origin("a", tokenizer="t"), replica("b", tokenizer="t"), True),
        (Origin("a", tokenizer="t"), replica("b", tokenizer="u"), False),
        # It came back with another one.
        (Origin("a", tokenizer="t"), replica("a", tokenizer="u"), False),
        (Origin("a", tokenizer="t"), replica("b"), False),
        (Origin("a"), replica("b", tokenizer="t"), False),
        (Origin("a"), replica("b"), False),
        (Origin("a"), replica("a"), True),
        (NOBODY, replica("a"), False),
    ],
)
def test_ids_go_only_where_they_stand_for_the_same(origin: Origin, other: ReplicaInfo, alike: bool) -> None:
    assert origin.reads_alike(other) is alike


def test_others_are_those_that_are_known_to_have_other_weights() -> None:
    same, other, unknown = replica("same", weights="w"), replica("other", weights="v"), replica("unknown")
    assert Origin("a", weights="w").others([same, other, unknown]) == ["other"]
    assert Origin("a").others([same, other]) == []
    assert Origin("a", weights="w").others([other]) == [], "better than none"
