"""The stack helper itself: what the fault tests stand on must do what it says."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable

import pytest

from tests.stack import Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


def ask(stack: Stack, key: str, text: str) -> str:
    """One answer through the OpenAI-compatible API."""
    body = {"model": "auto", "messages": [{"role": "user", "content": text}], "max_tokens": 16}
    request = urllib.request.Request(
        f"{stack.url()}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        content: str = json.load(answer)["choices"][0]["message"]["content"]
    return content


def test_a_stack_answers_after_each_of_its_processes_was_killed(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack()
    key = stack.api_key()
    assert ask(stack, key, "hello")
    for name in ("web-1", "runner-1", "replica-1", "valkey"):
        stack.kill9(name)
        stack.restart(name)
        if name in ("replica-1", "valkey"):
            # Health checks of the pool need a moment to see a replica again.
            time.sleep(6)
        assert ask(stack, key, f"after the end of {name}")


def test_nothing_is_left_when_a_stack_stops(start_stack: Callable[..., Stack], services: object) -> None:
    stack = start_stack(webs=2)
    pids = [program.child.pid for program in stack.programs.values() if program.child]
    assert len(pids) == 4
    assert stack.cpu_seconds("web-1") > 0
    assert stack.resident_kib("web-1") > 1000
    stack.stop()
    assert not stack.folder.exists()
    assert all(program.child and program.child.poll() is not None for program in stack.programs.values())
