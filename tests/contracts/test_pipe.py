"""The pipelined connection to Valkey, against a real server and against ones that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis
from django.conf import settings

from inference import pipe as module
from inference.pipe import Pipe, Script
from infra.local.ports import free_port
from tests.services import Services


@pytest.fixture
async def pipe() -> AsyncIterator[Pipe]:
    made = Pipe(settings.REDIS_URL)
    yield made
    await made.close()


async def test_calls_in_flight_get_their_own_replies(pipe: Pipe) -> None:
    await asyncio.gather(*(pipe.call("SET", f"k{n}", n) for n in range(500)))
    assert await asyncio.gather(*(pipe.call("GET", f"k{n}") for n in range(500))) == [b"%d" % n for n in range(500)]


async def test_all_calls_go_over_one_connection(pipe: Pipe, services: Services) -> None:
    before = len((await pipe.call("CLIENT", "LIST")).splitlines())
    await asyncio.gather(*(pipe.call("PING") for _ in range(100)))
    assert len((await pipe.call("CLIENT", "LIST")).splitlines()) == before


async def test_a_refused_command_fails_alone(pipe: Pipe) -> None:
    await pipe.call("SET", "word", "x")
    results = await asyncio.gather(
        pipe.call("GET", "word"), pipe.call("INCR", "word"), pipe.call("GET", "word"), return_exceptions=True
    )
    assert results[0] == results[2] == b"x"
    assert isinstance(results[1], redis.ResponseError)


async def test_commands_sent_together_reply_together_or_raise(pipe: Pipe) -> None:
    assert await pipe.calls(("SET", "a", 1), ("INCR", "a"), ("GET", "a")) == [b"OK", 2, b"2"]
    with pytest.raises(redis.ResponseError):
        await pipe.calls(("LPUSH", "a", "x"), ("SADD", "a", "x"), ("SET", "after", "sent"))
    assert await pipe.call("GET", "after") == b"sent"


async def test_a_script_is_loaded_where_it_is_not_known(pipe: Pipe, services: Services) -> None:
    script = Script("return {KEYS[1], ARGV[1], 7}")
    assert await pipe.run(script, "x", keys=["k"]) == [b"k", b"x", 7]
    services.valkey.call("SCRIPT", "FLUSH")
    assert await pipe.run(script, "y", keys=["k"]) == [b"k", b"y", 7]
    with pytest.raises(redis.ResponseError, match="my words"):
        await pipe.run(Script("return redis.error_reply('my words')"))


async def test_a_cancelled_call_leaves_the_others_theirs(pipe: Pipe) -> None:
    slow = asyncio.create_task(pipe.call("BLPOP", "nothing", 0.2))
    await asyncio.sleep(0.05)
    behind = asyncio.create_task(pipe.call("ECHO", "behind"))
    await asyncio.sleep(0)
    slow.cancel()
    assert await behind == b"behind"
    assert slow.cancelled() or slow.cancelling()


async def test_a_lost_connection_fails_what_was_in_flight_and_is_made_again(pipe: Pipe, services: Services) -> None:
    waiting = [asyncio.create_task(pipe.call("BLPOP", "nothing", 5)), asyncio.create_task(pipe.call("PING"))]
    await asyncio.sleep(0.1)
    services.valkey.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(result, redis.ConnectionError) for result in results), results
    assert await pipe.call("PING") == b"PONG"


async def test_nobody_there_is_told_at_once_to_all_who_ask() -> None:
    nowhere = Pipe(f"redis://127.0.0.1:{free_port()}/0")
    results = await asyncio.gather(*(nowhere.call("PING") for _ in range(50)), return_exceptions=True)
    assert {type(result) for result in results} == {redis.ConnectionError}
    await nowhere.close()


async def test_a_server_that_says_nothing_is_away_after_the_patience() -> None:
    connections = 0

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    pipe = Pipe(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", patience_s=0.1)
    results = await asyncio.gather(*(pipe.call("PING") for _ in range(20)), return_exceptions=True)
    assert {type(result) for result in results} == {redis.TimeoutError}
    with pytest.raises(redis.TimeoutError):
        await pipe.call("PING")
    assert connections == 2, "one for all calls, and a new one after it was given up"
    await pipe.close()
    server.close()


async def test_a_slow_answer_within_the_patience_is_waited_for() -> None:
    pipe = Pipe(settings.REDIS_URL, patience_s=0.5)
    for _ in range(4):
        assert await pipe.call("BLPOP", "nothing", 0.3) is None
    await pipe.close()


async def test_a_wrong_password_is_said() -> None:
    before, _, after = settings.REDIS_URL.partition("@")
    scheme = before.partition("://")[0]
    pipe = Pipe(f"{scheme}://:wrong@{after or before.partition('://')[2]}")
    with pytest.raises(redis.ResponseError):
        await pipe.call("PING")
    await pipe.close()


async def test_unanswered_calls_are_bounded(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    await pipe.call("PING")
    monkeypatch.setattr(module, "MAX_CALLS", 10)
    results = await asyncio.gather(*(pipe.call("PING") for _ in range(12)), return_exceptions=True)
    assert results.count(b"PONG") == 10
    assert sum(isinstance(result, redis.ConnectionError) for result in results) == 2
    assert await pipe.call("PING") == b"PONG"
