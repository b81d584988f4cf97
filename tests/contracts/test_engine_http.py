"""The HTTP engine against servers that behave in all the ways seen in the wild."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from inference.engines.factory import read_timeouts
from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.engines.http import Timeouts
from inference.engines.script import Script, expected_text
from inference.protocol import (
    EngineFailed,
    EngineOverloaded,
    EngineRejected,
    EngineUnavailable,
    FailureKind,
    InferenceError,
    WrittenCall,
)
from tests.contracts.asking import DONE, ONE, QUICK, ask, engine_for, read
from tests.contracts.engine_subjects import engine_to
from tests.contracts.raw_server import head, raw_server, sse, stream, token, whole


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(500):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 5 s")


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    server = await serve(Options(slots=64, default=Script(n=40, itl_ms=1)))
    yield server
    await server.close()


# ---------------------------------------------------------------- answers that break

FAULT_KINDS = {
    "die": FailureKind.DIED,
    "garbage": FailureKind.GARBAGE,
    "ids": FailureKind.GARBAGE,
    "error": FailureKind.ERROR,
    "abort": FailureKind.ERROR,
    "truncate": FailureKind.GARBAGE,
    "hang": FailureKind.HUNG,
    "empty": FailureKind.HUNG,
}

OVERLOADED = {"error": {"message": "queue is full", "code": 503}}
BROKEN_BEFORE_THE_FIRST_TOKEN: dict[str, tuple[bytes, type[InferenceError]]] = {
    "busy, OpenAI's way": (whole(429, {"error": {"message": "slow down"}}, retry_after="7"), EngineOverloaded),
    "busy, vLLM's way": (whole(503, {"error": {"message": "queue is full"}}), EngineOverloaded),
    "being stopped": (
        whole(500, {"error": {"message": "cannot schedule new futures after shutdown"}}),
        EngineUnavailable,
    ),
    "behind a proxy that lost it": (whole(502, b"<html>Bad Gateway</html>"), EngineUnavailable),
    "wrong key": (whole(401, {"error": {"message": "no"}}), EngineUnavailable),
    "another model": (whole(404, {"detail": "no such model"}), EngineUnavailable),
    "elsewhere": (whole(302, b"", location="http://127.0.0.1:1/"), EngineUnavailable),
    "wrong request": (whole(400, {"error": {"message": "too long"}}), EngineRejected),
    "too large": (whole(413, b"too large"), EngineRejected),
    "not HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", EngineUnavailable),
    "nothing": (b"", EngineUnavailable),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Ty", EngineUnavailable),
    "only a head": (head(200, content_length="100"), EngineUnavailable),
    "busy after 200": (stream(OVERLOADED, DONE), EngineOverloaded),
    "wrong after 200": (stream({"error": {"message": "bad", "code": 400}}), EngineRejected),
    "dead after 200": (stream({"error": {"message": "EngineCore died", "code": 500}}), EngineUnavailable),
    "old error shape": (stream({"object": "error", "message": "bad", "code": 400}), EngineRejected),
    "an answer in one piece": (whole(200, {"choices": [{"message": {"content": "x"}}]}), EngineUnavailable),
    "a page": (whole(200, b"<html>Welcome</html>", content_type="text/html"), EngineUnavailable),
    "an empty stream": (stream(DONE), EngineUnavailable),
    "a stream of nothing": (stream(), EngineUnavailable),
}


@pytest.mark.parametrize(("answer", "error"), BROKEN_BEFORE_THE_FIRST_TOKEN.values(), ids=BROKEN_BEFORE_THE_FIRST_TOKEN)
async def test_what_fails_before_the_first_token(answer: bytes, error: type[InferenceError]) -> None:
    async with raw_server(answer) as server, engine_for(server.url) as engine:
        text, caught = await read(engine, ask())
    assert (text, type(caught)) == ("", error)


async def test_a_server_that_is_being_stopped_is_left_for_another(server: FakeServer) -> None:
    server.replica.control({"stopping": True})
    async with engine_for(server.url) as engine:
        _, caught = await read(engine, ask())
    assert isinstance(caught, EngineUnavailable)
    assert caught.kind is FailureKind.ERROR
    assert "after shutdown" in str(caught)


async def test_how_long_to_wait_is_taken_from_the_server() -> None:
    async with raw_server(whole(429, b"{}", retry_after="7")) as server, engine_for(server.url) as engine:
        _, caught = await read(engine, ask())
    assert isinstance(caught, EngineOverloaded)
    assert caught.retry_after_s == 7


BROKEN_AFTER_IT: dict[str, bytes] = {
    "garbage": stream(ONE, b'{"choices": [{"del'),
    "another shape": stream(ONE, {"choices": [{"delta": 7}]}),
    "not even an object": stream(ONE, [1, 2]),
    "an error": stream(ONE, {"error": {"message": "EngineCore died"}}),
    "an overload": stream(ONE, OVERLOADED),
    "an abort": stream(ONE, token("", "abort"), DONE),
    "a failed engine": stream(ONE, token("", "error"), DONE),
    "the end without a reason": stream(ONE, DONE),
    "the end without anything": stream(ONE),
    "a lost connection": head(200, transfer_encoding="chunked") + b"999\r\n" + sse(ONE),
    "broken chunks": head(200, transfer_encoding="chunked") + b"%x\r\n%sZZZ" % (len(sse(ONE)), sse(ONE)),
}


@pytest.mark.parametrize("answer", BROKEN_AFTER_IT.values(), ids=BROKEN_AFTER_IT)
async def test_what_breaks_off_keeps_its_text(answer: bytes) -> None:
    async with raw_server(answer) as server, engine_for(server.url) as engine:
        text, caught = await read(engine, ask())
    assert (text, type(caught)) == ("kept", EngineFailed)


END = (token(" it", "stop"), DONE)
USAGE_LAST = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
NULL_CONTENT = {"choices": [{"delta": {"content": None}, "finish_reason": None}]}
GOOD: dict[str, bytes] = {
    "a plain stream": stream(ONE, *END),
    "the role first, usage last": stream(token(""), ONE, token(" it"), token("", "stop"), USAGE_LAST, DONE),
    "no DONE": stream(ONE, token(" it", "stop")),
    "until the connection closes": head(200, content_type="text/event-stream") + sse(ONE, *END),
    "comments between": head(200) + b": hello\n\n" + sse(ONE) + b": ping\n\n" + sse(*END),
    "CRLF": head(200) + sse(ONE, *END).replace(b"\n", b"\r\n"),
    "null content": stream(ONE, NULL_CONTENT, *END),
}


@pytest.mark.parametrize("answer", GOOD.values(), ids=GOOD)
@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_good_streams_in_pieces_of_any_size(answer: bytes, size: int) -> None:
    pieces = [answer[i : i + size] for i in range(0, len(answer), size)]
    async with raw_server(*pieces) as server, engine_for(server.url) as engine:
        assert await read(engine, ask()) == ("kept it", None)


@pytest.mark.parametrize("kind", FAULT_KINDS)
@pytest.mark.parametrize("at", [0, 1, 17])
async def test_scripted_faults(server: FakeServer, kind: str, at: int) -> None:
    server.replica.control({"fault": kind, "at": at})
    engine = await engine_to(server, timeouts=QUICK)
    text, caught = await read(engine, ask("seed:q"))
    assert text == expected_text(at, "q")
    assert isinstance(caught, EngineFailed if at else EngineUnavailable)
    assert caught.kind is FAULT_KINDS[kind]
    assert (await read(engine, ask("seed:q"))) == (expected_text(40, "q"), None)
    await engine.close()


@pytest.mark.parametrize("kind", ["die", "garbage", "hang", "empty"])
async def test_a_plain_server_that_breaks(server: FakeServer, kind: str) -> None:
    server.replica.control({"fault": kind, "at": 3})
    async with engine_for(server.url) as engine:
        text, caught = await read(engine, ask("seed:q"))
        assert (text, type(caught)) == (expected_text(3, "q"), EngineFailed)


async def test_all_answers_of_a_server_break_at_once_when_it_is_told(server: FakeServer) -> None:
    async with engine_for(server.url) as engine:
        answers = [
            asyncio.create_task(read(engine, ask(f"seed:a{i} n:5000 itl:5", request_id=f"a{i}"))) for i in range(3)
        ]
        await until(lambda: server.replica.tokens > 30)
        server.replica.control({"now": "hang"})
        assert {type(caught) for _, caught in await asyncio.gather(*answers)} == {EngineFailed}
        assert type((await read(engine, ask("seed:new")))[1]) is EngineUnavailable
        server.replica.control({"now": ""})
        assert (await read(engine, ask("seed:new")))[1] is None


# ---------------------------------------------------------------- how long is too long


async def test_an_answer_that_waits_behind_others_that_go_on_is_not_hung(server: FakeServer) -> None:
    """It may be in the engine's own line, or its prompt is long: more than the silence limit passes here."""
    async with engine_for(server.url) as engine:
        other = asyncio.create_task(read(engine, ask("seed:o n:400 itl:5", request_id="other")))
        assert (await read(engine, ask("seed:w n:3 ttft:1050")))[1] is None
        assert (await other)[1] is None


