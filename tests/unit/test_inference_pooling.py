"""Vectors and scores from replicas: in batches and in order, elsewhere after a failure, and never mistaken for chat."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings

from inference.admission import Admission, Lane
from inference.client import PoolLimits, ReplicaPool
from inference.engines.factory import make_engine
from inference.engines.fake_pooling import Fault, score_of, vector_of
from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.pooling import BATCH, Errand, Pooling
from inference.prober import StaticReplicas, parse_replica_urls
from inference.protocol import (
    EngineRejected,
    EngineUnavailable,
    FailureKind,
    NoReplica,
    Purpose,
    ReplicaState,
)
from inference.registry import POOLING, decode_record, encode_record, summarize
from inference.routing.candidates import candidates_of
from tests.factories.inference import ask
from tests.unit.pools import until

ERRAND = Errand(Lane.BATCH, "user", "organization", try_s=1, whole_s=5)
Start = Callable[..., Coroutine[Any, Any, ReplicaPool]]


@pytest.fixture
async def servers() -> AsyncIterator[Callable[..., Coroutine[Any, Any, FakeServer]]]:
    async with AsyncExitStack() as stack:

        async def begin(**options: Any) -> FakeServer:
            server = await serve(Options(**options))
            stack.push_async_callback(server.close)
            return server

        yield begin


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Pools of pooling models, stopped after the test."""
    async with AsyncExitStack() as pools:

        async def begin(*urls: str, admission: Admission | None = None) -> ReplicaPool:
            limits = PoolLimits(refresh_s=0.05)
            pool = ReplicaPool("", replica_urls=urls, limits=limits, purposes=POOLING, admission=admission)
            await pool.start()
            pools.push_async_callback(pool.stop)
            return pool

        yield begin


def embedder(server: FakeServer) -> str:
    return f"e={server.url}?purpose=embeddings&slots=2"


async def test_texts_go_in_batches_and_come_back_in_order(servers: Any, start: Start) -> None:
    server = await servers()
    pooling = Pooling(await start(embedder(server)))
    server.replica.pooling.asked.clear()
    texts = [f"zebra number {n}" for n in range(2 * BATCH + 2)]
    vectors = await pooling.embed("e", texts, ERRAND)
    assert server.replica.pooling.asked == [BATCH, BATCH, 2]
    assert vectors == [pytest.approx(vector_of(text, 384)) for text in texts]
    assert await pooling.embed("e", [], ERRAND) == []


async def test_passages_are_scored_by_the_model_for_it(servers: Any, start: Start) -> None:
    pooling = Pooling(await start(f"r={(await servers()).url}?purpose=rerank"))
    passages = ["fish", "a striped zebra", "zebra"]
    scores = await pooling.rerank("r", "striped zebra", passages, ERRAND)
    assert scores == [score_of("striped zebra", passage) for passage in passages] == [0.0, 1.0, 0.5]


async def test_pooling_models_are_offered_to_nobody_who_chats(servers: Any, start: Start) -> None:
    server = await servers()
    urls = (f"chat={server.url}", embedder(server))
    chat = ReplicaPool("", replica_urls=urls)
    await chat.start()
    try:
        assert [model.id for model in chat.models()] == ["chat"]
        assert chat.resolve("auto").id == "chat"
        with pytest.raises(NoReplica):
            chat.resolve("e")
        records = chat._static.records()
        assert {r.replica.state for r in records} == {ReplicaState.READY}
        assert [model.id for model in summarize(records)] == ["chat"]
        assert [candidate.id for candidate in candidates_of(records)] == ["chat"]
    finally:
        await chat.stop()
    pool = await start(*urls)
    assert [model.id for model in pool.models()] == ["e"]
    with pytest.raises(NoReplica):
        await Pooling(pool).embed("chat", ["zebra"], ERRAND)


