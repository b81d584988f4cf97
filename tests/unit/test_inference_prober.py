"""Replicas that someone else runs: looked at, warmed up, and only then used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from inference.engines.factory import make_engine
from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.engines.script import Script
from inference.prober import StaticReplicas, parse_replica_urls, static_record, try_out
from inference.protocol import EngineUnavailable, FailureKind, ReplicaInfo, ReplicaState
from tests.contracts.asking import DONE, engine_for
from tests.contracts.engine_subjects import engine_to
from tests.contracts.raw_server import raw_server, stream, token


@pytest.fixture
async def server() -> AsyncIterator[FakeServer]:
    server = await serve(Options(slots=4))
    yield server
    await server.close()


@pytest.fixture
async def replicas(server: FakeServer) -> AsyncIterator[StaticReplicas]:
    replicas = StaticReplicas(f"fake={server.url}", make_engine)
    yield replicas
    await replicas.close()


async def look(replicas: StaticReplicas) -> ReplicaInfo:
    await replicas.probe()
    (record,) = replicas.records()
    return record.replica


async def test_a_replica_answers_once_before_it_is_ready(server: FakeServer, replicas: StaticReplicas) -> None:
    assert (await look(replicas)).state is ReplicaState.READY
    assert server.replica.tokens == 4
    assert (await look(replicas)).state is ReplicaState.READY
    assert server.replica.tokens == 4, "one that is ready is not asked again"


async def test_one_that_cannot_answer_is_quarantined_until_it_can(server: FakeServer, replicas: StaticReplicas) -> None:
    server.replica.control({"fault": "garbage", "at": 0})
    seen = await look(replicas)
    assert seen.state is ReplicaState.QUARANTINED
    assert "warm-up" in seen.error
    seen = await look(replicas)
    assert (seen.state, seen.error) == (ReplicaState.READY, "")


async def test_one_that_comes_back_is_warmed_again(server: FakeServer, replicas: StaticReplicas) -> None:
    await look(replicas)
    server.replica.control({"healthy": False})
    assert (await look(replicas)).state is ReplicaState.GONE
    server.replica.control({"healthy": True})
    assert (await look(replicas)).state is ReplicaState.READY
    assert server.replica.tokens == 8


async def test_a_slow_warm_up_goes_on_while_others_are_looked_at() -> None:
    slow, quick = await serve(Options(default=Script(ttft_ms=2500))), await serve()
    replicas = StaticReplicas((f"slow={slow.url}", f"quick={quick.url}"), make_engine)
    async with asyncio.timeout(20):
        await replicas.probe()
        assert {r.card.id: r.replica.state.value for r in replicas.records()} == {"slow": "warming", "quick": "ready"}
        while any(r.replica.state is not ReplicaState.READY for r in replicas.records()):
            await replicas.probe()
    assert slow.replica.tokens == 4, "one warm-up, however often it was looked at"
    await replicas.close()
    await slow.close()
    await quick.close()


async def test_a_full_replica_is_well(server: FakeServer) -> None:
    engine = await engine_to(server)
    for status in (429, 503, 400):
        server.replica.control({"fault": "refuse", "at": status})
        await try_out(engine, "fake", within_s=5)
    await engine.close()


async def test_thinking_without_a_word_is_an_answer_and_an_empty_end_is_none() -> None:
    thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}, "finish_reason": None}]}
    async with raw_server(stream(thought, token("", "length"), DONE)) as server, engine_for(server.url) as engine:
        await try_out(engine, "fake", within_s=5)
    async with raw_server(stream(token("", "stop"), DONE)) as server, engine_for(server.url) as engine:
        with pytest.raises(EngineUnavailable, match="no token"):
            await try_out(engine, "fake", within_s=5)


async def test_a_replica_that_hangs_fails_its_try(server: FakeServer) -> None:
    engine = await engine_to(server)
    server.replica.control({"now": "hang"})
    with pytest.raises(EngineUnavailable) as caught:
        await try_out(engine, "fake", within_s=0.3)
    assert caught.value.kind is FailureKind.HUNG
    await engine.close()


async def test_tokenizers_are_told_apart_by_what_they_make_of_a_text(server: FakeServer) -> None:
    like, other, silent = [await serve(o) for o in (Options(), Options(shift=7), Options(manner="llm-d"))]
    urls = [f"fake={s.url}" for s in (server, like, other)] + [f"fake={silent.url}?kind=llm-d"]
    replicas = StaticReplicas(urls, make_engine)
    await replicas.probe()
    first, same, another, unknown = [record.replica.tokenizer_digest for record in replicas.records()]
    assert first == same != ""
    assert another not in ("", first)
    assert unknown == ""
    await other.close()
    await replicas.probe()
    assert [r.replica.tokenizer_digest for r in replicas.records()][2] == "", "who knows what will be there next"
    await replicas.close()
    for one in (like, silent):
        await one.close()


def test_a_url_may_name_the_weights() -> None:
    assert static_record("m", "http://h?weights=v2").replica.weights_digest == "v2"
    with pytest.raises(ValueError, match="at most 64"):
        parse_replica_urls(f"m=http://h?weights={'v' * 65}")
