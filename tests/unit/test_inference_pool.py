"""Choosing a replica, waiting for one, and leaving failing ones alone."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis as SyncRedis
from redis.asyncio import Redis

from inference.client import AUTO, WaitState
from inference.engines.fake import FakeEngine
from inference.engines.fake_server import serve
from inference.protocol import (
    ChatMessage,
    EngineOverloaded,
    ModelState,
    NoReplica,
    Overloaded,
    ReplicaInfo,
    ReplicaState,
)
from inference.registry import ModelCard, Record, publish_records, stamp
from tests.factories.inference import ask
from tests.services import Services
from tests.unit.pools import Start, hold, settle


async def test_the_least_loaded_replica_is_chosen(start: Start) -> None:
    pool = await start("m=fake://a?slots=1", "m=fake://b?slots=3")
    async with AsyncExitStack() as stack:
        chosen = [(await hold(pool, stack)).replica.id for _ in range(4)]
        assert sorted(chosen) == ["m@a", "m@b", "m@b", "m@b"]
        capacity = pool.capacity("m")
        assert (capacity.slots, capacity.running) == (4, 4)
    assert pool.capacity("m").running == 0


async def test_a_preferred_replica_wins_unless_it_is_much_busier(start: Start) -> None:
    pool = await start("m=fake://a?slots=4", "m=fake://b?slots=4")
    async with AsyncExitStack() as stack:
        chosen = [(await hold(pool, stack, prefer="m@b")).replica.id for _ in range(4)]
        assert chosen == ["m@b", "m@b", "m@b", "m@a"]


async def test_a_replica_to_avoid_is_used_only_when_there_is_no_other(start: Start) -> None:
    pool = await start("m=fake://a?slots=9", "m=fake://b?slots=9")
    async with AsyncExitStack() as stack:
        assert {(await hold(pool, stack, avoid=["m@a"])).replica.id for _ in range(5)} == {"m@b"}
        assert (await hold(pool, stack, avoid=["m@a", "m@b"])).replica.id in ("m@a", "m@b")


async def test_those_who_wait_are_served_in_order_and_told_their_position(start: Start) -> None:
    pool = await start("m=fake://a?slots=1")
    told: dict[int, list[WaitState]] = {0: [], 1: [], 2: []}
    served: list[int] = []

    async def wait(i: int) -> None:
        async with pool.reserve(ask(), on_wait=told[i].append) as lease:
            served.append(i)
            assert lease.waited_s > 0
            await asyncio.sleep(0.01)

    async with AsyncExitStack() as stack:
        await hold(pool, stack)
        waiting = [asyncio.create_task(wait(i)) for i in range(3)]
        await settle()
        assert pool.capacity("m").waiting == 3
        assert served == []
    await asyncio.gather(*waiting)
    assert served == [0, 1, 2]
    assert [[s.position for s in states] for states in told.values()] == [[1], [2, 1], [3, 2, 1]]


async def test_the_wait_is_estimated_from_measured_answers(start: Start) -> None:
    pool = await start("m=fake://a?slots=1")
    told: list[WaitState] = []
    for _ in range(2):
        async with pool.reserve(ask()):
            await asyncio.sleep(0.1)
    async with AsyncExitStack() as stack:
        await hold(pool, stack)
        async with asyncio.timeout(5):
            waiting = asyncio.create_task(hold(pool, stack, on_wait=told.append))
            await settle()
        waiting.cancel()
    assert told[0].estimated_wait_s == pytest.approx(0.1, rel=0.5)


async def test_a_full_line_refuses_at_once_and_says_how_long(start: Start) -> None:
    pool = await start("m=fake://a?slots=1", max_waiting=2)
    async with AsyncExitStack() as stack:
        await hold(pool, stack)
        waiting = [asyncio.create_task(hold(pool, stack)) for _ in range(2)]
        await settle()
        with pytest.raises(Overloaded) as caught:
            await hold(pool, stack)
        assert caught.value.retry_after_s >= 1
        assert "2 requests" in caught.value.reason
        for task in waiting:
            task.cancel()


async def test_waiting_ends(start: Start) -> None:
    pool = await start("m=fake://a?slots=1", max_wait_s=0.05)
    async with AsyncExitStack() as stack:
        await hold(pool, stack)
        with pytest.raises(Overloaded, match="too long"):
            await hold(pool, stack)
        assert pool.capacity("m").waiting == 0


async def test_no_slot_leaks_however_waiting_ends(start: Start) -> None:
    pool = await start("m=fake://a?slots=2", "m=fake://b?slots=1", max_wait_s=0.03)
    chance = random.Random(3)
    most = 0

    async def user() -> None:
        nonlocal most
        try:
            async with pool.reserve(ask()) as lease:
                most = max(most, pool.capacity("m").running)
                await asyncio.sleep(chance.random() * 0.004)
                if chance.random() < 0.1:
                    raise EngineOverloaded(0.001)
                lease.report(None)
        except (Overloaded, EngineOverloaded):
            return

    tasks = []
    for _ in range(400):
        tasks.append(asyncio.create_task(user()))
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
        await asyncio.sleep(chance.random() * 0.002)
    await asyncio.gather(*tasks, return_exceptions=True)
    capacity = pool.capacity("m")
    assert (capacity.running, capacity.waiting) == (0, 0)
    assert most == 3


async def test_a_model_nobody_serves_and_one_that_is_away(start: Start) -> None:
    pool = await start()
    with pytest.raises(NoReplica) as caught:
        async with pool.reserve(ask(AUTO)):
            pass
    assert caught.value.known
    server = await serve()
    pool = await start(f"fake={server.url}")
    assert pool.resolve(AUTO).id == "fake"
    with pytest.raises(NoReplica) as caught:
        pool.resolve("other")
    assert not caught.value.known
    await server.close()
    await pool._static.probe()
    await pool.refresh()
    assert pool.resolve("fake").state is ModelState.UNAVAILABLE
    with pytest.raises(NoReplica):
        async with pool.reserve(ask("fake")):
            pass


async def test_those_who_wait_are_told_when_the_last_replica_goes(start: Start, services: Services) -> None:
    redis = Redis.from_url(services.environment()["REDIS_URL"])
    await publish_records(redis, [record("m-1", slots=1)])
    pool = await start(redis_url=services.environment()["REDIS_URL"])
    async with AsyncExitStack() as stack:
        await hold(pool, stack)
        waiting = asyncio.create_task(hold(pool, stack))
        await settle()
        await publish_records(redis, [record("m-1", state=ReplicaState.STARTING, eta_s=9.0)])
        with pytest.raises(NoReplica) as caught:
            await waiting
        assert caught.value.eta_s is not None
    await redis.aclose()


def record(name: str, **facts: object) -> Record:
    values: dict[str, object] = {"slots": 4, "state": ReplicaState.READY, "url": f"fake://{name}", **facts}
    info = ReplicaInfo(name, "m", kind="fake", **values)  # type: ignore[arg-type]
    return Record(stamp(info), ModelCard("m", "Model M", default=True), "test")


async def test_the_registry_is_followed(start: Start, services: Services) -> None:
    url = services.environment()["REDIS_URL"]
    redis = Redis.from_url(url)
    await publish_records(redis, [record("m-1"), record("m-2", state=ReplicaState.STARTING)])
    pool = await start(redis_url=url)
    assert {r.id: r.state.value for r in pool.replicas()} == {"m-1": "ready", "m-2": "starting"}
    async with AsyncExitStack() as stack:
        lease = await hold(pool, stack)
        engine = lease.engine
        assert isinstance(engine, FakeEngine)
        await publish_records(redis, [record("m-1", state=ReplicaState.DRAINING), record("m-2")])
        await pool.refresh()
        assert (await hold(pool, stack)).replica.id == "m-2"
        await publish_records(redis, [record("m-1", url="fake://elsewhere"), record("m-2", state=ReplicaState.GONE)])
        await pool.refresh()
        moved = await hold(pool, stack)
        assert moved.engine is not engine
        assert moved.replica.url == "fake://elsewhere"
    await redis.aclose()


async def test_a_registry_that_lost_everything_is_not_believed_at_once(start: Start, services: Services) -> None:
    url = services.environment()["REDIS_URL"]
    redis = Redis.from_url(url)
    await publish_records(redis, [record("m-1")])
    pool = await start(redis_url=url)
    await redis.flushall()
    await pool.refresh()
    async with AsyncExitStack() as stack:
        assert (await hold(pool, stack)).replica.id == "m-1"
    await redis.aclose()


async def test_a_registry_that_is_away_leaves_what_was_known(start: Start) -> None:
    pool = await start("m=fake://a", redis_url="redis://127.0.0.1:9/0")
    async with AsyncExitStack() as stack:
        assert (await hold(pool, stack)).replica.id == "m@a"


async def test_load_that_others_make_counts(start: Start, services: Services) -> None:
    url = services.environment()["REDIS_URL"]
    redis = Redis.from_url(url)
    await publish_records(redis, [record("m-1", running=4), record("m-2", running=1, waiting=2)])
    pool = await start(redis_url=url)
    async with AsyncExitStack() as stack:
        assert (await hold(pool, stack)).replica.id == "m-2"
        assert pool.capacity("m").running == 8
    await redis.aclose()


async def test_urls_are_published_for_those_who_only_read(start: Start, services: Services) -> None:
    from inference.client import read_models, read_records
    from inference.registry import capacity_of

    url = services.environment()["REDIS_URL"]
    server = await serve()
    client = SyncRedis.from_url(url)
    channel: Any = client.pubsub()  # type: ignore[no-untyped-call]
    channel.subscribe("inference:changes")
    await start(f"fake={server.url}?slots=5", redis_url=url)
    notes = [channel.get_message(timeout=1)["data"] for _ in range(2)]
    assert notes == [1, b'{"model":"fake"}']
    channel.close()
    models = await asyncio.to_thread(read_models, client)
    assert [(m.id, m.state.value, m.context_length) for m in models] == [("fake", "ready", 131_072)]
    assert capacity_of(await asyncio.to_thread(read_records, client), "fake").slots == 5
    client.close()
    await server.close()


async def test_tokens_are_counted_by_the_models_own_engine(start: Start) -> None:
    pool = await start("m=fake://a")
    messages = (ChatMessage("user", "x" * 30),)
    assert await pool.count_tokens(AUTO, messages) == await FakeEngine().count_tokens(messages)
    with pytest.raises(NoReplica):
        await pool.count_tokens("other", messages)


def test_records_know_their_age() -> None:
    old = replace(record("m-1").replica, updated_at=1.0, expires_at=2.0)
    assert Record(old, ModelCard("m", "M")).at(3.0).replica.state is ReplicaState.GONE
