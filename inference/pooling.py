"""Vectors and scores from the replicas of pooling models: the same registry, admission and breakers as for answers.

Responsible for: batches, a place for each, another replica after a failure, and the time all of it may take. Leaves to
`client` the places, to `engines.pooling` what is said, and to the caller what follows when nothing comes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from inference.admission import Ask, Lane, Policy, Tier
from inference.admission.policy import DEFAULT
from inference.breaker import spread
from inference.client import ReplicaPool
from inference.engines import pooling as engines
from inference.engines.pooling import Vector
from inference.protocol import (
    Engine,
    EngineOverloaded,
    EngineUnavailable,
    FailureKind,
    NoReplica,
    ReplicaState,
)
from inference.registry import POOLING
from inference.thread import PoolThread

__all__ = ["Errand", "Pooling", "PoolingThread", "Vector"]

BATCH = 64
TRIES = 3
_PAUSE_S = 0.1
_CHARS_PER_TOKEN = 4
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Errand:
    """For whom it is done, in which lane. `try_s`: how long one replica may take for one batch. `whole_s`: how long all
    of it may take, the wait for places included."""

    lane: Lane
    user: str
    organization: str
    try_s: float
    whole_s: float


class Pooling:
    """`pool` knows the pooling models. All methods raise NoReplica when none is ready or every one rests after
    failures, Overloaded when there is no place, EngineUnavailable when none answered in time or sense, and
    EngineRejected for what no replica would take."""

    def __init__(self, pool: ReplicaPool) -> None:
        self._pool = pool

    async def embed(self, model: str, texts: Sequence[str], errand: Errand) -> list[Vector]:
        """A vector of length 1 for each text, in their order."""
        vectors: list[Vector] = []
        async with _in_time(model, errand):
            for batch in _batches(texts):
                call = partial(engines.embed, texts=batch, within_s=errand.try_s)
                vectors += await self._send(self._ask(model, batch, errand), call)
        return vectors

    async def rerank(self, model: str, query: str, passages: Sequence[str], errand: Errand) -> list[float]:
        """How well each passage answers the query, by the model's own scale, in their order."""
        scores: list[float] = []
        async with _in_time(model, errand):
            for batch in _batches(passages):
                call = partial(engines.rerank, query=query, passages=batch, within_s=errand.try_s)
                scores += await self._send(self._ask(model, batch, errand), call)
        return scores

    def _ask(self, model: str, texts: Sequence[str], errand: Errand) -> Ask:
        """The tokens of a batch are its work, but it is read text by text: what a replica holds does not bound it.
        Budgets are of what models write, and a file is read whatever they say."""
        info = self._pool.resolve(model)
        sizes = (size for r in self._pool.replicas() if r.model == info.id for size in (r.context_length, r.kv_tokens))
        tokens = sum(map(len, texts)) // _CHARS_PER_TOKEN
        most = min((size for size in sizes if size), default=tokens)
        ticket = f"pool-{secrets.token_hex(8)}"
        need, who = min(tokens, most), (errand.user, errand.organization)
        return Ask(ticket, model, errand.lane, Tier.FREE, *who, need, 0, budgeted=False)

    async def _send(self, ask: Ask, call: Callable[[Engine], Awaitable[T]]) -> T:
        """The answer of the first replica that gives one."""
        if not self._is_served(ask.model):
            raise NoReplica(ask.model, eta_s=self._pool.resolve(ask.model).eta_s)
        while True:
            replica = ""
            try:
                async with self._pool.reserve(ask) as lease:
                    replica = lease.replica.id
                    return await call(lease.engine)
            except (EngineUnavailable, EngineOverloaded):
                ask = replace(ask, avoid=(*ask.avoid, replica), accepted=True)
                if len(ask.avoid) == TRIES or not self._is_served(ask.model):
                    raise
            await asyncio.sleep(spread(_PAUSE_S * 2 ** len(ask.avoid)))

    def _is_served(self, model: str) -> bool:
        """Whether a replica is ready that did not just fail: to wait for the others would keep somebody waiting."""
        mine = (r for r in self._pool.replicas() if r.model == model)
        return any(r.state is ReplicaState.READY and r.breaker == "closed" for r in mine)


@asynccontextmanager
async def _in_time(model: str, errand: Errand) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(errand.whole_s):
            yield
    except TimeoutError:
        raise EngineUnavailable(f"{model} was not done within {errand.whole_s:g} s", FailureKind.HUNG) from None


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    return (texts[at : at + BATCH] for at in range(0, len(texts), BATCH))


class PoolingThread(PoolThread):
    """`Pooling` for code without an event loop."""

    def __init__(self, redis_url: str, policy: Policy = DEFAULT) -> None:
        super().__init__(redis_url, name="pool", purposes=POOLING, policy=policy)

    def embed(self, model: str, texts: Sequence[str], errand: Errand) -> list[Vector]:
        """As `Pooling.embed`."""
        return self.call(lambda pool: Pooling(pool).embed(model, texts, errand))

    def rerank(self, model: str, query: str, passages: Sequence[str], errand: Errand) -> list[float]:
        """As `Pooling.rerank`."""
        return self.call(lambda pool: Pooling(pool).rerank(model, query, passages, errand))
