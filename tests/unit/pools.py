"""Pools of scripted replicas of one model `m`, and ways to hold and to break what they give."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack

from inference.client import Lease, OnWait, ReplicaPool
from inference.protocol import EngineFailed
from tests.factories.inference import ask

Start = Callable[..., "asyncio.Future[ReplicaPool]"]


async def hold(
    pool: ReplicaPool,
    stack: AsyncExitStack,
    *,
    prefer: str = "",
    avoid: Collection[str] = (),
    on_wait: OnWait | None = None,
) -> Lease:
    return await stack.enter_async_context(pool.reserve(ask(prefer=prefer, avoid=avoid), on_wait=on_wait))


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def fail_on(pool: ReplicaPool, replica: str) -> None:
    try:
        async with pool.reserve(ask(prefer=replica)) as lease:
            assert lease.replica.id == replica
            raise EngineFailed("died")
    except EngineFailed:
        return


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(1000):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 10 s")
