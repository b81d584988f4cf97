"""Replicas that fail under streams: every answer comes whole, once; a tool is never started twice."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from redis import Redis

from tests.client import Api, eventually
from tests.faults import failing
from tests.faults.readers import Background
from tests.stack import Program, Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]
ROUNDS = 12 if os.environ.get("PARLEY_FAULTS") == "full" else 6


def test_replicas_fail_under_streams(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(
        runners=2, replicas=2, settings="tests.live_settings", slots=256, environment={"PARLEY_HANG_S": "3"}
    )
    report = failing.run(stack, failing.kinds_for(ROUNDS), streams=16)
    print(f"\n{report}")
    assert report.rounds == ROUNDS
    assert len(report.before()) >= ROUNDS, "the failures did hit answers that waited"
    assert len(report.after()) >= ROUNDS, "and answers in progress"
    assert report.before_ratio == 1.0
    assert (report.stuck, report.doubled, report.mismatched) == ([], [], [])


def dispatching(stack: Stack, **environment: str) -> tuple[int, str]:
    """How often a run started its tool whose replica died in mid-answer, and how it ended."""
    stack.launch("runner-1", ("-m", "tests.faults.dispatching"), is_ready, **environment)
    reader = Background([Api(stack.url(), stack.api_key(), timeout=20)], 40, "itl:10 die:8")
    reader.start()
    eventually(lambda: reader.audit.reading.ended, within=30)
    counted = Redis.from_url(stack.valkey.url()).get(f"tests:tool-starts:{reader.run_id}")
    return int(counted or 0), str(reader.audit.reading.state)


def is_ready(runner: Program) -> bool:
    return runner.printed("runner.ready")


def test_a_tool_is_not_started_again_when_its_replica_dies(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(runners=0, replicas=2, settings="tests.live_settings")
    assert dispatching(stack) == (1, "incomplete")


def test_the_check_goes_red_when_a_failed_pass_is_repeated_after_dispatch(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(runners=0, replicas=2, settings="tests.live_settings")
    assert dispatching(stack, RETRY_AFTER_DISPATCH="1") == (2, "completed")


def test_a_tool_is_not_started_again_when_its_runner_dies(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(runners=0, settings="tests.live_settings")
    stack.launch("runner-1", ("-m", "tests.faults.dispatching"), is_ready)
    reader = Background([Api(stack.url(), stack.api_key(), timeout=20)], 400, "itl:10")
    reader.start()
    eventually(lambda: reader.audit.reading.text, within=30)
    stack.kill9("runner-1")
    stack.launch("runner-2", ("-m", "tests.faults.dispatching"), is_ready)
    eventually(lambda: reader.audit.reading.ended, within=30)
    counted = Redis.from_url(stack.valkey.url()).get(f"tests:tool-starts:{reader.run_id}")
    assert (int(counted or 0), reader.audit.reading.state) == (1, "incomplete")


@pytest.mark.parametrize(("prompt", "first_token"), [("itl:50", True), ("ttft:60000", False)])
def test_a_cancel_reaches_the_replica(start_stack: Callable[..., Stack], prompt: str, first_token: bool) -> None:
    stack = start_stack(settings="tests.live_settings")
    delays = failing.cancel_delays_ms(stack, prompt, 2, first_token=first_token)
    print(f"\n{delays}")
    # What may still run there is the title of the conversation.
    assert failing.stats(stack)["aborted"] == len(delays) == 2
