"""Replicas that fail answers, as the pool sees them: left alone, probed, told of, and used again."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import pytest
from redis import Redis as SyncRedis

from inference import replicas
from inference.client import ReplicaPool
from inference.engines.fake import FakeEngine
from inference.engines.script import Fault
from inference.protocol import EngineFailed, FailureKind, ReplicaState
from inference.verdicts import read_verdicts
from tests.factories.inference import ask
from tests.services import Services
from tests.unit.pools import Start, fail_on, hold, until


async def test_a_failing_replica_rests_and_comes_back_after_a_probe(start: Start) -> None:
    pool = await start("m=fake://a?slots=9", "m=fake://b?slots=9")
    await fail_on(pool, "m@a")
    async with AsyncExitStack() as stack:
        assert {(await hold(pool, stack, prefer="m@a")).replica.id for _ in range(5)} == {"m@b"}
    assert {r.id: r.breaker for r in pool.replicas()} == {"m@a": "open", "m@b": "closed"}
    probed = engine_of(pool, "m@a")
    await until(lambda: breakers(pool)["m@a"] == "closed")
    assert [r.max_tokens for r in probed.requests] == [4], "no one's answer was risked"
    async with AsyncExitStack() as stack:
        assert (await hold(pool, stack, prefer="m@a")).replica.id == "m@a"


async def test_a_replica_that_fails_its_probes_is_quarantined_until_it_passes(start: Start) -> None:
    pool = await start("m=fake://a?slots=9", "m=fake://b?slots=9")
    await fail_on(pool, "m@a")
    member = pool._members["m@a"]
    engine_of(pool, "m@a").faults.extend([Fault("garbage", 0)] * 4)
    for failures in range(1, 5):
        assert (member.breaker.failures, member.state) == (failures, ReplicaState.READY)
        member.breaker.until = 0.0
        await until(lambda failures=failures: member.breaker.failures > failures)  # type: ignore[misc]
    assert {r.id: r.state.value for r in pool.replicas()} == {"m@a": "quarantined", "m@b": "ready"}
    assert (pool.resolve("m").replicas_ready, pool.capacity("m").slots) == (1, 9)
    member.breaker.until = 0.0
    await until(lambda: member.is_ready)
    assert pool.resolve("m").replicas_ready == 2


async def test_those_who_wait_get_a_place_when_the_probe_passes(start: Start) -> None:
    pool = await start("m=fake://a?slots=9")
    await fail_on(pool, "m@a")
    async with asyncio.timeout(10), AsyncExitStack() as stack:
        assert (await hold(pool, stack)).waited_s > 0


async def test_where_all_replicas_are_out_none_rests(start: Start) -> None:
    pool = await start("m=fake://a?slots=9", "m=fake://b?slots=9")
    await fail_on(pool, "m@a")
    rested = pool._members["m@a"].breaker
    rested.until = time.monotonic() + 3600
    for _ in range(10):
        await asyncio.sleep(0.02)
    assert not rested.is_closed, "the other one answers meanwhile"
    await fail_on(pool, "m@b")
    await until(lambda: rested.is_closed)


async def test_breakers_are_told_and_taken_back(start: Start, services: Services) -> None:
    url = services.environment()["REDIS_URL"]
    redis = SyncRedis.from_url(url)
    pool = await start("m=fake://a?slots=9", "m=fake://b?slots=9", redis_url=url)
    assert read_verdicts(redis) == ()
    await fail_on(pool, "m@a")
    await pool.refresh()
    (verdict,) = read_verdicts(redis)
    assert (verdict.replica, verdict.breaker, verdict.state) == ("m@a", "open", "ready")
    assert pool.failures == {("m", FailureKind.DIED): 1}
    redis.hset("inference:breakers", "dead m@a", b'{"breaker": "open", "state": "ready", "at": 1.0}')
    redis.hset("inference:breakers", "odd m@a", b"[]")
    await until(lambda: breakers(pool)["m@a"] == "closed")
    await pool.refresh()
    assert read_verdicts(redis) == ()
    redis.close()


async def test_all_that_break_with_one_death_count_once(start: Start) -> None:
    pool = await start("m=fake://a?slots=9")
    (member,) = pool._members.values()
    async with AsyncExitStack() as stack:
        leases = [await hold(pool, stack) for _ in range(5)]
        for lease in leases[:3]:
            lease.report(EngineFailed("died"))
        assert member.breaker.failures == 1
        member.breaker.half_open()
        member.breaker.settle(ok=True, now=time.monotonic())
        for lease in leases[3:]:
            lease.report(EngineFailed("found out late"))
    assert (member.breaker.is_closed, member.breaker.failures) == (True, 1)
    async with pool.reserve(ask()) as lease:
        lease.report(EngineFailed("by us", FailureKind.ABORTED))
    assert member.breaker.is_closed
    async with pool.reserve(ask()):
        pass
    assert member.breaker.failures == 0


async def test_an_operators_order_takes_a_replica_out_of_routing_and_back(
    start: Start, services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    url = services.environment()["REDIS_URL"]
    pool = await start("m=fake://a?slots=9", "m=fake://b?slots=9", redis_url=url)
    async with AsyncExitStack() as stack:
        held = await hold(pool, stack, prefer="m@a")
        assert replicas.main(["drain", "m@a"]) == 0
        await pool.refresh()
        assert {(await hold(pool, stack, prefer="m@a")).replica.id for _ in range(4)} == {"m@b"}
        assert held.replica.id == "m@a", "what runs there goes on"
    assert {r.id: r.state.value for r in pool.replicas()} == {"m@a": "draining", "m@b": "ready"}
    assert replicas.main(["quarantine", "m@a"]) == 0
    assert "m@a" + " " * 38 + "quarantined" in capsys.readouterr().out
    assert replicas.main(["resume", "m@a"]) == 0
    await pool.refresh()
    async with AsyncExitStack() as stack:
        assert (await hold(pool, stack, prefer="m@a")).replica.id == "m@a"
    assert replicas.main(["drain", "m@z"]) == 1


def engine_of(pool: ReplicaPool, replica: str) -> FakeEngine:
    engine = pool._members[replica].engine
    assert isinstance(engine, FakeEngine)
    return engine


def breakers(pool: ReplicaPool) -> dict[str, str]:
    return {r.id: r.breaker for r in pool.replicas()}
