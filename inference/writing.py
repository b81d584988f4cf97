"""Short texts that nobody follows while they are written: titles and summaries, in the batch lane.

Responsible for: one text of one replica, several at a time, and the time they may take. Leaves to `client` the places,
and to the caller what follows when nothing comes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from inference.admission import Ask, Lane, Policy, Tier
from inference.admission.policy import DEFAULT
from inference.client import ReplicaPool
from inference.protocol import ChatMessage, EngineUnavailable, FailureKind, GenerationRequest, InferenceError, NoReplica
from inference.registry import CHAT
from inference.thread import PoolThread

__all__ = ["Commission", "Text", "WriterThread", "write", "write_all"]

PRIORITY = 10
"""Behind answers, where a replica orders what it does."""


@dataclass(frozen=True, slots=True)
class Commission:
    """For whom texts are written, and by which model. `within_s`: how long one may take, the wait for a place
    included."""

    model: str
    tier: Tier
    user: str
    organization: str
    region: str = ""
    cache_salt: str | None = None
    within_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Text:
    """One text to be written. Tokens are estimates of what it takes of a replica's memory."""

    messages: tuple[ChatMessage, ...]
    prompt_tokens: int
    max_tokens: int


async def write(pool: ReplicaPool, commission: Commission, text: Text, *, ticket: str = "") -> str:
    """The whole text. Raises NoReplica at once where none is ready, Overloaded, the engine's errors, and
    EngineUnavailable when it took too long. `ticket`: what the admission knows it by, where it should be told from
    others."""
    if not pool.resolve(commission.model, commission.region).replicas_ready:
        raise NoReplica(commission.model)
    ticket = ticket or f"text-{secrets.token_hex(8)}"
    ask = Ask(
        ticket=ticket,
        model=commission.model,
        lane=Lane.BATCH,
        tier=commission.tier,
        user=commission.user,
        organization=commission.organization,
        prompt_tokens=text.prompt_tokens,
        output_tokens=text.max_tokens,
        region=commission.region,
    )
    request = GenerationRequest(
        request_id=ticket,
        model=commission.model,
        messages=text.messages,
        max_tokens=text.max_tokens,
        temperature=0.0,
        cache_salt=commission.cache_salt,
        priority=PRIORITY,
    )
    try:
        async with asyncio.timeout(commission.within_s):
            return await _written(pool, ask, request)
    except TimeoutError:
        message = f"{commission.model} was not done within {commission.within_s:g} s"
        raise EngineUnavailable(message, FailureKind.HUNG) from None


async def _written(pool: ReplicaPool, ask: Ask, request: GenerationRequest) -> str:
    async with pool.reserve(ask) as lease:
        stream = lease.engine.generate(request)
        try:
            return "".join([delta.text async for delta in stream])
        finally:
            await stream.aclose()


async def write_all(pool: ReplicaPool, commission: Commission, texts: Sequence[Text]) -> list[str | InferenceError]:
    """All of them at the same time; for each its text, or why there is none."""

    async def one(text: Text) -> str | InferenceError:
        try:
            return await write(pool, commission, text)
        except InferenceError as error:
            return error

    return list(await asyncio.gather(*(one(text) for text in texts)))


class WriterThread(PoolThread):
    """`write_all` for code without an event loop."""

    def __init__(self, redis_url: str, policy: Policy = DEFAULT) -> None:
        super().__init__(redis_url, name="write", purposes=CHAT, policy=policy)

    def write_all(self, commission: Commission, texts: Sequence[Text]) -> list[str | InferenceError]:
        """As `write_all` of this module."""
        return self.call(lambda pool: write_all(pool, commission, texts))
