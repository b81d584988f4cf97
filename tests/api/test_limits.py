"""How often a person may start an answer, and what happens when Valkey is away."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
import redis

from apps.accounts.public import check_rate, check_rate_on_loop, peek_rate_on_loop
from apps.accounts.services import limits
from apps.accounts.types import Actor
from apps.core.errors import RateLimited
from apps.core.valkey import valkey
from inference.pipe import Pipe


def actor() -> Actor:
    return Actor(user_id=uuid4(), organization_id=uuid4())


def test_the_limit_is_exact_and_says_when_to_come_back(settings: Any) -> None:
    settings.RUNS_PER_USER_PER_MINUTE = 3
    someone = actor()
    assert [check_rate(someone, "run").remaining for _ in range(3)] == [2, 1, 0]

    with pytest.raises(RateLimited) as refused:
        check_rate(someone, "run")

    assert 0 < refused.value.extra["retry_after_s"] <= 20
    assert refused.value.status == 429
    assert check_rate(actor(), "run").remaining == 2, "another person has an allowance of their own"


async def test_an_event_loop_shares_the_limit_and_looking_takes_nothing(settings: Any) -> None:
    settings.RUNS_PER_USER_PER_MINUTE = 2
    someone, pipe = actor(), Pipe(settings.REDIS_URL)
    assert [(await peek_rate_on_loop(pipe, someone, "run")).remaining for _ in range(3)] == [2, 2, 2]
    assert check_rate(someone, "run").remaining == 1
    assert (await check_rate_on_loop(pipe, someone, "run")).remaining == 0
    with pytest.raises(RateLimited) as refused:
        await check_rate_on_loop(pipe, someone, "run")
    assert 0 < refused.value.extra["retry_after_s"] <= 30
    await pipe.close()


def test_the_allowance_comes_back_with_time(settings: Any) -> None:
    settings.RUNS_PER_USER_PER_MINUTE = 2
    someone = actor()
    check_rate(someone, "run")
    check_rate(someone, "run")
    key = f"rate:run:{someone.organization_id}:{someone.user_id}"
    stored = valkey().hget(key, "at")
    assert isinstance(stored, bytes)
    valkey().hset(key, "at", str(int(stored) - 30_000))

    assert check_rate(someone, "run").remaining == 0
    with pytest.raises(RateLimited):
        check_rate(someone, "run")


def test_a_bucket_does_not_outlive_its_use(settings: Any) -> None:
    someone = actor()
    check_rate(someone, "run")
    ttl = valkey().pttl(f"rate:run:{someone.organization_id}:{someone.user_id}")
    assert isinstance(ttl, int)
    assert 0 < ttl <= 120_000


def test_it_fails_open_when_valkey_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody_listens = redis.Redis(host="127.0.0.1", port=1, socket_connect_timeout=0.2)
    monkeypatch.setattr(limits, "valkey", lambda: nobody_listens)
    assert check_rate(actor(), "run").remaining > 0
