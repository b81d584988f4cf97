"""What a run says when waiting is over."""

from __future__ import annotations

import pytest

from apps.conversations.runner.patience import backoff, explain
from inference.protocol import EngineOverloaded, NoReplica, Overloaded
from inference.structured import StructuredOutputFailed


def test_a_smaller_model_is_offered_openly() -> None:
    code, sentence, wait = explain(Overloaded(7, "40 requests wait", code="pressure", alternative="small"))
    assert (code, wait) == ("overloaded", 7)
    assert sentence == "The model is too busy: 40 requests wait. small has room: choose it, or try again later."
    assert "choose" not in explain(Overloaded(7, "40 requests wait"))[1]


@pytest.mark.parametrize(
    ("error", "code", "wait"),
    [
        (TimeoutError(), "deadline", None),
        (NoReplica("m", eta_s=40), "no_replica", 40),
        (NoReplica("m"), "no_replica", 15),
        (EngineOverloaded(3), "overloaded", 3),
        (StructuredOutputFailed(("city is missing",)), "invalid_output", None),
        (ValueError("a secret"), "internal", None),
    ],
)
def test_every_end_has_a_code_a_sentence_and_a_wait(error: Exception, code: str, wait: float | None) -> None:
    found, sentence, retry_after_s = explain(error)
    assert (found, retry_after_s) == (code, wait)
    assert sentence.endswith(".")
    assert "secret" not in sentence


def test_waits_between_tries_grow_and_are_bounded() -> None:
    waits = [backoff(attempt) for attempt in range(12)]
    assert all(0 < wait <= 5 for wait in waits)
    assert waits[0] <= 0.1 < waits[5]
