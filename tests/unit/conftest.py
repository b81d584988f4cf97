"""Fixtures of the unit tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from inference.client import PoolLimits, ReplicaPool


@pytest.fixture
async def start() -> AsyncIterator[Callable[..., object]]:
    """Starts pools of scripted replicas and stops them after the test."""
    async with AsyncExitStack() as pools:

        async def begin(*urls: str, redis_url: str = "", **limits: float) -> ReplicaPool:
            pool = ReplicaPool(redis_url, replica_urls=urls, limits=PoolLimits(**{"refresh_s": 0.05, **limits}))  # type: ignore[arg-type]
            await pool.start()
            pools.push_async_callback(pool.stop)
            return pool

        yield begin
