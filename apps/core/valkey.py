"""Connections to Valkey, one pool a process and kind. Keys are named in the modules that own them."""

from __future__ import annotations

from functools import lru_cache

import redis
import redis.asyncio
from django.conf import settings


@lru_cache(maxsize=1)
def valkey() -> redis.Redis:
    """A shared synchronous client (bytes in, bytes out) with bounded waits."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=2.0, socket_connect_timeout=1.0, max_connections=64, health_check_interval=0
    )


def new_async_valkey(*, max_connections: int = 8) -> redis.asyncio.Redis:
    """A new asynchronous client; the caller owns and closes it (it belongs to one event loop).

    Whoever finds all connections in use waits for one: a burst of readers or of runs is no outage.
    """
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        settings.REDIS_URL, socket_timeout=10.0, socket_connect_timeout=1.0, max_connections=max_connections, timeout=10
    )
    return redis.asyncio.Redis.from_pool(pool)