async def test_an_answer_that_never_begins_while_others_go_on_is_given_up(server: FakeServer) -> None:
    async with engine_for(server.url) as engine:
        other = asyncio.create_task(read(engine, ask("seed:o n:700 itl:5", request_id="other")))
        _, caught = await read(engine, ask("seed:w ttft:60000"))
        assert isinstance(caught, EngineUnavailable)
        assert caught.kind is FailureKind.HUNG
        assert not other.done()
        other.cancel()


async def test_a_long_prompt_gets_the_time_to_be_read(server: FakeServer) -> None:
    async with engine_for(server.url) as engine:
        assert (await read(engine, ask("x" * 1600 + " seed:w n:3 ttft:1500")))[1] is None
        assert (await read(engine, ask("seed:w n:3 ttft:1500")))[1] is not None


async def test_thinking_and_tool_calls_are_signs_of_life() -> None:
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]}
    call = {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0}]}, "finish_reason": None}]}
    pieces = [head(200) + sse(ONE), *[sse(thought), sse(call)] * 3, sse(*END)]
    async with raw_server(*pieces, pause_s=0.3) as server, engine_for(server.url) as engine:
        assert await read(engine, ask()) == ("kept it", None)


def calling(*pieces: object, finish: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(pieces)}, "finish_reason": finish}]}


