"""A replica pool for code without an event loop: its own runs in a thread, begun when first needed.

Leaves to `pooling` and `writing` what is asked of the pool.
"""

from __future__ import annotations

import asyncio
import atexit
import secrets
import threading
from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

from inference.admission import Admission, Policy
from inference.client import ReplicaPool
from inference.protocol import Purpose

T = TypeVar("T")


class PoolThread:
    """It reads the registry alone: who publishes replicas checks them too. A process that forks must not have needed it
    before. `name`: of the thread, and of the owner of its places."""

    def __init__(self, redis_url: str, *, name: str, purposes: Collection[Purpose], policy: Policy) -> None:
        self._redis_url, self._name, self._purposes, self._policy = redis_url, name, purposes, policy
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread
        self._pool: ReplicaPool

    def call(self, work: Callable[[ReplicaPool], Coroutine[Any, Any, T]]) -> T:
        """The result of `work` with the pool, on the thread's loop; the caller waits. Raises what it raises."""
        loop = self._begun()
        return _result(work(self._pool), loop)

    def _begun(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
                self._pool = _result(self._new_pool(), loop)
                self._loop = loop
                atexit.register(self.close)
            return self._loop

    def close(self) -> None:
        """Places that are held are given back; what is asked afterwards begins anew."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is None:
                return
            atexit.unregister(self.close)
            _result(self._pool.stop(), loop)
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()

    async def _new_pool(self) -> ReplicaPool:
        owner = f"{self._name}-{secrets.token_hex(16)}"
        admission = Admission(self._redis_url, owner=owner, policy=self._policy)
        pool = ReplicaPool(self._redis_url, admission=admission, purposes=self._purposes)
        await pool.start()
        return pool


def _result(work: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()  # when the thread that waits was interrupted
