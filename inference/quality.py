"""How often the answers of each model were good lately: counts in Valkey, a hash for each five minutes.

Responsible for: counting what one process saw, telling it, and the share over all processes. Leaves to the caller what
a good answer is, and to `routing` what follows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from redis import Redis
from redis.asyncio import Redis as AsyncRedis

QUALITY_KEY = "inference:quality"
STRETCH_S, STRETCHES = 300, 12
HALF_LIFE = 3.0
"""Stretches after which an answer counts half."""
ENOUGH = 50.0
"""Answers below which a share says too little; older ones count in part."""


@dataclass(slots=True)
class Answers:
    """Of one process, until they are told."""

    counts: Counter[str] = field(default_factory=Counter)

    def note(self, model: str, *, good: bool) -> None:
        self.counts[f"{'good' if good else 'bad'} {model}"] += 1

    async def publish(self, redis: AsyncRedis) -> None:
        """Add what was noted to everybody's. redis.RedisError: it is kept for the next time, and counted twice where
        only the reply was lost."""
        if not self.counts:
            return
        told = Counter(self.counts)
        key = _key(int(time.time()) // STRETCH_S)
        async with redis.pipeline(transaction=False) as pipe:
            for name, count in told.items():
                pipe.hincrby(key, name, count)
            pipe.expire(key, STRETCH_S * (STRETCHES + 1))
            await pipe.execute()
        self.counts -= told


def read_quality(redis: Redis) -> dict[str, float]:
    """The share of good answers of each model that gave enough in the last hour, newer ones counting more. In tenths,
    so that chance does not decide between models that are alike."""
    now = int(time.time()) // STRETCH_S
    with redis.pipeline(transaction=False) as pipe:
        for age in range(STRETCHES):
            pipe.hgetall(_key(now - age))
        stretches: list[Mapping[bytes, bytes]] = pipe.execute()
    good: dict[str, float] = {}
    all_of: dict[str, float] = {}
    for age, counts in enumerate(stretches):
        for name, count in counts.items():
            kind, _, model = name.decode().partition(" ")
            weighed = int(count) * 0.5 ** (age / HALF_LIFE)
            all_of[model] = all_of.get(model, 0.0) + weighed
            good[model] = good.get(model, 0.0) + weighed * (kind == "good")
    return {model: round(good[model] / total, 1) for model, total in all_of.items() if total >= ENOUGH}


def _key(stretch: int) -> str:
    return f"{QUALITY_KEY}:{stretch}"
