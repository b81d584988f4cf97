"""What the HTTP engine sends, to which kinds of servers."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.engines.http import Timeouts
from inference.engines.openai_http import OpenAIEngine
from inference.engines.script import Script, expected_text
from inference.prober import probe
from inference.protocol import (
    ChatMessage,
    EngineRejected,
    EngineUnavailable,
    Resume,
    Usage,
)
from tests.contracts.asking import DONE, ONE, ask, engine_for, info_of, read
from tests.contracts.engine_subjects import engine_to
from tests.contracts.raw_server import raw_server, stream, token


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    server = await serve(Options(slots=64, default=Script(n=40, itl_ms=1)))
    yield server
    await server.close()


# ---------------------------------------------------------------- what is sent


async def test_a_plain_server_gets_nothing_but_the_standard() -> None:
    async with raw_server(stream(ONE, token("", "stop"), DONE)) as server, engine_for(server.url) as engine:
        request = ask(temperature=0.5, stop=("x",), seed=3, cache_salt="s", priority=5, extra={"logit_bias": {"5": 1}})
        await read(engine, request)
    assert server.body() == {
        "model": "fake",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "max_tokens": 100_000,
        "temperature": 0.5,
        "stop": ["x"],
        "seed": 3,
        "logit_bias": {"5": 1},
    }
    assert b"X-Request-Id: req-1\r\n" in server.requests[0]


async def test_extras_cannot_replace_what_we_decide() -> None:
    extra = {"stream": False, "model": "other", "messages": [], "max_tokens": 1, "n": 1}
    async with raw_server(stream(ONE, token("", "stop"), DONE)) as server, engine_for(server.url) as engine:
        await read(engine, ask(extra=extra))
    assert {k: server.body()[k] for k in ("stream", "model", "max_tokens", "n")} == {
        "stream": True,
        "model": "fake",
        "max_tokens": 100_000,
        "n": 1,
    }


async def test_vllm_gets_its_additions_and_a_continuation_its_ids() -> None:
    capabilities = frozenset({"token_ids", "cache_salt", "usage", "continue", "priority"})
    resume = Resume((1, 2, 3), (50, 51), "said")
    answer = stream({"choices": [{"text": " more", "token_ids": [52], "finish_reason": "stop"}]}, DONE)
    async with raw_server(answer) as server, engine_for(server.url, capabilities=capabilities) as engine:
        extra = {"tools": [{}], "response_format": {"type": "text"}}
        request = ask(cache_salt="s", priority=5, resume=resume, extra=extra)
        assert await read(engine, request) == (" more", None)
    assert b"POST /v1/completions " in server.requests[0]
    assert server.body() == {
        "model": "fake",
        "prompt": [1, 2, 3, 50, 51],
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
        "max_tokens": 100_000 - 2,
        "cache_salt": "s",
        "priority": 5,
        "response_format": {"type": "text"},
    }


async def test_a_server_that_cannot_continue_says_so() -> None:
    async with engine_for("http://127.0.0.1:9") as engine:
        _, caught = await read(engine, ask(resume=Resume((), (), "half a sent")))
    assert isinstance(caught, EngineRejected)
    assert caught.status == 501


async def test_usage_with_cached_tokens_and_prompt_ids() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    first = {"prompt_token_ids": [5, 6], **token("")}
    answer = stream(first, ONE, {**token("", "stop"), "usage": usage}, DONE)
    async with raw_server(answer) as server, engine_for(server.url) as engine:
        deltas = [delta async for delta in engine.generate(ask())]
    assert deltas[0].prompt_token_ids == (5, 6)
    assert deltas[-1].usage == Usage(9, 1, 4)


# ---------------------------------------------------------------- kinds of servers


async def test_a_generic_server_is_used_without_additions() -> None:
    server = await serve(Options(manner="generic", default=Script(n=10)))
    engine = await engine_to(server)
    assert engine.capabilities == frozenset()
    assert await read(engine, ask("seed:g")) == (expected_text(10, "g"), None)
    assert await engine.count_tokens((ChatMessage("user", "x" * 300),)) >= 100
    await engine.close()
    await server.close()


async def test_the_key_comes_from_the_named_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    server = await serve(Options(api_key="let-me-in"))
    monkeypatch.setenv("TEST_REPLICA_KEY", "let-me-in")
    async with engine_for(server.url, api_key_env="TEST_REPLICA_KEY") as engine:
        assert (await engine.health()).ok
        assert (await read(engine, ask()))[1] is None
    async with engine_for(server.url) as engine:
        assert "key" in (await engine.health()).detail
        assert isinstance((await read(engine, ask()))[1], EngineUnavailable)
    await server.close()


async def test_a_server_with_one_model_is_asked_for_that_one() -> None:
    server = await serve(Options(models=("org/Real-Name",)))
    info = info_of(f"{server.url}/v1?slots=3", slots=3)
    engine = OpenAIEngine(info)
    seen = await probe(engine, info)
    assert (seen.served_model, seen.context_length, seen.slots) == ("org/Real-Name", 131_072, 3)
    assert seen.kv_tokens == 1024 * 64 * 32, "64 blocks for each of the slots it has by itself"
    await engine.close()
    await server.close()


async def test_an_unhealthy_server_is_noticed_and_found_well_again(server: FakeServer) -> None:
    engine = await engine_to(server)
    server.replica.control({"healthy": False})
    assert not (await engine.health()).ok
    server.replica.control({"healthy": True})
    assert (await engine.health()).ok
    await engine.close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """(certificate, key) for 127.0.0.1, signed by itself."""
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=30)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    return certificate, key


async def test_tls_with_a_certificate_that_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    answer = stream(ONE, token(" it", "stop"), DONE)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(reply, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with engine_for(url) as engine:
        _, caught = await read(engine, ask())
        assert isinstance(caught, EngineUnavailable)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with engine_for(url, Timeouts()) as engine:
        assert await read(engine, ask()) == ("kept it", None)
    listener.close()