async def test_calls_are_put_together_whatever_way_their_pieces_come() -> None:
    pieces = [
        calling({"index": 1, "id": "b", "function": {"name": "two", "arguments": None}}),
        calling({"index": 0, "id": "a", "type": "function", "function": {"name": "one"}}, {"index": 1, "function": {}}),
        calling({"index": 0, "function": {"arguments": '{"x":'}}, {"index": 1, "function": {"arguments": "{"}}),
        calling({"index": 0, "function": {"arguments": " 1}"}}, {"index": 1, "function": {"arguments": "}"}}),
        token("", "tool_calls"),
    ]
    assert await calls_of(*pieces) == [WrittenCall("a", "one", '{"x": 1}'), WrittenCall("b", "two", "{}")]


async def test_whole_calls_may_come_without_an_index() -> None:
    first, second = ({"id": name, "function": {"name": name, "arguments": "{}"}} for name in ("a", "b"))
    found = await calls_of(calling(first), calling(second, finish="tool_calls"))
    assert [call.name for call in found] == ["a", "b"]


async def calls_of(*pieces: object) -> list[WrittenCall]:
    async with raw_server(stream(*pieces, DONE)) as server, engine_for(server.url) as engine:
        answer = engine.generate(ask())
        deltas = [delta async for delta in answer]
        await answer.aclose()
    return list(deltas[-1].tool_calls)


