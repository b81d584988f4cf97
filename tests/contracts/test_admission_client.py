"""What a process sees of the shared admission: waiting, giving up, other processes, and a Valkey that forgets."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import pytest
import redis
from django.conf import settings

from inference.admission import Admission, Budget, Grant, Policy, Tier
from inference.admission.stats import estimate_error
from inference.protocol import NoReplica, Overloaded, ReplicaInfo
from inference.queueing import WaitState
from infra.local import processes
from infra.local.layout import REPOSITORY
from infra.local.ports import free_port
from infra.local.valkey import Valkey
from tests.factories.admission import a_replica, an_ask, connect, leaks
from tests.services import PASSWORD, Services

BRISK = Policy(heartbeat_s=0.05, owner_ttl_s=1.0, announce_s=0.05, settle_s=0.2)
Start = Callable[..., Awaitable[Admission]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        async def begin(*replicas: ReplicaInfo, owner: str = "me", policy: Policy = BRISK, url: str = "") -> Admission:
            made = Admission(url or settings.REDIS_URL, owner=owner, policy=policy)
            made.set_replicas(replicas)
            await made.start()
            stack.push_async_callback(made.stop)
            return made

        yield begin


async def until(condition: Callable[[], bool], patience_s: float = 10.0) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.01)


class Holder:
    """One run: asks, holds until told, leaves."""

    def __init__(self, admission: Admission, ticket: str, **changes: object) -> None:
        self.told: list[WaitState] = []
        self.grant: Grant | None = None
        self.over = asyncio.Event()
        self._ask = an_ask(ticket, **changes)
        self.task = asyncio.create_task(self._run(admission))

    async def _run(self, admission: Admission) -> None:
        async with admission.acquire(self._ask, self.told.append) as self.grant:
            await self.over.wait()

    async def leave(self) -> None:
        self.over.set()
        await self.task

    @property
    def waits(self) -> bool:
        return bool(self.told) and self.grant is None


async def hold(admission: Admission, *tickets: str) -> list[Holder]:
    """Each holds, or waits, before the next asks."""
    holders = []
    for ticket in tickets:
        holders.append(Holder(admission, ticket))
        await until(lambda: bool(holders[-1].grant or holders[-1].told or holders[-1].task.done()))
    return holders


async def clean(*admissions: Admission) -> list[str]:
    for admission in admissions:
        await asyncio.gather(*admission._releasing)
    return leaks(connect(settings.REDIS_URL))


async def test_a_place_is_held_until_it_is_left_and_those_who_wait_hear_how_the_line_moves(start: Start) -> None:
    me = await start(a_replica(slots=1))
    first, second, third = await hold(me, "1", "2", "3")
    assert first.grant is not None
    assert first.grant.replica == "r1"
    assert [second.waits, third.waits] == [True, True]
    await first.leave()
    await until(lambda: second.grant is not None)
    await until(lambda: third.told[-1].position == 1)
    assert [state.position for state in third.told] == [2, 1]
    await second.leave()
    await until(lambda: third.grant is not None)
    await third.leave()
    assert await clean(me) == []
    assert me.stats.granted == {"interactive:free": 3}


async def test_grants_go_to_the_process_that_waits(start: Start) -> None:
    one, two = await start(a_replica(slots=1), owner="one"), await start(a_replica(slots=1), owner="two")
    (holder,) = await hold(one, "1")
    (waiter,) = await hold(two, "2")
    await holder.leave()
    await until(lambda: waiter.grant is not None)
    await waiter.leave()
    assert await clean(one, two) == []


async def test_news_of_an_earlier_asking_with_the_same_ticket_gives_no_place(start: Start) -> None:
    me = await start(a_replica(slots=1))
    _, waiter = await hold(me, "1", "2")
    valkey = connect(settings.REDIS_URL)
    valkey.rpush("adm:feed:me", "2\nr1\n999")
    await until(lambda: not valkey.exists("adm:feed:me"))
    await asyncio.sleep(0.1)
    assert waiter.waits


async def test_who_gives_up_leaves_nothing_behind(start: Start) -> None:
    me = await start(a_replica(slots=1))
    first, second, third = await hold(me, "1", "2", "3")
    second.task.cancel()
    await first.leave()
    await until(lambda: third.grant is not None)
    first_try = Holder(me, "4")
    await asyncio.sleep(0)
    first_try.task.cancel()
    await third.leave()
    await asyncio.gather(second.task, first_try.task, return_exceptions=True)
    assert await clean(me) == []


async def test_a_refusal_says_why_and_offers_the_smaller_model(start: Start) -> None:
    policy = Policy(users=dict.fromkeys(Tier, Budget(concurrency=1)))
    me = await start(a_replica(), a_replica("s", model="small"), policy=policy)
    async with me.acquire(an_ask("1", user="u")):
        with pytest.raises(Overloaded, match="as many answers in progress as you may, 1") as refusal:
            async with me.acquire(an_ask("2", user="u", smaller="small")):
                pass
    assert (refusal.value.code, refusal.value.alternative) == ("user_limit", "small")
    with pytest.raises(Overloaded, match="it needs 9040 tokens and the largest replica holds 8000") as refusal:
        async with me.acquire(an_ask("3", model="small", prompt_tokens=9_000)):
            pass
    assert (refusal.value.code, refusal.value.alternative, refusal.value.retry_after_s) == ("too_large", "", 0.0)
    with pytest.raises(NoReplica):
        async with me.acquire(an_ask("4", model="another")):
            pass
    assert me.stats.refused == {("m", "user_limit"): 1, ("small", "too_large"): 1}
    assert await clean(me) == []


async def test_a_wait_has_an_end(start: Start) -> None:
    limits = {"interactive": 0.1, "long": 1.0, "batch": 1.0}
    me = await start(a_replica(slots=1), policy=Policy(max_wait_s=limits, ladder=(999, 999, 999, 999)))
    (holder,) = await hold(me, "1")
    with pytest.raises(Overloaded, match="took too long") as refusal:
        async with me.acquire(an_ask("2")):
            pass
    assert refusal.value.code == "wait_too_long"
    await holder.leave()
    assert await clean(me) == []


async def test_who_waits_for_a_model_that_went_away_is_told(start: Start) -> None:
    me = await start(a_replica(slots=1))
    holder, waiter = await hold(me, "1", "2")
    me.set_replicas([])
    with pytest.raises(NoReplica):
        await waiter.task
    await holder.leave()
    await until(lambda: not me._replicas_changed.is_set())
    assert await clean(me) == []


async def test_a_model_that_goes_away_in_the_middle_of_asking_leaves_nothing_behind(start: Start) -> None:
    me = await start(a_replica(slots=1))
    asking = Holder(me, "1")
    await asyncio.sleep(0)
    me.set_replicas([])
    with pytest.raises(NoReplica):
        await asking.task
    assert await clean(me) == []
    assert connect(settings.REDIS_URL).exists("adm:t:1") == 0


async def test_an_answer_that_failed_says_nothing_about_the_rate(start: Start) -> None:
    me = await start(a_replica(slots=2))
    with pytest.raises(RuntimeError):
        async with me.acquire(an_ask("1")):
            raise RuntimeError
    async with me.acquire(an_ask("2")):
        me.used("2", 0)
    assert await clean(me) == []
    assert (await me.capacity("m")).tokens_per_s is None
    async with me.acquire(an_ask("3")):
        pass
    assert await clean(me) == []
    assert (await me.capacity("m")).tokens_per_s is not None


async def test_tokens_that_were_not_used_are_given_back(start: Start) -> None:
    policy = Policy(users=dict.fromkeys(Tier, Budget(tokens_per_s=0.001)), burst_s=100_000)
    me = await start(a_replica(slots=9), policy=policy)
    async with me.acquire(an_ask("1", user="u")):
        with pytest.raises(Overloaded):
            async with me.acquire(an_ask("2", user="u")):
                pass
        me.used("1", 10)
    assert await clean(me) == []
    async with me.acquire(an_ask("3", user="u", prompt_tokens=40)):
        pass


async def test_an_emptied_valkey_hears_again_who_holds_and_who_waits_in_order(start: Start, services: Services) -> None:
    one, two = await start(a_replica(slots=1), owner="one"), await start(a_replica(slots=1), owner="two")
    (holder,) = await hold(one, "1")
    (second,) = await hold(two, "2")
    (third,) = await hold(one, "3")
    services.valkey.call("FLUSHALL")
    await until(lambda: one.stats.recovered == two.stats.recovered == 1)
    assert leaks(connect(settings.REDIS_URL)) == []
    assert (second.grant, third.grant) == (None, None)
    newcomer = Holder(one, "4")
    await until(lambda: newcomer.waits)
    for leaving, next_one in ((holder, second), (second, third), (third, newcomer)):
        await leaving.leave()
        await until(partial(lambda holder: holder.grant is not None, next_one))
    await newcomer.leave()
    assert await clean(one, two) == []


async def test_who_was_reaped_by_mistake_says_again_what_it_holds(start: Start) -> None:
    me = await start(a_replica(slots=1))
    holder, waiter = await hold(me, "1", "2")
    valkey = connect(settings.REDIS_URL)
    valkey.zadd("adm:owners", {"me": 0})
    another = await start(owner="another")
    await until(lambda: another.stats.reaped == 2 or me.stats.recovered == 1)
    await until(lambda: valkey.exists("adm:t:1") == 1 and valkey.exists("adm:t:2") == 1)
    assert leaks(valkey) == []
    await holder.leave()
    await until(lambda: waiter.grant is not None)
    await waiter.leave()
    assert await clean(me, another) == []


@pytest.fixture
def server(services: Services) -> Iterator[OwnServer]:
    """A Valkey that a test may kill."""
    made = OwnServer(services)
    yield made
    made.kill()


class OwnServer:
    def __init__(self, services: Services) -> None:
        self._services = services
        self.valkey = Valkey(services.folder / "admission", free_port(), PASSWORD, durable=False)
        self.start()

    def start(self) -> None:
        self._child = self._services.start_valkey(self.valkey)

    def kill(self) -> None:
        processes.end(self._child, signal.SIGKILL)


async def test_without_valkey_asking_fails_and_after_a_restart_all_goes_on(start: Start, server: OwnServer) -> None:
    me = await start(a_replica(slots=1), url=server.valkey.url(), policy=replace(BRISK, owner_ttl_s=60.0))
    holder, waiter = await hold(me, "1", "2")
    server.kill()
    with pytest.raises(redis.RedisError):
        async with me.acquire(an_ask("3")):
            pass
    server.start()
    await until(lambda: me.stats.recovered == 1)
    assert waiter.waits
    await holder.leave()
    await until(lambda: waiter.grant is not None)
    await waiter.leave()
    await until(lambda: not leaks(connect(server.valkey.url())) and not me._unsaid)


async def test_who_waits_is_told_when_valkey_stays_away(start: Start, server: OwnServer) -> None:
    me = await start(a_replica(slots=1), url=server.valkey.url())
    holder, waiter = await hold(me, "1", "2")
    server.kill()
    with pytest.raises(redis.RedisError):
        await waiter.task
    await holder.leave()


async def test_hundreds_of_runs_of_three_processes_never_share_a_slot(start: Start) -> None:
    replicas = [a_replica(f"r{n}", slots=2, kv=700) for n in range(3)]
    policy = replace(BRISK, ladder=(999, 999, 999, 999), users=dict.fromkeys(Tier, Budget()))
    admissions = [await start(*replicas, owner=f"owner{n}", policy=policy) for n in range(3)]
    dice = random.Random(3)
    slots, tokens, ended = Counter[str](), Counter[str](), list[str]()

    async def run(name: str, admission: Admission, need: int, patience_s: float, prefer: str) -> None:
        ask = an_ask(name, user=f"u{need % 7}", prompt_tokens=need, output_tokens=0, prefer=prefer)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s), admission.acquire(ask) as grant:
                slots[grant.replica] += 1
                tokens[grant.replica] += need
                assert slots[grant.replica] <= 2
                assert tokens[grant.replica] <= 700
                try:
                    await asyncio.sleep(dice.random() * 0.01)
                finally:
                    slots[grant.replica] -= 1
                    tokens[grant.replica] -= need
                ended.append(name)

    async def user(n: int) -> None:
        for m in range(8):
            patience_s = dice.choice([30.0, 30.0, 0.02])
            prefer = dice.choice(["", "r1"])
            await run(f"{n}-{m}", dice.choice(admissions), dice.randrange(1, 600), patience_s, prefer)

    await asyncio.gather(*(user(n) for n in range(40)))
    assert len(ended) > 160
    assert await clean(*admissions) == []
    assert (await admissions[0].capacity("m")).running == 0


CHILD = """
import asyncio, sys
from inference.admission import Admission
from tests.contracts.test_admission_client import BRISK
from tests.factories.admission import a_replica, an_ask

