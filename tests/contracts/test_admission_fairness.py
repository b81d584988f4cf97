"""Shares: by weight between classes, equal between users, and nobody waits for ever; pressure; forecasts."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from django.conf import settings

from inference.admission import Ask, Budget, Lane, Policy, Tier, Waiting
from inference.admission.verbs import Granted, Refused
from inference.pipe import Pipe
from inference.queueing import WaitState
from tests.contracts.admission_subjects import Line
from tests.factories.admission import a_replica, an_ask, connect, leaks

PATIENT = Policy(
    ladder=(999, 999, 999, 999), max_wait_s=dict.fromkeys(Lane, 10**6), users=dict.fromkeys(Tier, Budget())
)


@pytest.fixture
async def pipe() -> AsyncIterator[Pipe]:
    made = Pipe(settings.REDIS_URL)
    yield made
    await made.close()


async def a_full_line(pipe: Pipe, policy: Policy = PATIENT, slots: int = 1) -> Line:
    line = await Line(pipe, policy=policy).begin(a_replica(slots=slots, kv=20_000))
    for n in range(slots):
        assert isinstance(await line.ask(an_ask(f"first-{n}", user="first")), Granted)
    return line


async def test_classes_get_tokens_by_their_weights_whatever_the_size_of_their_requests(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    for n in range(120):
        await line.ask(an_ask(f"free-{n}"))
        await line.ask(an_ask(f"plus-{n}", tier=Tier.PLUS, output_tokens=140))
        await line.ask(an_ask(f"enterprise-{n}", tier=Tier.ENTERPRISE))
    order = await line.drain(["first-0"], grants=120)
    served: Counter[str] = Counter()
    for ticket in order:
        served[ticket.split("-")[0]] += 200 if ticket.startswith("plus") else 100
    total = sum(served.values())
    for name, weight in {"free": 1, "plus": 2, "enterprise": 4}.items():
        assert served[name] / total == pytest.approx(weight / 7, abs=0.02), served


async def test_users_of_a_class_get_equal_parts_however_much_they_ask(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    for n in range(100):
        await line.ask(an_ask(f"greedy-{n}", user="greedy"))
    for n in range(10):
        await line.ask(an_ask(f"modest-{n}", user="modest"))
        await line.ask(an_ask(f"large-{n}", user="large", output_tokens=140))
    order = await line.drain(["first-0"], grants=25)
    assert Counter(ticket.split("-")[0] for ticket in order) == {"greedy": 10, "modest": 10, "large": 5}


async def test_equal_users_are_served_in_the_order_in_which_they_came(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    for n in range(30):
        await line.ask(an_ask(f"t{n}"))
    assert await line.drain(["first-0"], grants=30) == [f"t{n}" for n in range(30)]


async def test_an_endless_row_of_new_users_cannot_keep_an_old_one_waiting(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    for n in range(5):
        await line.ask(an_ask(f"old-{n}", user="old"))
        await line.ask(an_ask(f"new-{n}"))
    held, order = ["first-0"], list[str]()
    for n in range(5, 60):
        await line.ask(an_ask(f"new-{n}"))
        await line.release(held.pop(0))
        held = await line.news()
        order += held
    assert [ticket for ticket in order if ticket.startswith("old")] == [f"old-{n}" for n in range(5)]


async def test_the_smallest_class_is_served_under_an_endless_row_of_the_largest(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    await line.ask(an_ask("small", lane=Lane.BATCH))
    held, served = ["first-0"], 0
    for n in range(60):
        await line.ask(an_ask(f"large-{n}", tier=Tier.ENTERPRISE))
        await line.release(held.pop(0))
        held = await line.news()
        served += 1
        if held == ["small"]:
            break
    assert served <= 34, "100 tokens at weight 1 are 32 tickets of 100 tokens at weight 32"


async def test_who_was_idle_has_saved_nothing_up(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    for n in range(40):
        await line.ask(an_ask(f"busy-{n}", user="busy"))
    held = ["first-0"]
    for _ in range(20):
        await line.release(held.pop(0))
        held = await line.news()
    for n in range(10):
        await line.ask(an_ask(f"late-{n}", user="late"))
    order = await line.drain(held, grants=10)
    assert Counter(ticket.split("-")[0] for ticket in order) == {"busy": 5, "late": 5}


async def test_tokens_that_were_not_used_do_not_count_against_a_user(pipe: Pipe) -> None:
    line = await a_full_line(pipe)
    for n in range(40):
        await line.ask(an_ask(f"brief-{n}", user="brief", output_tokens=340))
        await line.ask(an_ask(f"full-{n}", user="full", output_tokens=340))
    held, order = ["first-0"], list[str]()
    for _ in range(40):
        await line.release(held[0], used=100 if held[0].startswith("brief") else 400)
        held = await line.news()
        order += held
    counts = Counter(ticket.split("-")[0] for ticket in order)
    assert counts["brief"] / counts["full"] == pytest.approx(4, rel=0.25)


async def test_long_prompts_hold_no_more_than_their_share_and_short_ones_go_on(pipe: Pipe) -> None:
    line = await Line(pipe, policy=PATIENT).begin(a_replica(slots=4, kv=10_000, context=6_000))
    long = {"lane": Lane.LONG, "prompt_tokens": 2_960}
    assert [type(await line.ask(an_ask(f"l{n}", **long))) for n in range(3)] == [Granted, Granted, WaitState]
    assert [type(await line.ask(an_ask(f"s{n}"))) for n in range(3)] == [Granted, Granted, WaitState]
    await line.release("s0")
    assert await line.news() == ["s2"], "the slot is not one of the long lane's"
    await line.release("l0")
    assert await line.news() == ["l2"]
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_ticket_that_does_not_fit_lets_only_so_many_pass(pipe: Pipe) -> None:
    policy = replace(PATIENT, max_passes=5)
    line = await Line(pipe, policy=policy).begin(a_replica(slots=10, kv=1_000, context=1_000))
    for n in range(9):
        await line.ask(an_ask(f"first-{n}"))
    await line.ask(an_ask("large", tier=Tier.ENTERPRISE, prompt_tokens=560))
    for n in range(40):
        await line.ask(an_ask(f"small-{n}"))
    held = [f"first-{n}" for n in range(9)] + await line.news()
    order = [ticket for ticket in await line.drain(held, grants=30) if ticket != "small-0"]
    assert order.index("large") <= 5 + 6, "five pass, then six must end for its 600 tokens"
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_the_pressure_ladder_is_climbed_rung_by_rung(pipe: Pipe) -> None:
    limits = {"interactive": 100, "long": 1_000, "batch": 10_000}
    policy = Policy(ladder=(0.2, 0.4, 0.6, 0.8), max_waiting=8, max_wait_s=limits, shortened=0.5)
    line = await a_full_line(pipe, policy)
    await line.release("first-0", after_s=10)
    await line.ask(an_ask("first-1"))

    async def level() -> int:
        return (await line.verbs.capacity("m")).level

    assert isinstance(await line.ask(an_ask("batch", lane=Lane.BATCH)), WaitState)
    assert await level() == 0
    for n in range(3):
        await line.ask(an_ask(f"a{n}"))
    assert await level() == 1
    assert await line.drain(["first-1"], grants=2, each_s=10) == ["a0", "a1"], "batch pauses"
    for n in range(3):
        await line.ask(an_ask(f"b{n}"))
    assert await level() == 2
    refusal = await line.ask(an_ask("c"))
    assert isinstance(refusal, Refused)
    assert refusal.code == "wait_too_long"
    assert 37.5 < float(refusal.detail) < 75, "a wait that would have been accepted without strain"
    for n in range(2):
        await line.ask(an_ask(f"p{n}", tier=Tier.PLUS))
    assert await level() == 3
    refusal = await line.ask(an_ask("d", smaller="small"))
    assert isinstance(refusal, Refused)
    assert refusal.code == "pressure"
    refusal = await line.ask(an_ask("d"))
    assert isinstance(refusal, Refused)
    assert refusal.code == "wait_too_long", "there is nothing smaller to offer"
    for n in range(2):
        assert isinstance(await line.ask(an_ask(f"e{n}", tier=Tier.ENTERPRISE)), WaitState)
    assert await level() == 4
    refusal = await line.ask(an_ask("f", tier=Tier.ENTERPRISE))
    assert isinstance(refusal, Refused)
    assert refusal.code == "pressure"
    standing = await line.verbs.capacity("m")
    assert (standing.slots, standing.running) == (1, 1)
    assert standing.tokens_per_s == pytest.approx(10, rel=0.01)
    assert Waiting(Lane.INTERACTIVE, Tier.ENTERPRISE, 2, 200) in standing.waiting


async def test_paused_batch_is_served_after_its_pause_and_has_earned_no_credit(pipe: Pipe) -> None:
    equal = {"interactive": 1, "long": 1, "batch": 1}
    policy = replace(PATIENT, ladder=(0, 999, 999, 999), pause_most_s=100, lanes=equal)
    line = await a_full_line(pipe, policy)
    for n in range(20):
        await line.ask(an_ask(f"batch-{n}", lane=Lane.BATCH))
        await line.ask(an_ask(f"chat-{n}", user=f"u{n}"))
    held = ["first-0"]
    for _ in range(5):
        await line.release(held.pop(), after_s=1)
        held = await line.news()
        assert held[0].startswith("chat")
    line.now += 100_000
    order = Counter(ticket.split("-")[0] for ticket in await line.drain(held, grants=20))
    assert abs(order["batch"] - order["chat"]) <= 2, order


async def expect(line: Line, ask: Ask, position: int, wait_s: float) -> None:
    reply = await line.ask(ask)
    assert isinstance(reply, WaitState)
    assert reply.position == position
    assert reply.estimated_wait_s == pytest.approx(wait_s, rel=0.01)


async def test_forecasts_come_from_measured_rates_and_the_part_of_the_class(pipe: Pipe) -> None:
    line = await a_full_line(pipe, slots=2)
    assert await line.ask(an_ask("unmeasured")) == WaitState(1, None)
    await line.release("unmeasured", "first-0", "first-1", after_s=10)
    for n in range(2):
        await line.ask(an_ask(f"runs-{n}"))
    # 200 tokens every 10 s; each waiter is 100 tokens.
    await expect(line, an_ask("a"), 1, 5.0)
    await expect(line, an_ask("b"), 2, 10.0)
    # Two of the same weight that wait already, and none that come, are served as much meanwhile.
    same = replace(PATIENT, lanes={"interactive": 1, "long": 1, "batch": 1}, tiers=dict.fromkeys(Tier, 1))
    equal = Line(pipe, policy=same)
    equal.now = line.now + 600_000
    await equal.beat()
    await expect(equal, an_ask("c", tier=Tier.PLUS), 1, 10.0)
    await expect(equal, an_ask("d", tier=Tier.PLUS), 2, 20.0)
    await expect(equal, an_ask("e", tier=Tier.PLUS), 3, 25.0)
    # While more come, the other class is served its part all the time.
    for n in range(5):
        equal.now += 1_000
        await equal.ask(an_ask(f"more-{n}"))
    await expect(equal, an_ask("f", tier=Tier.PLUS), 4, 40.0)
