"""Runs whose answer must have a form, and runs that a stronger model ends: what is stored, shown and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pytest

from apps.accounts.models import UsageEntry
from apps.conversations.models import Message, Run
from apps.conversations.types import RunParams
from inference.engines.script import expected_text
from tests.factories.accounts import make_actor
from tests.factories.conversations import ask, make_conversation
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
GOOD, BAD = '{"city": "Ulm"}', '{"town": "Ulm"}'
JSON: dict[str, Any] = {"response_format": {"type": "json_schema", "json_schema": {"name": "c", "schema": CITY}}}
TOOLS: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]}
NO_EXTRA: dict[str, Any] = {}
REFUSAL = "I'm sorry, but I can't help with that."
SERVED = ("small=fake://s?level=1", "large=fake://l?level=2")
BEFORE = [{"step": "complexity", "text": "simple", "facts": {}}]
DECISION = {"model": "small", "score": 0.1, "alternatives": ["large"], "reasons": BEFORE}
CHOSEN = {"model": "small", "score": None, "alternatives": [], "reasons": [{"step": "user", "text": "", "facts": {}}]}


def run(prompt: str, extra: Mapping[str, Any] = NO_EXTRA, **change: Any) -> tuple[Run, Message]:
    """A finished run of `small`, where the prompt has lines for each model, and its answer."""
    actor = make_actor()
    made = ask(actor, make_conversation(actor), prompt)
    fields = {"model": "small", "decision": DECISION, "params": asdict(RunParams(extra=extra))}
    Run.objects.filter(id=made.run_id).update(**fields | change)
    ended = execute(made.run_id, *SERVED)
    return ended, Message.objects.get(id=made.answer_id, conversation_id=made.conversation_id)


def steps(ended: Run) -> list[str]:
    assert ended.decision is not None
    return [reason["step"] for reason in ended.decision["reasons"]]


def chosen(prompt: str, extra: Mapping[str, Any] = NO_EXTRA) -> tuple[Run, Message]:
    return run(prompt, extra, model_requested="small", decision=CHOSEN)


# ---------------------------------------------------------------- the form of an answer


def test_json_is_given_out_alone() -> None:
    ended, answer = chosen(f"fence: {GOOD}", JSON)
    assert (ended.state, ended.finish_reason, answer.text) == ("completed", "stop", GOOD)


def test_a_wrong_answer_is_asked_for_once_more_and_both_are_counted() -> None:
    once, _ = chosen(f"say: {GOOD}", JSON)
    twice, answer = chosen(f"say: {BAD}\nagain: say: {GOOD}", JSON)
    assert (twice.state, answer.text) == ("completed", GOOD)
    assert twice.completion_tokens == 2 * once.completion_tokens
    assert twice.prompt_tokens > 2 * once.prompt_tokens
    entry = UsageEntry.objects.get(subject_id=twice.id)
    assert (entry.prompt_tokens, entry.completion_tokens) == (twice.prompt_tokens, twice.completion_tokens)


@pytest.mark.parametrize(
    ("prompt", "extra", "told"),
    [
        (f"say: {BAD}\nagain: say: {BAD}", JSON, "city is missing"),
        (f"say: {BAD}\nagain: n:0", JSON, "not JSON"),
        (f"call:weather {BAD}\nagain: call:weather {BAD}", TOOLS, "city is missing"),
        (f"call:wether {GOOD}\nagain: call:wether {GOOD}", TOOLS, "there is no tool"),
    ],
)
def test_what_stays_wrong_fails_clearly_and_is_seen_by_nobody(prompt: str, extra: dict[str, Any], told: str) -> None:
    ended, answer = chosen(prompt, extra)
    assert (ended.state, answer.text, answer.tool_calls) == ("failed", "", [])
    assert ended.error is not None
    assert ended.error["code"] == "invalid_output"
    assert told in ended.error["message"]
    assert ended.completion_tokens > 0


@pytest.mark.parametrize(
    "prompt",
    [
        f"call:weather {GOOD}",
        f'fence: {{"name": "weather", "arguments": {GOOD}}}',
        f"call:weather {BAD}\nagain: call:weather {GOOD}",
        f'call:weather nonsense\nagain: fence: {{"name": "weather", "arguments": {GOOD}}}',
    ],
)
def test_calls_are_kept_with_the_answer(prompt: str) -> None:
    ended, answer = chosen(prompt, TOOLS)
    assert (ended.state, ended.finish_reason, answer.text) == ("completed", "tool_calls", "")
    (call,) = answer.tool_calls
    assert call["id"]
    assert call["function"] == {"name": "weather", "arguments": '{"city":"Ulm"}'}


# ---------------------------------------------------------------- a stronger model


@pytest.mark.parametrize(
    ("first", "extra", "why"),
    [
        (f"say: {REFUSAL}", NO_EXTRA, "it refused a plain question"),
        ("n:0", NO_EXTRA, "its answer was empty"),
        (f"call:weather {BAD}", TOOLS, "its tool call was invalid after one repair"),
        (f"say: {BAD}", JSON, "its JSON was invalid after one repair"),
    ],
)
def test_the_next_level_answers_when_the_checks_fail(first: str, extra: dict[str, Any], why: str) -> None:
    ended, answer = run(f"@small {first}\n@small again: {first}\n@large say: {GOOD}", extra)
    assert (ended.state, ended.model, answer.model, answer.text) == ("completed", "large", "large", GOOD)
    assert steps(ended) == ["complexity", "escalation", "placement"]
    assert answer.notices == [{"kind": "escalated", "from_model": "small", "to_model": "large", "why": why}]
    assert ended.decision is not None
    facts = ended.decision["reasons"][1]["facts"]
    assert ended.prompt_tokens > facts["prompt_tokens"] > 0
    assert ended.completion_tokens == facts["completion_tokens"] + len(GOOD.split())
    assert UsageEntry.objects.get(subject_id=ended.id).completion_tokens == ended.completion_tokens


def test_what_the_user_chose_is_not_replaced() -> None:
    ended, answer = chosen(f"@small say: {REFUSAL}\n@large say: yes")
    assert (ended.state, ended.model, answer.text, answer.notices) == ("completed", "small", REFUSAL, [])


def test_the_strongest_models_refusal_is_the_answer() -> None:
    ended, answer = run(f"say: {REFUSAL}")
    assert (ended.state, ended.model, answer.text) == ("completed", "large", REFUSAL)
    assert len(answer.notices) == 1


def test_an_ordinary_answer_stays_where_it_is() -> None:
    ended, answer = run("n:30 seed:a")
    assert (ended.model, answer.text, answer.notices) == ("small", expected_text(30, "a"), [])


def test_whoever_takes_an_escalated_run_over_goes_on_with_the_stronger_model() -> None:
    facts = {"from": "small", "to": "large", "why": "it refused a plain question"}
    taken = {"prompt_tokens": 7, "completion_tokens": 5, "cached_tokens": 0}
    reason = {"step": "escalation", "text": "small did not manage", "facts": facts | taken}
    decision = DECISION | {"model": "large", "alternatives": [], "reasons": [*BEFORE, reason]}
    ended, answer = run("n:3", model="large", decision=decision, attempt=1)
    assert (ended.model, ended.completion_tokens) == ("large", 3 + 5)
    assert [notice["kind"] for notice in answer.notices] == ["escalated"]


def test_a_run_that_had_started_a_tool_is_not_begun_again_by_another_runner() -> None:
    ended, answer = run("n:3", attempt=1, dispatched=1)
    assert (ended.state, answer.text) == ("failed", "")
    assert ended.error is not None
    assert "not started twice" in ended.error["message"]