@pytest.mark.parametrize(
    "piece",
    [7, "call", {"function": {"arguments": {"x": 1}}}, {"function": "now"}],
    ids=["a number", "a text", "arguments that are no text", "a name for a function"],
)
async def test_what_is_no_call_is_garbage(piece: object) -> None:
    async with raw_server(head(200) + sse(ONE, calling(piece), *END)) as server, engine_for(server.url) as engine:
        _, caught = await read(engine, ask())
    assert isinstance(caught, EngineFailed)
    assert caught.kind is FailureKind.GARBAGE


def test_limits_come_from_the_environment() -> None:
    limits = read_timeouts({"PARLEY_HANG_S": "3", "PARLEY_FIRST_TOKEN_S": "9", "PARLEY_PREFILL_RATE": "1000"})
    assert (limits.idle, limits.silence, limits.first_token, limits.prefill_rate) == (3, 3, 9, 1000)
    assert read_timeouts({}) == Timeouts()
    with pytest.raises(ValueError, match="PARLEY_HANG_S"):
        read_timeouts({"PARLEY_HANG_S": "0"})


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with raw_server(b"", keep=True) as server, engine_for(server.url) as engine:
        _, caught = await read(engine, ask())
    assert isinstance(caught, EngineUnavailable)
    assert "1 s" in str(caught)


async def test_nobody_listens() -> None:
    async with engine_for("http://127.0.0.1:9") as engine:
        _, caught = await read(engine, ask())
        assert isinstance(caught, EngineUnavailable)
        assert not (await engine.health()).ok


# ---------------------------------------------------------------- connections


async def test_connections_are_kept_and_reused(server: FakeServer) -> None:
    async with engine_for(server.url) as engine:
        for _ in range(5):
            assert (await read(engine, ask("seed:k")))[1] is None
        assert server.replica.connections == 1


async def test_a_kept_connection_that_the_server_closed_is_replaced(server: FakeServer) -> None:
    async with engine_for(server.url) as engine:
        await read(engine, ask("seed:k"))
        for connection in list(server.connections):
            connection.drop()
        assert await read(engine, ask("seed:k")) == (expected_text(40, "k"), None)


async def test_connections_are_bounded(server: FakeServer) -> None:
    async with engine_for(server.url) as engine:
        engine.http._max = 2
        streams = [engine.generate(ask(f"seed:b{i} n:500")) for i in range(2)]
        for one in streams:
            await anext(one)
        _, caught = await read(engine, ask())
        assert isinstance(caught, EngineUnavailable)
        for one in streams:
            await one.aclose()


async def test_a_reader_who_does_not_read_fills_no_memory(server: FakeServer) -> None:
    n = 60_000
    async with engine_for(server.url, Timeouts(idle=5)) as engine:
        answer = engine.generate(ask(f"seed:m n:{n} itl:0 burst:200"))
        text = (await anext(answer)).text
        before = 0
        for _ in range(100):
            await asyncio.sleep(0.05)
            if server.replica.tokens == before:
                break
            before = server.replica.tokens
        assert server.replica.tokens < n
        source: Any = answer._source
        assert sum(map(len, source._parts)) < 2_000_000
        text += "".join([delta.text async for delta in answer])
        assert text == expected_text(n, "m")


async def test_closing_the_stream_closes_the_socket_and_says_so(server: FakeServer) -> None:
    engine = await engine_to(server)
    answer = engine.generate(ask("seed:c n:5000 itl:5"))
    await anext(answer)
    await answer.aclose()
    await engine.close()
    stats = server.replica.stats()
    assert (stats["aborted"], stats["abort_posts"], stats["active"]) == (1, 1, 0)


async def test_cancelling_before_the_first_token_aborts_too(server: FakeServer) -> None:
    async with engine_for(server.url, Timeouts()) as engine:
        answer = engine.generate(ask("seed:c ttft:60000"))
        waiting = asyncio.ensure_future(anext(answer))
        await until(lambda: bool(server.replica.running))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await answer.aclose()
        await until(lambda: not server.replica.running)
        assert server.replica.stats()["aborted"] == 1
