"""What a run asks of the admission."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apps.conversations.runner.context import Context
from apps.conversations.runner.placing import ask_of
from inference.client import Lane, Tier
from inference.protocol import ChatMessage
from tests.factories.runner import claimed_run


def context(words: int = 10, max_tokens: int = 100) -> Context:
    return Context((ChatMessage("user", "word " * words),), max_tokens, None)


def test_a_long_prompt_has_a_lane_of_its_own_and_batch_work_stays_batch(settings: Any) -> None:
    settings.RUN_LONG_PROMPT_TOKENS = 1_000
    assert ask_of(claimed_run(), context(), prefer="", failed=()).lane is Lane.INTERACTIVE
    assert ask_of(claimed_run(), context(5_000), prefer="", failed=()).lane is Lane.LONG
    assert ask_of(claimed_run(lane="batch"), context(5_000), prefer="", failed=()).lane is Lane.BATCH


def test_of_a_high_limit_only_what_answers_usually_need_is_reserved(settings: Any) -> None:
    settings.RUN_RESERVED_OUTPUT_TOKENS = 500
    assert ask_of(claimed_run(), context(max_tokens=100), prefer="", failed=()).output_tokens == 100
    assert ask_of(claimed_run(), context(max_tokens=100_000), prefer="", failed=()).output_tokens == 500


def test_a_run_has_one_ticket_and_is_not_refused_once_it_was_begun() -> None:
    claimed = claimed_run(tier="plus")
    first = ask_of(claimed, context(), prefer="a", failed=())
    second = ask_of(claimed, context(), prefer="a", failed=("a",))
    third = ask_of(replace(claimed, attempt=2), context(), prefer="a", failed=())
    assert first.ticket == second.ticket == third.ticket
    assert [ask.accepted for ask in (first, second, third)] == [False, True, True]
    assert (second.avoid, second.prefer, second.tier) == (("a",), "a", Tier.PLUS)
    assert (first.user, first.organization) == (str(claimed.user_id), str(claimed.organization_id))
