"""What the breakers of all processes say of each replica: one hash in Valkey, a field a process and replica.

Responsible for: publishing those of one process while they are not closed, and reading everybody's for the
command line (`python -m inference.replicas`). Leaves the breakers to `breaker`. A process that died leaves its fields
behind; they count for a minute.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from inference.protocol import ReplicaInfo

VERDICTS_KEY = "inference:breakers"
_LASTING_S = 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """One process's breaker of one replica. `at`: Unix seconds of the report."""

    replica: str
    owner: str
    breaker: str
    state: str
    at: float


@dataclass(slots=True)
class Verdicts:
    """The reports of one process."""

    owner: str = field(default_factory=lambda: secrets.token_hex(4))
    _told: set[str] = field(default_factory=set)

    async def publish(self, redis: AsyncRedis, replicas: Iterable[ReplicaInfo]) -> None:
        """Tell of breakers that are not closed, and take back what was told of those that are now."""
        open_now = {r.id: r for r in replicas if r.breaker != "closed"}
        closed = self._told - open_now.keys()
        if not open_now and not closed:
            return
        async with redis.pipeline(transaction=False) as pipe:
            for id, replica in open_now.items():
                report = {"breaker": replica.breaker, "state": replica.state.value, "at": time.time()}
                pipe.hset(VERDICTS_KEY, self._field(id), orjson.dumps(report))
            if closed:
                pipe.hdel(VERDICTS_KEY, *map(self._field, closed))
            pipe.expire(VERDICTS_KEY, int(_LASTING_S))
            await pipe.execute()
        self._told = set(open_now)

    def _field(self, replica: str) -> str:
        return f"{self.owner} {replica}"


def read_verdicts(redis: Redis) -> tuple[Verdict, ...]:
    """Reports of the last minute, by replica and process. A replica that is not there is closed everywhere."""
    raw: Any = redis.hgetall(VERDICTS_KEY)
    found = [verdict for key, value in raw.items() if (verdict := _read(key, value)) is not None]
    fresh = [v for v in found if v.at > time.time() - _LASTING_S]
    return tuple(sorted(fresh, key=lambda v: (v.replica, v.owner)))


def _read(key: bytes, value: bytes) -> Verdict | None:
    """None for what another version wrote in another shape."""
    owner, _, replica = key.decode().partition(" ")
    try:
        said: Mapping[str, Any] = orjson.loads(value)
        return Verdict(replica, owner, str(said["breaker"]), str(said["state"]), float(said["at"]))
    except (ValueError, KeyError, TypeError):
        return None