async def test_the_registry_keeps_what_a_model_is_for(servers: Any, start: Start) -> None:
    pool = await start(embedder(await servers()))
    (record,) = pool._static.records()
    encoded = encode_record(record)
    assert decode_record(encoded) == record
    assert record.card.purpose is Purpose.EMBEDDINGS
    assert decode_record(encoded.replace(b'"embeddings"', b'"dreams"')) is None, (
        "a later version's, which we cannot use"
    )
    before = decode_record(encoded.replace(b',"purpose":"embeddings"', b""))
    assert before is not None
    assert before.card.purpose is Purpose.CHAT


@pytest.mark.parametrize("fault", ["nan", "wrong_count", "fail"])
async def test_after_a_failure_another_replica_is_asked(servers: Any, start: Start, fault: Fault) -> None:
    broken, well = await servers(), await servers()
    pool = await start(embedder(broken), embedder(well))
    broken.replica.pooling.fault = fault
    for _ in range(3):
        (vector,) = await Pooling(pool).embed("e", ["zebra"], ERRAND)
        assert vector == pytest.approx(vector_of("zebra", 384))
    assert len(broken.replica.pooling.asked) <= 3
    assert pool.failures.total() <= 2
    broken.replica.pooling.fault = ""
    await until(lambda: all(replica.breaker == "closed" for replica in pool.replicas()))


async def test_when_all_fail_the_last_error_is_told_and_then_nobody_is_kept_waiting(servers: Any, start: Start) -> None:
    server = await servers()
    pool = await start(embedder(server))
    server.replica.pooling.delay_s = 30
    with pytest.raises(EngineUnavailable) as caught:
        await Pooling(pool).embed("e", ["zebra"], replace(ERRAND, try_s=0.2))
    assert caught.value.kind is FailureKind.HUNG
    with pytest.raises(NoReplica):
        await Pooling(pool).embed("e", ["zebra"], ERRAND)


async def test_a_request_that_is_wrong_is_not_repeated(servers: Any, start: Start) -> None:
    both = [await servers(), await servers()]
    pool = await start(*map(embedder, both))
    for server in both:
        server.replica.pooling.fault = "refuse"
    with pytest.raises(EngineRejected):
        await Pooling(pool).embed("e", ["zebra"], ERRAND)
    assert {replica.breaker for replica in pool.replicas()} == {"closed"}


async def test_what_waits_too_long_for_a_place_is_given_up(servers: Any, start: Start) -> None:
    pool = await start(embedder(await servers()))
    async with AsyncExitStack() as held:
        for _ in range(2):
            await held.enter_async_context(pool.reserve(ask("e")))
        with pytest.raises(EngineUnavailable, match="not done within"):
            await Pooling(pool).embed("e", ["zebra"], replace(ERRAND, whole_s=0.2))


async def test_places_are_asked_of_the_shared_admission_in_their_lane(servers: Any, start: Start) -> None:
    admission = Admission(settings.REDIS_URL, owner="one")
    pool = await start(embedder(await servers(context=512)), admission=admission)
    text = "a passage that is longer than the model reads " * 200
    await Pooling(pool).embed("e", [text, text], ERRAND)
    await Pooling(pool).embed("e", ["a question"], replace(ERRAND, lane=Lane.INTERACTIVE))
    assert dict(admission.stats.granted) == {"batch:free": 1, "interactive:free": 1}


async def test_one_that_makes_no_vector_is_not_ready(servers: Any) -> None:
    server = await servers()
    server.replica.pooling.fault = "nan"
    replicas = StaticReplicas(embedder(server), make_engine)
    await replicas.probe()
    (seen,) = (record.replica for record in replicas.records())
    assert seen.state is ReplicaState.QUARANTINED
    assert "warm-up" in seen.error
    server.replica.pooling.fault = ""
    await replicas.probe()
    assert [record.replica.state for record in replicas.records()] == [ReplicaState.READY]
    assert server.replica.tokens == 0, "it was never asked for an answer"
    await replicas.close()


def test_an_engine_in_the_process_does_not_pool() -> None:
    with pytest.raises(ValueError, match="does not pool"):
        parse_replica_urls("e=fake://a?purpose=embeddings")
