"""Places: who gets which replica, what is refused at once, and that every place comes back."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest
from django.conf import settings

from inference.admission import Budget, Lane, Policy, Tier
from inference.admission.policy import _lua
from inference.admission.verbs import MOST_PREFIXES, Granted, NoneReady, Refused, Stranger
from inference.pipe import Pipe, Script
from inference.queueing import WaitState
from tests.contracts.admission_subjects import Line
from tests.factories.admission import a_replica, an_ask, connect, leaks


@pytest.fixture
async def pipe() -> AsyncIterator[Pipe]:
    made = Pipe(settings.REDIS_URL)
    yield made
    await made.close()


async def test_the_least_loaded_replica_by_slots_and_by_memory_is_given(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=4, kv=1_000), a_replica("b", slots=4, kv=1_000))
    assert await line.ask(an_ask("1", prompt_tokens=500)) == Granted("a")
    replies = [await line.ask(an_ask(n)) for n in "234567"]
    assert replies == [Granted("b")] * 3 + [Granted("a")] * 3, "540 tokens weigh more than two slots"
    assert isinstance(await line.ask(an_ask("8", prompt_tokens=700)), WaitState), "a slot is free, but not the memory"
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_the_preferred_replica_is_given_unless_it_is_much_busier(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=4), a_replica("b", slots=4))
    replies = [await line.ask(an_ask(str(n), prefer="b")) for n in range(5)]
    assert replies == [Granted("b")] * 3 + [Granted("a"), Granted("b")]


async def test_prompts_that_begin_alike_meet_unless_their_replica_is_much_busier(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=4), a_replica("b", slots=4))
    assert await line.ask(an_ask("1", prefer="b", prefixes=("11aa", "22bb"))) == Granted("b")
    assert await line.ask(an_ask("2")) == Granted("a")
    assert await line.ask(an_ask("3", prefixes=("33cc",))) == Granted("a")
    replies = [await line.ask(an_ask(f"alike {n}", prefixes=("44dd", "22bb"))) for n in range(3)]
    assert replies == [Granted("b")] * 3, "as busy as the others and more, but it has read the beginning"
    assert await line.ask(an_ask("4", prefixes=("22bb",))) == Granted("a"), "b is full"
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_loaded_replica_is_not_preferred_for_what_it_has_read(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=4), a_replica("b", slots=4))
    for n in range(3):
        assert await line.ask(an_ask(str(n), prefer="b", prefixes=("11aa",))) == Granted("b")
    assert await line.ask(an_ask("3", prefixes=("11aa",))) == Granted("a"), "three quarters against none"
    assert await line.ask(an_ask("4", prefixes=("11aa",))) == Granted("a"), "that has read it since, and is less busy"


async def test_of_a_prompts_beginnings_the_longest_counts_and_a_preference_before_all(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=9), a_replica("b", slots=9), a_replica("c", slots=9))
    await line.ask(an_ask("1", prefer="b", prefixes=("1111",)))
    await line.ask(an_ask("2", prefer="c", prefixes=("2222",)))
    assert await line.ask(an_ask("3", prefixes=("1111", "2222"))) == Granted("b")
    assert await line.ask(an_ask("4", prefixes=("2222", "1111"))) == Granted("b"), "where both were placed last"
    assert await line.ask(an_ask("5", prefer="a", prefixes=("1111",))) == Granted("a")
    assert await line.ask(an_ask("6", prefixes=("1111",), avoid=("a",))) != Granted("a")


async def test_beginnings_are_forgotten_in_time_and_never_too_many(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=9), a_replica("b", slots=9))
    await line.ask(an_ask("1", prefer="b", prefixes=("1111aa",)))
    await line.ask(an_ask("2"))
    valkey = connect(settings.REDIS_URL)
    assert 0 < valkey.pttl("adm:p:m:1111") <= Policy().prefix_s * 1000
    assert await line.ask(an_ask("3", prefixes=("1111bb",))) == Granted("a"), "another one of the same four digits"
    assert list(valkey.scan_iter("adm:p:*")) == ["adm:p:m:1111"]
    assert await line.ask(an_ask("4", prefixes=("1111aa",))) == Granted("b"), (
        "forgotten, so it goes where there is room"
    )
    many = tuple(f"{n}{n}{n}{n}" for n in range(2, 9))
    await line.ask(an_ask("5", prefixes=many))
    assert len(list(valkey.scan_iter("adm:p:*"))) == 1 + MOST_PREFIXES


async def test_who_waited_is_remembered_too(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=1))
    await line.ask(an_ask("1"))
    assert isinstance(await line.ask(an_ask("2", prefixes=("1111",))), WaitState)
    await line.release("1")
    assert await line.news() == ["2"]
    await line.verbs.set_replicas(line.now, "m", [a_replica("0", slots=9), a_replica("a", slots=9)])
    assert await line.ask(an_ask("3", prefixes=("1111",))) == Granted("a")
    await line.verbs.set_replicas(line.now, "m", [a_replica("0", slots=9)])
    assert await line.ask(an_ask("4", prefixes=("1111",))) == Granted("0"), "it is gone"


async def test_replicas_to_avoid_are_given_only_when_there_is_no_other(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", slots=2), a_replica("b", slots=1))
    assert await line.ask(an_ask("1", avoid=("a",), prefer="a")) == Granted("b")
    assert await line.ask(an_ask("2", avoid=("a",))) == Granted("a")


async def test_a_replica_that_is_not_named_any_more_gets_nothing_and_one_that_says_nothing_has_no_bounds(
    pipe: Pipe,
) -> None:
    line = await Line(pipe).begin(a_replica("a"), a_replica("b"))
    assert await line.ask(an_ask("1")) == Granted("a")
    unknown = a_replica("c", slots=1, kv=0, context=0)
    await line.verbs.set_replicas(line.now, "m", [unknown])
    assert await line.ask(an_ask("2", prompt_tokens=10**6)) == Granted("c")
    assert isinstance(await line.ask(an_ask("3")), WaitState)
    await line.release("1")
    assert await line.news() == []
    assert not connect(settings.REDIS_URL).exists("adm:m:m:r:a"), "forgotten with its last ticket"
    await line.release("2")
    assert await line.news() == ["3"]
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_what_no_replica_can_hold_is_refused_at_once(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica("a", kv=10_000, context=2_000), a_replica("b", kv=3_000, context=8_000))
    assert await line.ask(an_ask("1", prompt_tokens=4_000)) == Refused("too_large", None, "3000")
    assert await line.ask(an_ask("2", prompt_tokens=2_900)) == Granted("b")
    assert await line.ask(an_ask("3", model="another")) == NoneReady()


async def test_who_only_waits_until_all_have_said_what_they_hold_is_not_refused_for_long_answers(pipe: Pipe) -> None:
    replica = a_replica(slots=8)
    line = await Line(pipe).begin(replica)
    veteran = Line(pipe, "veteran")
    veteran.verbs.epoch = "of the life before"
    await veteran.beat()
    await line.verbs.hold(line.now, an_ask("old"), asked=0, granted=line.now - 40_000, replica=replica.id)
    await line.release("old")
    assert [await line.ask(an_ask(n)) for n in "12345678"] == [WaitState(n, 3.0) for n in range(1, 9)]
    ninth = await line.ask(an_ask("9"))
    assert ninth == WaitState(9, 45.0), "nine times 40 seconds, eight at a time"
    line.now += 3_000
    await line.beat(replica)
    assert await line.news() == list("12345678")
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_line_has_an_end(pipe: Pipe) -> None:
    line = await Line(pipe, policy=Policy(max_waiting=3, ladder=(9, 9, 9, 9))).begin(a_replica(slots=1))
    replies = [await line.ask(an_ask(str(n))) for n in range(5)]
    assert [type(reply) for reply in replies] == [Granted, WaitState, WaitState, WaitState, Refused]
    assert isinstance(replies[-1], Refused)
    assert (replies[-1].code, replies[-1].detail) == ("queue_full", "3")
    assert replies[-1].retry_s == 10.0, "unmeasured: as if an answer took ten seconds"
    assert isinstance(await line.ask(an_ask("other", tier=Tier.PLUS)), WaitState), "each class has its own"
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_no_user_can_fill_a_line(pipe: Pipe) -> None:
    policy = Policy(max_waiting=8, ladder=(9, 9, 9, 9), users=dict.fromkeys(Tier, Budget()))
    line = await Line(pipe, policy=policy).begin(a_replica(slots=1))
    replies = [await line.ask(an_ask(str(n), user="greedy")) for n in range(20)]
    assert sum(isinstance(reply, WaitState) for reply in replies) == 4
    replies = [await line.ask(an_ask(f"other-{n}")) for n in range(5)]
    assert [type(reply) for reply in replies] == [WaitState] * 4 + [Refused]


async def test_who_would_wait_too_long_is_refused_with_the_time_after_which_the_wait_is_bearable(pipe: Pipe) -> None:
    policy = Policy(max_wait_s={"interactive": 100 / 3, "long": 300, "batch": 300}, ladder=(9, 9, 9, 9))
    line = await Line(pipe, policy=policy).begin(a_replica(slots=1))
    await line.ask(an_ask("measured"))
    await line.release("measured", after_s=10)
    await line.ask(an_ask("runs"))
    assert [await line.ask(an_ask(n)) for n in "ab"] == [WaitState(1, 10.0), WaitState(2, 20.0)]
    assert await line.ask(an_ask("c")) == Refused("wait_too_long", 5.0, "30.000"), "more than three quarters of it"


async def test_a_user_and_an_organization_have_so_many_in_progress(pipe: Pipe) -> None:
    policy = Policy(
        users=dict.fromkeys(Tier, Budget(concurrency=2)), organizations=dict.fromkeys(Tier, Budget(concurrency=3))
    )
    line = await Line(pipe, policy=policy).begin(a_replica(slots=1))
    one = {"user": "one", "organization": "x"}
    assert [type(await line.ask(an_ask(n, **one))) for n in "ab"] == [Granted, WaitState]
    refused = await line.ask(an_ask("c", **one))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.detail) == ("user_limit", "2")
    assert isinstance(await line.ask(an_ask("d", user="two", organization="x")), WaitState)
    refused = await line.ask(an_ask("e", user="three", organization="x"))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.detail) == ("organization_limit", "3")
    assert isinstance(await line.ask(an_ask("f", user="four", organization="y")), WaitState)
    await line.release("a", "b")
    assert isinstance(await line.ask(an_ask("g", **one)), WaitState)


async def test_what_nobody_waits_for_and_what_is_free_of_budgets_is_no_answer_in_progress(pipe: Pipe) -> None:
    one = dict.fromkeys(Tier, Budget(concurrency=1, tokens_per_s=10))
    line = await Line(pipe, policy=Policy(users=one, organizations=one, burst_s=20)).begin(a_replica(slots=9))
    mine = {"user": "u", "organization": "x"}
    for n in range(3):
        assert isinstance(await line.ask(an_ask(f"vectors-{n}", budgeted=False, **mine)), Granted)
    assert isinstance(await line.ask(an_ask("title", lane=Lane.BATCH, **mine)), Granted)
    assert isinstance(await line.ask(an_ask("a", **mine)), Granted)
    assert await line.ask(an_ask("b", **mine)) == Refused("user_limit", 10.0, "1")
    assert await line.ask(an_ask("c", lane=Lane.BATCH, **mine)) == Refused("user_tokens", 10.0, "10"), (
        "its tokens count"
    )
    assert leaks(connect(settings.REDIS_URL)) == []
    await line.release("a", "title", *(f"vectors-{n}" for n in range(3)))
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_budget_of_tokens_lets_a_burst_through_and_says_when_to_come_back(pipe: Pipe) -> None:
    policy = Policy(users=dict.fromkeys(Tier, Budget(tokens_per_s=10)), burst_s=30)
    line = await Line(pipe, policy=policy).begin(a_replica(slots=9))
    replies = [await line.ask(an_ask(str(n), user="u")) for n in range(4)]
    assert replies[:3] == [Granted("r1")] * 3
    assert replies[3] == Refused("user_tokens", 10.0, "10")
    await line.release("0", used=20)
    assert await line.ask(an_ask("again", user="u")) == Refused("user_tokens", 2.0, "10"), "80 tokens were given back"
    line.now += 2_000
    assert isinstance(await line.ask(an_ask("later", user="u")), Granted)
    assert isinstance(await line.ask(an_ask("other", user="v")), Granted)


async def test_who_asks_twice_has_one_place(pipe: Pipe) -> None:
    line = await Line(pipe).begin(a_replica(slots=1))
    assert [await line.ask(an_ask("1")) for _ in range(3)] == [Granted("r1")] * 3
    assert await line.ask(an_ask("2")) == WaitState(1, None)
    assert await line.ask(an_ask("2")) == WaitState(1, None)
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_who_takes_a_run_over_takes_its_place_and_the_dead_cannot_take_it_back(pipe: Pipe) -> None:
    dead, heir = await Line(pipe, "dead").begin(a_replica(slots=1)), await Line(pipe, "heir").begin()
    assert await dead.ask(an_ask("1")) == Granted("r1")
    assert await heir.ask(an_ask("1", accepted=True)) == Granted("r1"), "not behind its own former place"
    assert not await dead.verbs.release(dead.now, "1")
    await dead.verbs.hold(dead.now, an_ask("1"), asked=dead.now, granted=dead.now, replica="r1")
    assert connect(settings.REDIS_URL).hget("adm:t:1", "owner") == "heir"
    await heir.release("1")
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_who_takes_a_waiting_run_over_keeps_the_age_of_its_place(pipe: Pipe) -> None:
    dead, heir = await Line(pipe, "dead").begin(a_replica(slots=1)), await Line(pipe, "heir").begin()
    await heir.ask(an_ask("0"))
    await dead.ask(an_ask("1", user="one"))
    heir.now += 5_000
    await heir.ask(an_ask("2", user="one"))
    await heir.ask(an_ask("1", user="one", accepted=True))
    assert await heir.drain(["0"], grants=2) == ["1", "2"]


async def test_who_was_accepted_before_waits_but_is_not_refused(pipe: Pipe) -> None:
    policy = Policy(max_waiting=1, users=dict.fromkeys(Tier, Budget(concurrency=1)))
    line = await Line(pipe, policy=policy).begin(a_replica(slots=1, kv=1_000))
    await line.ask(an_ask("1", user="u"))
    await line.ask(an_ask("2", user="v"))
    assert isinstance(await line.ask(an_ask("3", user="u")), Refused)
    assert await line.ask(an_ask("3", user="u", accepted=True)) == WaitState(2, None)
    never = await line.ask(an_ask("4", prompt_tokens=2_000, accepted=True))
    assert isinstance(never, Refused)
    assert never.code == "too_large"
    await line.verbs.set_replicas(line.now, "m", [])
    assert await line.ask(an_ask("5", accepted=True)) == NoneReady()
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_an_owner_that_was_never_heard_must_beat_first(pipe: Pipe) -> None:
    await Line(pipe).begin(a_replica())
    with pytest.raises(Stranger):
        await Line(pipe, "another").ask(an_ask("1"))


async def test_the_dead_owners_places_go_to_those_who_wait(pipe: Pipe) -> None:
    alive, dead = await Line(pipe, "alive").begin(a_replica(slots=2)), await Line(pipe, "dead").begin()
    for n in "ab":
        assert isinstance(await dead.ask(an_ask(n)), Granted)
    await dead.ask(an_ask("c"))
    await alive.ask(an_ask("d"))
    alive.now += 9_000
    assert (await alive.beat()).reaped == 0
    alive.now += 2_000
    assert (await alive.beat()).reaped == 3
    assert await alive.news() == ["d"]
    assert leaks(connect(settings.REDIS_URL)) == []
    assert not connect(settings.REDIS_URL).exists("adm:feed:dead")
    dead.now = alive.now
    assert not (await dead.beat()).known, "it must say again what it holds"


async def test_a_place_ends_at_its_deadline_though_its_owner_lives(pipe: Pipe) -> None:
    line = await Line(pipe, policy=Policy(reservation_s=100)).begin(a_replica(slots=1))
    await line.ask(an_ask("1"))
    await line.ask(an_ask("2"))
    line.now += 50_000
    assert (await line.beat()).reaped == 0
    line.now += 51_000
    assert (await line.beat()).reaped == 1
    assert await line.news() == ["2"]
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_build_that_does_not_free_what_it_reaps_is_noticed(pipe: Pipe) -> None:
    """The checker of this file on a seeded bug."""
    alive, dead = await Line(pipe, "alive").begin(a_replica(slots=2)), await Line(pipe, "dead").begin()
    await dead.ask(an_ask("a"))
    sound = alive.verbs.scripts["beat"].source
    broken = sound.replace("    drop(t, nil, now)\n    touched", "    erase_ticket(t)\n    touched")
    assert broken != sound
    alive.verbs.scripts["beat"] = Script(broken)
    alive.now += 11_000
    assert (await alive.beat()).reaped == 1
    assert leaks(connect(settings.REDIS_URL)) == [
        "replicas: adm:m:m:r:r1 kv_used is 100 and should be 0",
        "replicas: adm:m:m:r:r1 used is 1 and should be 0",
    ]


async def test_nothing_leaks_whatever_happens_in_whatever_order(pipe: Pipe) -> None:
    dice = random.Random(7)
    policy = Policy(max_waiting=6, users=dict.fromkeys(Tier, Budget(concurrency=4)))
    lines = [await Line(pipe, f"owner{n}", policy).begin() for n in range(3)]
    replicas = [a_replica(f"r{n}", slots=3, kv=2_000) for n in range(4)]
    valkey, live = connect(settings.REDIS_URL), dict[str, Line]()
    for turn in range(600):
        line = dice.choice(lines)
        line.now = 1_000_000 + turn * 100
        match dice.randrange(8):
            case 0 | 1 | 2 | 3:
                ask = an_ask(
                    f"t{dice.randrange(60)}",
                    lane=dice.choice(list(Lane)),
                    tier=dice.choice(list(Tier)),
                    user=f"u{dice.randrange(8)}",
                    prompt_tokens=dice.randrange(1_500),
                    prefer=dice.choice(["", "r1", "gone"]),
                    avoid=dice.choice([(), ("r0", "r2")]),
                    prefixes=dice.choice([(), ("1111", "2222"), ("2222",)]),
                    accepted=dice.random() < 0.2,
                )
                if not isinstance(await line.ask(ask), Refused | NoneReady):
                    live[ask.ticket] = line
                else:
                    live.pop(ask.ticket, None)
            case 4 | 5 | 6 if live:
                ticket = dice.choice(list(live))
                await live.pop(ticket).verbs.release(line.now, ticket, dice.choice([None, 10]))
            case _:
                await line.verbs.set_replicas(line.now, "m", dice.sample(replicas, dice.randrange(5)))
        if turn % 20 == 0:
            for each in lines:
                each.now = line.now
                await each.beat()
            assert leaks(valkey) == [], turn
    for ticket, line in live.items():
        await line.verbs.release(line.now, ticket)
    assert leaks(valkey) == []
    assert list(valkey.scan_iter("adm:t:*")) == []


def test_no_name_of_the_policy_can_become_code() -> None:
    assert _lua({"a-b": [1, 2.5, "c"]}) == "{['a-b']={1,2.5,'c'}}"
    for text in ("it's", "a\\b", "a\nb"):
        with pytest.raises(ValueError, match="not a name"):
            _lua(text)
