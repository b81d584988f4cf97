"""How often an actor may do something: token buckets in Valkey, one atomic script a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import redis
import structlog
from django.conf import settings

from apps.accounts.types import Actor
from apps.core.errors import RateLimited
from apps.core.valkey import valkey
from inference.pipe import Pipe, Script

log = structlog.get_logger(__name__)
Kind = Literal["run"]

# A bucket holds `capacity` tokens and refills evenly over a minute, by the server's own clock, so that web
# processes whose clocks differ agree. Returns {allowed, tokens left, ms until the next token}.
_TAKE: Final = Script("""
local capacity = tonumber(ARGV[1])
local cost = tonumber(ARGV[2])
local per_ms = capacity / 60000
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(bucket[1]) or capacity
local at = tonumber(bucket[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * per_ms)
local allowed = 0
if tokens >= cost then
  allowed = 1
  tokens = tokens - cost
end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', now)
redis.call('PEXPIRE', KEYS[1], 120000)
local wait = 0
if tokens < 1 then wait = math.ceil((1 - tokens) / per_ms) end
return {allowed, math.floor(tokens), wait}
""")


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a limit after a check; `reset_s` is the wait for the next unit when none is left."""

    limit: int
    remaining: int
    reset_s: float


def check_rate(actor: Actor, kind: Kind) -> Allowance:
    """Take one unit of the actor's allowance. Raises RateLimited with `retry_after_s` when none is left."""
    try:
        reply = valkey().eval(_TAKE.source, 1, *_bucket(actor, kind, cost=1))
    except redis.RedisError as error:
        reply = _unchecked(kind, error)
    return _judge(reply)


async def check_rate_on_loop(pipe: Pipe, actor: Actor, kind: Kind) -> Allowance:
    """The same, from an event loop."""
    return _judge(await _take(pipe, actor, kind, cost=1))


async def peek_rate_on_loop(pipe: Pipe, actor: Actor, kind: Kind) -> Allowance:
    """What is left of the actor's allowance, without taking any."""
    return _allowance(await _take(pipe, actor, kind, cost=0))


async def _take(pipe: Pipe, actor: Actor, kind: Kind, *, cost: int) -> list[int]:
    key, *arguments = _bucket(actor, kind, cost=cost)
    try:
        reply: list[int] = await pipe.run(_TAKE, *arguments, keys=[key])
    except redis.RedisError as error:
        return _unchecked(kind, error)
    return reply


def _bucket(actor: Actor, kind: Kind, *, cost: int) -> tuple[str, int, int]:
    return f"rate:{kind}:{actor.organization_id}:{actor.user_id}", settings.RUNS_PER_USER_PER_MINUTE, cost


def _unchecked(kind: Kind, error: redis.RedisError) -> list[int]:
    """Open, not closed: the limit protects the replicas, which refuse on their own when full, while refusing
    everybody because a cache restarts would be an outage of our own making."""
    log.warning("rate.unchecked", kind=kind, error=type(error).__name__)
    return [1, settings.RUNS_PER_USER_PER_MINUTE, 0]


def _judge(reply: list[int]) -> Allowance:
    allowance = _allowance(reply)
    if not reply[0]:
        raise RateLimited(
            f"You have started {allowance.limit} answers within a minute. Wait a moment, then send again.",
            retry_after_s=allowance.reset_s,
            limit=allowance.limit,
        )
    return allowance


def _allowance(reply: list[int]) -> Allowance:
    return Allowance(settings.RUNS_PER_USER_PER_MINUTE, reply[1], reply[2] / 1000)