async def main():
    admission = Admission(sys.argv[1], owner="child", policy=BRISK)
    admission.set_replicas([a_replica(slots=2)])
    await admission.start()

    async def run(ticket):
        async with admission.acquire(an_ask(ticket)):
            print("holds", flush=True)
            await asyncio.sleep(60)

    await asyncio.gather(*(run(f"child-{n}") for n in range(3)))

asyncio.run(main())
"""


@pytest.fixture
def child(services: Services) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds two places and waits for a third."""
    environment = {**services.environment(), "PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", CHILD, settings.REDIS_URL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=REPOSITORY) as process:
        yield process
        process.kill()


async def test_what_a_killed_process_held_is_given_to_others(start: Start, child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    for _ in range(2):
        assert await asyncio.to_thread(child.stdout.readline) == b"holds\n"
    valkey = connect(settings.REDIS_URL)
    await until(lambda: valkey.exists("adm:t:child-2") == 1)
    me = await start(a_replica(slots=2))
    waiters = await hold(me, "1", "2")
    assert [waiter.waits for waiter in waiters] == [True, True]
    child.kill()
    await until(lambda: all(waiter.grant for waiter in waiters))
    # The feed may be faster than the answer of the beat that took the places back.
    await until(lambda: me.stats.reaped == 3)
    for waiter in waiters:
        await waiter.leave()
    assert await clean(me) == []


def test_the_error_of_an_estimate_is_relative_to_the_wait_and_to_no_less_than_a_second() -> None:
    assert estimate_error(12.0, 10.0) == pytest.approx(0.2)
    assert estimate_error(0.4, 0.1) == pytest.approx(0.3)
