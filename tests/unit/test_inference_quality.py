"""The share of good answers by model, over all processes and the last hour."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import redis
from django.conf import settings
from redis.asyncio import Redis

from apps.core.valkey import valkey
from inference.quality import ENOUGH, STRETCH_S, STRETCHES, Answers, _key, read_quality


@pytest.fixture
async def server() -> AsyncIterator[Redis]:
    made: Redis = Redis.from_url(settings.REDIS_URL)
    yield made
    await made.aclose()


def answers(model: str, *, good: int = 0, bad: int = 0) -> Answers:
    made = Answers()
    for kind in [True] * good + [False] * bad:
        made.note(model, good=kind)
    return made


def earlier(stretches: int, *, good: int = 0, bad: int = 0) -> None:
    """What was counted of a model so long ago."""
    key = _key(int(time.time()) // STRETCH_S - stretches)
    valkey().hset(key, mapping={"good m": good, "bad m": bad})


async def test_all_processes_count_together(server: Redis) -> None:
    await answers("m", good=30, bad=10).publish(server)
    assert read_quality(valkey()) == {}, "too few to say anything"
    await answers("m", good=30, bad=10).publish(server)
    await answers("a model", bad=60).publish(server)
    assert read_quality(valkey()) == {"m": 0.8, "a model": 0.0}
    (key,) = valkey().scan_iter("inference:quality:*")
    assert 0 < valkey().ttl(key) <= STRETCH_S * (STRETCHES + 1)


async def test_what_was_told_is_not_told_again_and_what_was_not_is_kept(server: Redis) -> None:
    made = answers("m", good=60)
    away: Redis = Redis.from_url("redis://127.0.0.1:9/0")
    with pytest.raises(redis.ConnectionError):
        await made.publish(away)
    await away.aclose()
    for _ in range(3):
        await made.publish(server)
    assert valkey().hgetall(_key(int(time.time()) // STRETCH_S)) == {b"good m": b"60"}


def test_newer_answers_count_more_and_old_ones_not_at_all() -> None:
    earlier(3, bad=120)
    earlier(0, good=60)
    assert read_quality(valkey()) == {"m": 0.5}, "half of 120 are left"
    earlier(3)
    earlier(STRETCHES, bad=100_000)
    assert read_quality(valkey()) == {"m": 1.0}
    earlier(0)
    earlier(6, bad=int(ENOUGH) * 4 - 1)
    assert read_quality(valkey()) == {}, "what was bad is tried again"


def test_chance_does_not_decide_between_models_that_are_alike() -> None:
    earlier(0, good=97, bad=3)
    assert read_quality(valkey()) == {"m": 1.0}
