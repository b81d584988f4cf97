"""Several processes' pools over one admission: places are counted once, and nothing stops while Valkey is away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest
from django.conf import settings

from inference.client import Admission, PoolLimits, ReplicaPool, WaitState
from inference.protocol import EngineFailed
from infra.local.ports import free_port
from tests.factories.inference import ask

Start = Callable[..., Coroutine[Any, Any, ReplicaPool]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Pools as runners have them, stopped after the test."""
    async with AsyncExitStack() as pools:

        async def begin(name: str, *urls: str, valkey: str = "") -> ReplicaPool:
            admission = Admission(valkey or settings.REDIS_URL, owner=name)
            pool = ReplicaPool("", replica_urls=urls, limits=PoolLimits(refresh_s=0.05), admission=admission)
            await pool.start()
            pools.push_async_callback(pool.stop)
            return pool

        yield begin


async def test_two_processes_share_the_places_of_a_replica(start: Start) -> None:
    one, other = await start("one", "m=fake://a?slots=2"), await start("other", "m=fake://a?slots=2")
    told: list[WaitState] = []
    async with AsyncExitStack() as held:
        await held.enter_async_context(one.reserve(ask()))
        await held.enter_async_context(other.reserve(ask()))
        waiting = asyncio.create_task(_pass_through(other, told))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        assert told[0].position == 1
    assert await asyncio.wait_for(waiting, 5) == "m@a"


async def _pass_through(pool: ReplicaPool, told: list[WaitState]) -> str:
    async with pool.reserve(ask(), on_wait=told.append) as lease:
        assert lease.waited_s > 0.2
        return lease.replica.id


async def test_load_is_spread_over_replicas_by_all_together(start: Start) -> None:
    urls = ("m=fake://a?slots=4", "m=fake://b?slots=4")
    one, other = await start("one", *urls), await start("other", *urls)
    async with AsyncExitStack() as held:
        leases = [await held.enter_async_context(pool.reserve(ask())) for _ in range(4) for pool in (one, other)]
        assert sorted(lease.replica.id for lease in leases) == ["m@a"] * 4 + ["m@b"] * 4


async def test_a_replica_that_fails_here_is_left_out_here(start: Start) -> None:
    pool = await start("one", "m=fake://a?slots=4", "m=fake://b?slots=4")
    with pytest.raises(EngineFailed):
        await _die_on(pool, "m@a")
    async with AsyncExitStack() as held:
        leases = [await held.enter_async_context(pool.reserve(ask(prefer="m@a"))) for _ in range(3)]
        assert {lease.replica.id for lease in leases} == {"m@b"}


async def _die_on(pool: ReplicaPool, replica: str) -> None:
    async with pool.reserve(ask(prefer=replica)) as lease:
        assert lease.replica.id == replica
        raise EngineFailed("died")


async def test_without_valkey_each_process_has_its_own_line(start: Start) -> None:
    pool = await start("one", "m=fake://a?slots=1", valkey=f"redis://127.0.0.1:{free_port()}/0")
    async with pool.reserve(ask()):
        waiting = asyncio.create_task(_pass_through(pool, []))
        await asyncio.sleep(0.3)
        assert not waiting.done()
    assert await asyncio.wait_for(waiting, 5) == "m@a"
