"""What a run asks of the admission."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.conversations.runner.context import Context
from apps.conversations.runner.placing import AnswerLengths, ask_of, beginnings
from apps.conversations.types import LEAST_OUTPUT_TOKENS, RunParams
from inference.client import Lane, Tier
from inference.protocol import ChatMessage
from tests.factories.runner import claimed_run


def context(words: int = 10, max_tokens: int = 100) -> Context:
    return Context((ChatMessage("user", "word " * words),), max_tokens, None)


def test_a_long_prompt_has_a_lane_of_its_own_and_batch_work_stays_batch(settings: Any) -> None:
    settings.RUN_LONG_PROMPT_TOKENS = 1_000
    assert ask_of(claimed_run(), context(), output_tokens=500, prefer="", failed=()).lane is Lane.INTERACTIVE
    assert ask_of(claimed_run(), context(5_000), output_tokens=500, prefer="", failed=()).lane is Lane.LONG
    assert ask_of(claimed_run(lane="batch"), context(5_000), output_tokens=500, prefer="", failed=()).lane is Lane.BATCH


def test_the_tools_of_a_prompt_take_memory_too() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "word " * 500}}
    with_tools = replace(claimed_run(), params=RunParams(extra={"tools": [tool]}))
    plain, more = (
        ask_of(run, context(), output_tokens=9, prefer="", failed=()).prompt_tokens
        for run in (claimed_run(), with_tools)
    )
    assert more > plain + 500


SYSTEM = ChatMessage("system", "You are a careful clerk. " * 100)
HELLO, BYE, YES = ChatMessage("user", "Hello"), ChatMessage("user", "Bye"), ChatMessage("assistant", "Yes.")


def test_prompts_begin_alike_by_whole_messages_within_an_organization() -> None:
    run = claimed_run()
    opening, system = beginnings(run, (SYSTEM, HELLO))
    assert beginnings(run, (SYSTEM, HELLO, YES, BYE)) == (opening, system), "a conversation that went on"
    other, same = beginnings(run, (SYSTEM, BYE))
    assert (same, other != opening) == (system, True), "another one with the same instructions"
    assert not set(beginnings(claimed_run(), (SYSTEM, HELLO))) & {opening, system}, "another organization"
    assert ask_of(run, Context((SYSTEM, HELLO), 9, None), output_tokens=9, prefer="", failed=()).prefixes == (
        opening,
        system,
    )


def test_tools_stand_before_the_messages() -> None:
    run, tool = claimed_run(), {"type": "function", "function": {"name": "f"}}
    with_tools = replace(run, params=RunParams(extra={"tools": [tool]}))
    assert not set(beginnings(with_tools, (SYSTEM, HELLO))) & set(beginnings(run, (SYSTEM, HELLO)))


def test_what_is_short_is_no_beginning_and_of_what_is_long_the_first_part_counts() -> None:
    run, vast = claimed_run(), "word " * 100_000
    assert beginnings(run, ()) == beginnings(run, (ChatMessage("system", "Be brief."), HELLO)) == ()
    assert len(beginnings(run, (ChatMessage("user", vast), YES))) == 1
    assert len(beginnings(run, (YES, ChatMessage("user", vast)))) == 1
    (only,) = beginnings(run, (ChatMessage("system", vast), HELLO))
    assert beginnings(run, (ChatMessage("system", f"{vast} and so on"), BYE)) == (only,)


def test_of_a_high_limit_only_what_is_expected_is_reserved() -> None:
    assert ask_of(claimed_run(), context(max_tokens=100), output_tokens=500, prefer="", failed=()).output_tokens == 100
    assert (
        ask_of(claimed_run(), context(max_tokens=100_000), output_tokens=500, prefer="", failed=()).output_tokens == 500
    )


def test_what_is_expected_is_what_nineteen_of_twenty_answers_needed(settings: Any) -> None:
    settings.RUN_RESERVED_OUTPUT_TOKENS = 2_000
    lengths = AnswerLengths()
    for tokens in range(AnswerLengths.ENOUGH - 1):
        lengths.note("a", 10 * tokens)
    assert lengths.expected("a") == 2_000, "not enough was seen"
    lengths.note("a", 9_000)
    assert lengths.expected("a") == 300
    assert lengths.expected("b") == 2_000
    for _ in range(AnswerLengths.REMEMBERED):
        lengths.note("a", 3)
    assert lengths.expected("a") == LEAST_OUTPUT_TOKENS
    for _ in range(AnswerLengths.REMEMBERED):
        lengths.note("a", 9_000)
    assert lengths.expected("a") == 2_000, "never more than that"


def test_a_run_has_one_ticket_and_is_not_refused_what_the_web_accepted() -> None:
    claimed = claimed_run(tier="plus")
    first = ask_of(claimed, context(), output_tokens=500, prefer="a", failed=())
    second = ask_of(claimed, context(), output_tokens=500, prefer="a", failed=("a",))
    third = ask_of(replace(claimed, attempt=2), context(), output_tokens=500, prefer="a", failed=())
    assert first.ticket == second.ticket == third.ticket
    assert all(ask.accepted for ask in (first, second, third))
    assert (second.avoid, second.prefer, second.tier) == (("a",), "a", Tier.PLUS)
    assert (first.user, first.organization) == (str(claimed.user_id), str(claimed.organization_id))
