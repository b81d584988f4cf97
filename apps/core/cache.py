"""Django's cache on Valkey, tolerant of Valkey being away: then nothing is found and nothing is kept.

What stands on it (limits on sign-in attempts) is a second line of defence; an outage of the cache must not
become an outage of signing in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import redis
import structlog
from django.core.cache.backends.redis import RedisCache

log = structlog.get_logger(__name__)
T = TypeVar("T")


def _or(fallback: T, call: Callable[[], T]) -> T:
    try:
        return call()
    except redis.RedisError as error:
        log.warning("cache.away", error=type(error).__name__)
        return fallback


class TolerantRedisCache(RedisCache):
    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        return _or(default, lambda: super(TolerantRedisCache, self).get(key, default, version))

    def set(self, key: Any, value: Any, timeout: Any = 300, version: int | None = None) -> None:
        return _or(None, lambda: super(TolerantRedisCache, self).set(key, value, timeout, version))

    def add(self, key: Any, value: Any, timeout: Any = 300, version: int | None = None) -> bool:
        return _or(True, lambda: super(TolerantRedisCache, self).add(key, value, timeout, version))

    def delete(self, key: Any, version: int | None = None) -> bool:
        return _or(False, lambda: super(TolerantRedisCache, self).delete(key, version))
