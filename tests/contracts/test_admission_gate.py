"""The line as the web sees it: a place in the run's name, until a runner takes the run up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis
from django.conf import settings

from inference.admission import Admission, Gate, Policy
from inference.admission.verbs import Gone, Granted, NoneReady, Refused, Stranger
from inference.pipe import Pipe
from inference.queueing import WaitState
from tests.contracts.admission_subjects import Line
from tests.factories.admission import a_replica, an_ask, connect, leaks

BRISK = Policy(gate_s=0.05, max_waiting=2)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    """A runner with one slot, at the server's own time, which the gate uses."""
    pipe = Pipe(settings.REDIS_URL)
    made = Line(pipe, "runner", BRISK)
    seconds, micros = await pipe.call("TIME")
    made.now = int(seconds) * 1000 + int(micros) / 1000
    yield await made.begin(a_replica(slots=1))
    await pipe.close()


@pytest.fixture
def gate() -> Gate:
    return Gate(lambda: redis.Redis.from_url(settings.REDIS_URL), BRISK)


def test_without_a_runner_there_is_no_line(gate: Gate) -> None:
    with pytest.raises(Stranger):
        gate.ask(an_ask("1"))


async def test_who_only_pools_is_no_runner(gate: Gate) -> None:
    pipe = Pipe(settings.REDIS_URL)
    seconds, _ = await pipe.call("TIME")
    worker = Line(pipe, "pool-1", BRISK)
    worker.now = int(seconds) * 1000
    await worker.begin(a_replica())
    with pytest.raises(Stranger):
        gate.ask(an_ask("1"))
    await pipe.close()


async def test_replicas_are_told_at_once(gate: Gate) -> None:
    runner = Admission(settings.REDIS_URL, owner="runner", policy=Policy(heartbeat_s=60))
    await runner.start()
    runner.set_replicas([a_replica(slots=1)])
    async with asyncio.timeout(5):
        while (reply := gate.ask(an_ask("1"))) == NoneReady():  # noqa: ASYNC110 - what is waited for is in Valkey
            await asyncio.sleep(0.01)
    assert reply == Granted("r1")
    await runner.stop()


async def test_a_model_without_replicas_has_none_either(line: Line, gate: Gate) -> None:
    assert gate.ask(an_ask("1", model="another")) == NoneReady()


async def test_the_runner_takes_over_what_the_gate_got(line: Line, gate: Gate) -> None:
    assert gate.ask(an_ask("1")) == Granted("r1")
    assert gate.ask(an_ask("2")) == WaitState(1, None)
    assert await line.ask(an_ask("1", accepted=True)) == Granted("r1"), "though another waits"
    assert await line.ask(an_ask("2", accepted=True)) == WaitState(1, None)
    gate.leave("1")
    assert gate.where("1") == Granted("r1"), "it is the runner's now"
    await line.release("1")
    assert await line.news() == ["2"]
    await line.release("2")
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_place_granted_before_a_runner_took_the_run_up_waits_for_it_without_news(
    line: Line, gate: Gate
) -> None:
    await line.ask(an_ask("0"))
    gate.ask(an_ask("1"))
    await line.release("0")
    assert gate.where("1") == Granted("r1")
    assert not connect(settings.REDIS_URL).exists("adm:feed:gate")
    assert await line.ask(an_ask("1", accepted=True)) == Granted("r1")


async def test_a_larger_size_than_was_thought_is_counted_from_the_takeover_on(line: Line, gate: Gate) -> None:
    gate.ask(an_ask("1", prompt_tokens=10))
    await line.ask(an_ask("1", prompt_tokens=5_000, accepted=True))
    assert connect(settings.REDIS_URL).hget("adm:m:m:r:r1", "kv_used") == "5040"
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_who_is_refused_leaves_nothing_behind(line: Line, gate: Gate) -> None:
    for n in range(3):
        gate.ask(an_ask(f"{n}"))
    refused = gate.ask(an_ask("3"))
    assert isinstance(refused, Refused)
    assert refused.code == "queue_full"
    assert gate.where("3") == Gone()
    for n in range(3):
        gate.leave(f"{n}")
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_a_place_that_nobody_takes_up_lapses(line: Line, gate: Gate) -> None:
    gate.ask(an_ask("1"))
    line.now += 1_000
    assert (await line.beat()).reaped == 1
    assert gate.where("1") == Gone()
    assert await line.ask(an_ask("1", accepted=True)) == Granted("r1"), "the run is not lost with its place"
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_any_runner_may_give_an_unused_place_back(line: Line, gate: Gate) -> None:
    gate.ask(an_ask("1"))
    assert await line.verbs.release(line.now, "1", 0, whole=False)
    assert gate.where("1") == Gone()
    assert leaks(connect(settings.REDIS_URL)) == []
