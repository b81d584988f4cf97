"""Data that must stay in a region: the places that a run may get, with the shared admission and without it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest
from django.conf import settings

from inference.client import Admission, PoolLimits, ReplicaPool, WaitState
from inference.protocol import ChatMessage, EngineUnavailable, NoReplica
from infra.local.ports import free_port
from tests.factories.inference import ask

EU, US = "m=fake://eu?slots=2&region=eu", "m=fake://us?slots=4&region=us"
Start = Callable[..., Coroutine[Any, Any, ReplicaPool]]


@pytest.fixture(params=["shared", "Valkey is away", "none"])
async def start(request: pytest.FixtureRequest) -> AsyncIterator[Start]:
    """Pools with a shared admission, with one that cannot be reached, and with none."""
    addresses = {"shared": settings.REDIS_URL, "Valkey is away": f"redis://127.0.0.1:{free_port()}/0"}
    async with AsyncExitStack() as pools:

        async def begin(*urls: str) -> ReplicaPool:
            url = addresses.get(request.param)
            admission = Admission(url, owner="me") if url else None
            pool = ReplicaPool("", replica_urls=urls, limits=PoolLimits(refresh_s=0.05), admission=admission)
            await pool.start()
            pools.push_async_callback(pool.stop)
            return pool

        yield begin


async def placed(
    pool: ReplicaPool, held: AsyncExitStack, *, region: str = "", prefer: str = "", avoid: Collection[str] = ()
) -> str:
    lease = await held.enter_async_context(pool.reserve(ask(region=region, prefer=prefer, avoid=avoid)))
    return lease.replica.id


async def test_what_is_bound_to_a_region_waits_there_though_there_is_room_elsewhere(start: Start) -> None:
    pool = await start(EU, US)
    told: list[WaitState] = []

    async def pass_through() -> str:
        async with pool.reserve(ask(region="eu"), on_wait=told.append) as lease:
            return lease.replica.id

    async with AsyncExitStack() as held:
        assert [await placed(pool, held, region="eu") for _ in range(2)] == ["m@eu", "m@eu"]
        waiting = asyncio.create_task(pass_through())
        await asyncio.sleep(0.3)
        assert (waiting.done(), told[0].position) == (False, 1)
        assert await placed(pool, held) == "m@us"
    assert await asyncio.wait_for(waiting, 5) == "m@eu"


async def test_no_preference_leads_out_of_the_region(start: Start) -> None:
    pool = await start(EU, US)
    async with AsyncExitStack() as held:
        assert await placed(pool, held, region="eu", prefer="m@us") == "m@eu"
        assert await placed(pool, held, region="eu", avoid=["m@eu"]) == "m@eu"


async def test_a_replica_that_broke_is_not_made_up_for_by_another_region(start: Start) -> None:
    pool = await start(EU, US)
    with pytest.raises(EngineUnavailable):
        async with pool.reserve(ask(region="eu")):
            raise EngineUnavailable("died")
    places = []
    for _ in range(3):
        async with pool.reserve(ask(region="eu")) as lease:
            places.append(lease.replica.id)
    assert places == ["m@eu"] * 3


async def test_a_region_without_replicas_has_none(start: Start) -> None:
    pool = await start(US)
    with pytest.raises(NoReplica):
        async with pool.reserve(ask(region="eu")):
            pass
    with pytest.raises(NoReplica):
        await pool.count_tokens("m", [ChatMessage("user", "hello")], "eu")
    assert await pool.count_tokens("m", [ChatMessage("user", "hello")], "us") > 0


async def test_what_may_go_anywhere_goes_where_there_is_room(start: Start) -> None:
    pool = await start(EU, US)
    async with AsyncExitStack() as held:
        places = [await placed(pool, held) for _ in range(6)]
    assert sorted(places) == ["m@eu"] * 2 + ["m@us"] * 4


async def test_a_warm_replica_is_preferred_across_regions_too(start: Start) -> None:
    pool = await start(EU, US)
    async with AsyncExitStack() as held:
        assert [await placed(pool, held, prefer="m@us") for _ in range(2)] == ["m@us"] * 2
        assert await placed(pool, held, prefer="m@us", avoid=["m@us"]) == "m@eu"
