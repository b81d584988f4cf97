"""What Prometheus reads: who may, and that the figures are those of the rows, the registry and the runs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from django.db import connections
from django.test import Client
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from apps.conversations.metrics import MOST_VALUES, Kept, record_end, record_failover
from apps.conversations.runner.exporter import PoolCollector
from apps.conversations.runner.process import RunnerProcess
from apps.conversations.services.admission import admit
from apps.conversations.services.line import admission_policy
from apps.conversations.types import RunResult, RunState
from apps.core.errors import Overloaded
from inference.breaker import BreakerState
from inference.client import Admission, Ask, Lane, ReplicaPool
from infra.local.ports import free_port
from tests.factories.accounts import make_actor
from tests.factories.conversations import ask, make_conversation, serve_model
from tests.factories.inference import ask as ask_place
from tests.factories.inference import publish_replica, replica
from tests.factories.runner import claimed_run
from tests.services import Services

pytestmark = pytest.mark.django_db


def read(**headers: str) -> str:
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def test_without_a_token_only_this_machine_may_read(settings: Any) -> None:
    assert Client(REMOTE_ADDR="10.0.0.9").get("/metrics").status_code == 404
    assert Client().get("/metrics", headers={"x-forwarded-for": "10.0.0.9"}).status_code == 404
    assert Client().get("/metrics").status_code == 200
    assert Client().post("/metrics").status_code == 405
    settings.METRICS_TOKEN = "t" * 40
    assert Client().get("/metrics").status_code == 404
    for wrong in ("", "Bearer ", "Bearer nope", "t" * 40):
        assert Client().get("/metrics", headers={"authorization": wrong}).status_code == 404
    from_afar = Client(REMOTE_ADDR="10.0.0.9").get("/metrics", headers={"authorization": f"Bearer {'t' * 40}"})
    assert from_afar.status_code == 200


def test_replicas_and_the_line_are_told() -> None:
    serve_model(slots=3)
    actor = make_actor()
    ask(actor, make_conversation(actor))
    text = read()
    assert 'parley_replica_slots{model="fake"' in text
    assert any(line.startswith("parley_replica_state{") and 'state="ready"' in line for line in text.splitlines())
    assert 'parley_runs_active{lane="interactive",model="fake",state="queued",tier="free"} 1.0' in text
    assert "parley_valkey_up 1.0" in text
    assert "parley_postgres_up 1.0" in text


def test_the_line_of_the_admission_is_told(settings: Any) -> None:
    publish_replica("m", slots=1)
    one, two = ask_place("m"), ask_place("m", lane=Lane.BATCH)

    async def wait_in_line() -> str:
        admission = Admission(settings.REDIS_URL, owner="a", policy=admission_policy())
        await admission.start()
        admission.set_replicas([replica("m", slots=1)])
        async with admission.acquire(ask_place("m")):
            await asyncio.sleep(0.1)
        async with admission.acquire(one):
            waiting = asyncio.create_task(_hold(admission, two))
            await asyncio.sleep(0.2)
            text = await asyncio.to_thread(_read_there)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await admission.stop()
        return text

    text = asyncio.run(wait_in_line())
    assert 'parley_queue_runs{lane="batch",model="m",tier="free"} 1.0' in text
    assert 'parley_queue_tokens{lane="batch",model="m",tier="free"} 20.0' in text
    assert 'parley_pressure_level{model="m"} ' in text
    forecast = next(line for line in text.splitlines() if line.startswith('parley_queue_seconds{model="m"}'))
    assert 0 < float(forecast.split()[1]) < 20


def _read_there() -> str:
    try:
        return read()
    finally:
        connections.close_all()


async def _hold(admission: Admission, place: Ask) -> None:
    async with admission.acquire(place):
        pass


def test_an_emptied_valkey_shows_no_replicas(services: Services) -> None:
    publish_replica()
    services.valkey.call("FLUSHALL")
    assert "parley_replica_slots{" not in read()


def test_refusals_are_counted_by_reason(settings: Any) -> None:
    settings.RUN_QUEUE_PER_SLOT = 0
    actor = make_actor()
    ask(actor, make_conversation(actor))
    serve_model(slots=1)
    labels = {"model": "fake", "reason": "queue_full"}
    before = REGISTRY.get_sample_value("parley_rejections_total", labels) or 0
    with pytest.raises(Overloaded):
        admit(actor, "auto")
    assert REGISTRY.get_sample_value("parley_rejections_total", labels) == before + 1


def test_an_ended_run_is_counted_with_its_times_and_failovers() -> None:
    run = claimed_run(lane="batch", tier="plus")
    ended = RunResult(
        RunState.COMPLETED,
        "x" * 40,
        "stop",
        prompt_tokens=7,
        cached_tokens=3,
        completion_tokens=11,
        waited_ms=200,
        ttft_ms=500,
        notices=({"kind": "keyword_only"}, {"kind": "escalated", "from_model": "s", "to_model": "m", "why": "empty"}),
    )
    record_end(run, ended, 1.5, placed=replace(replica("m", region="eu"), version="0.9"))
    where = {"model": "m", "lane": "batch", "tier": "plus", "version": "0.9", "region": "eu"}
    value = REGISTRY.get_sample_value
    assert value("parley_runs_total", where | {"state": "completed"}) == 1
    assert [value("parley_tokens_total", where | {"kind": kind}) for kind in ("prompt", "cached", "completion")] == [
        7, 3, 11,
    ]  # fmt: skip
    assert value("parley_run_wait_seconds_sum", where) == pytest.approx(0.2)
    assert value("parley_run_itl_seconds_sum", where) == pytest.approx(0.1)
    assert value("parley_escalations_total", {"model": "s"}) == 1
    record_end(run, replace(ended, state=RunState.FAILED, ttft_ms=None, waited_ms=None), 1.5)
    assert value("parley_run_ttft_seconds_count", where) == 1
    nowhere = where | {"version": "", "region": "", "state": "failed"}
    assert value("parley_runs_total", nowhere) == 1, "it never had a place"


def test_a_failover_counts_the_tokens_before_it() -> None:
    labels = {"model": "failing"}
    record_failover("failing", tokens=12)
    record_failover("failing", tokens=3)
    assert REGISTRY.get_sample_value("parley_failovers_total", labels) == 2
    assert REGISTRY.get_sample_value("parley_reconstructed_tokens_total", labels) == 15


def test_a_server_that_tells_ever_new_versions_does_not_make_ever_new_series() -> None:
    kept = Kept()
    shown = [kept.label(f"1.{n}") for n in range(3 * MOST_VALUES)]
    assert shown[:MOST_VALUES] == [f"1.{n}" for n in range(MOST_VALUES)]
    assert set(shown[MOST_VALUES:]) == {"other"}
    assert kept.label("1.0") == "1.0"


async def test_the_state_of_each_breaker_is_told_from_the_others(settings: Any) -> None:
    pool = ReplicaPool("", replica_urls="m=fake://a,m=fake://b,m=fake://c")
    await pool.start()
    members = sorted(pool._members.values(), key=lambda member: member.info.id)
    for member, state in zip(members, BreakerState, strict=True):
        member.breaker.state = state
    collector = PoolCollector(pool, Admission(settings.REDIS_URL, owner="x"))
    text = generate_latest(_registry_of(collector)).decode()
    await pool.stop()
    for member, state in zip(members, BreakerState, strict=True):
        for other in BreakerState:
            labels = f'model="m",replica="{member.info.id}",state="{other.value}"'
            assert f"parley_breaker_state{{{labels}}} {float(other is state)}" in text


def _registry_of(collector: Collector) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(collector)
    return registry


@pytest.mark.django_db(transaction=True)
async def test_a_runner_has_an_exporter_of_its_own_while_it_runs(settings: Any) -> None:
    settings.RUNNER_METRICS = ("127.0.0.1", free_port())
    settings.REPLICA_URLS = ("fake=fake://a",)
    runner = RunnerProcess()
    running = asyncio.create_task(runner.run())
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{settings.RUNNER_METRICS[1]}") as client:
        for _ in range(500):
            if runner.id is not None:
                break
            await asyncio.sleep(0.02)
        text = (await client.get("/metrics")).text
        assert "parley_runs_executing 0.0" in text
        assert 'parley_breaker_state{model="fake",replica="fake@a",state="closed"} 1.0' in text
        assert 'parley_breaker_state{model="fake",replica="fake@a",state="open"} 0.0' in text
        runner.admission.stats.waited("fake", 3.0, 2.0)
        runner.admission.stats.refused["fake", "too_large"] += 1
        runner.admission.stats.granted["interactive:free"] += 1
        text = (await client.get("/metrics")).text
        assert 'parley_admission_granted_total{lane="interactive",tier="free"} 1.0' in text
        assert 'parley_admission_wait_seconds_bucket{le="2.0"} 0.0' in text
        assert 'parley_admission_wait_seconds_bucket{le="5.0"} 1.0' in text
        assert 'parley_wait_estimate_error_ratio_count{model="fake"} 1.0' in text
        assert 'parley_admission_refused_total{code="too_large",model="fake"} 1.0' in text
        runner.stopping.set()
        await running
        with pytest.raises(httpx.ConnectError):
            await client.get("/metrics")
