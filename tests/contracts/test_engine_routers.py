"""What is particular to each router: its headers, its refusals, its health; and the real vllm-router."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import get_args

import pytest

from inference.engines.factory import make_engine
from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.engines.metrics import parse_metrics
from inference.engines.openai_http import OpenAIEngine
from inference.engines.routers import ROUTERS
from inference.manifest import RemoteReplica
from inference.prober import KINDS, parse_replica_urls, probe, static_record
from inference.protocol import EngineFailed, EngineOverloaded
from tests.contracts.asking import DONE, ONE, ask, read
from tests.contracts.engine_subjects import NEEDS_VLLM_ROUTER, Subject, routed, scripted_question
from tests.contracts.raw_server import raw_server, stream, token


def engine_of(kind: str, url: str) -> OpenAIEngine:
    engine = make_engine(static_record("fake", f"{url}?kind={kind}").replica)
    assert isinstance(engine, ROUTERS[kind])
    return engine


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        ("vllm-router", b"X-Session-ID: c0ffee\r\n"),
        ("llm-d", b"x-llm-d-inference-fairness-id: salt\r\n"),
        ("llm-d", b"x-gateway-inference-fairness-id: salt\r\n"),
        ("dynamo", b"X-Dynamo-Session-ID: c0ffee\r\n"),
        ("ray", b"X-Request-Id: req-1\r\n"),
    ],
)
async def test_the_headers_of_each(kind: str, header: bytes) -> None:
    async with raw_server(stream(ONE, token("", "stop"), DONE)) as server:
        engine = engine_of(kind, server.url)
        assert (await read(engine, ask(session="c0ffee", cache_salt="salt")))[1] is None
        await engine.close()
    assert header in server.requests[0]
    assert b"X-Request-Id: req-1\r\n" in server.requests[0]


def test_kinds_are_named_alike_everywhere() -> None:
    assert (
        {"openai", *ROUTERS} == set(KINDS) == set(get_args(get_args(RemoteReplica.model_fields["kind"].annotation)[0]))
    )
    with pytest.raises(ValueError, match="none of openai"):
        parse_replica_urls("m=http://h:1?kind=nginx")


@pytest.mark.parametrize("kind", ROUTERS)
async def test_lack_of_room_is_told_from_a_failure(kind: str) -> None:
    server = await serve(Options(slots=0, queue=0, manner=kind))
    engine = engine_of(kind, server.url)
    assert isinstance((await read(engine, ask()))[1], EngineOverloaded)
    await engine.close()
    await server.close()


@pytest.mark.parametrize("kind", ["vllm-router", "dynamo", "ray"])
async def test_a_router_without_workers_is_not_well(kind: str) -> None:
    server = await serve(Options(manner=kind))
    engine = engine_of(kind, server.url)
    for healthy in (True, False, True):
        server.replica.control({"healthy": healthy})
        assert (await engine.health()).ok is healthy
    await engine.close()
    await server.close()


# ---------------------------------------------------------------- metrics

OLD = b"""vllm:num_requests_running{model_name="m"} 2.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{model_name="m"} 100.0
vllm:gpu_prefix_cache_hits_total{model_name="m"} 40.0
"""
NEW = b"""vllm:num_requests_running{engine="0"} 1.0
vllm:num_requests_running{engine="1"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.5
vllm:kv_cache_usage_perc{engine="1"} 0.7
vllm:prefix_cache_queries_total{engine="0"} 200.0
vllm:prefix_cache_hits_total{engine="0"} 50.0
"""


@pytest.mark.parametrize(
    ("page", "version", "kv", "hits"),
    [
        (OLD, "0.8.5", 0.25, 0.4),
        (NEW, "0.32.0", 0.6, 0.25),
        (OLD + NEW, "0.8.5", 0.25, 0.4),
        (OLD + NEW, "0.32.0", 0.6, 0.25),
        (OLD + NEW, "", 0.6, 0.25),
        (OLD, "0.32.0", 0.25, 0.4),
        (NEW, "0.8.5", 0.6, 0.25),
    ],
)
def test_metrics_are_read_under_the_names_of_the_version(page: bytes, version: str, kv: float, hits: float) -> None:
    load = parse_metrics(page, slots=4, version=version)
    assert load.kv_used_ratio == pytest.approx(kv)
    assert load.prefix_hit_ratio == pytest.approx(hits)


# ---------------------------------------------------------------- the real vllm-router


def subject_of(engine: object) -> Subject:
    assert isinstance(engine, OpenAIEngine)
    return Subject(engine, "fake", scripted_question, scripted=True)


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(500):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 5 s")


def busy(servers: list[FakeServer]) -> FakeServer:
    (server,) = [s for s in servers if s.replica.running]
    return server


@NEEDS_VLLM_ROUTER
async def test_vllm_router_keeps_a_session_on_its_worker_and_passes_ends_on() -> None:
    async with routed() as (router, servers):
        engine = make_engine(router)
        subject = subject_of(engine)
        await probe(engine, router)
        before = [s.replica.tokens for s in servers]
        for n in range(6):
            await subject.ask(subject.request(subject.question(5, f"s{n}"), session="one"))
        grown = [s.replica.tokens - b for s, b in zip(servers, before, strict=True)]
        assert sorted(grown) == [0, 30], "six answers of one session"

        closed = engine.generate(subject.request("seed:c n:5000 itl:5"))
        await anext(closed)
        worker = busy(servers)
        await closed.aclose()
        await until(lambda: not worker.replica.running)

        dying = engine.generate(subject.request("seed:d n:5000 itl:5"))
        await anext(dying)
        await busy(servers).close()
        with pytest.raises(EngineFailed):
            _ = len([delta async for delta in dying])
        await dying.aclose()
        await engine.close()
