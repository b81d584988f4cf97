"""Answers whose replica fails in the middle: which go on, which begin again, and which end with a clear word."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pytest
from prometheus_client import REGISTRY

from apps.conversations.models import Message, Run
from apps.conversations.types import RunParams
from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.engines.script import expected_text
from tests.factories.accounts import make_actor
from tests.factories.conversations import ask, make_conversation
from tests.factories.runner import execute

pytestmark = pytest.mark.django_db(transaction=True)
JSON = {"response_format": {"type": "json_object"}}
TOOLS = {"tools": [{"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}]}


def run(prompt: str, extra: dict[str, Any], *urls: str) -> tuple[Run, str]:
    """The finished run of a question, and its answer's text."""
    actor = make_actor()
    made = ask(actor, make_conversation(actor), f"seed:f n:30 {prompt}")
    Run.objects.filter(id=made.run_id).update(params=asdict(RunParams(extra=extra)))
    ended = execute(made.run_id, *(urls or ("fake=fake://a", "fake=fake://b")))
    return ended, Message.objects.get(id=made.answer_id, conversation_id=made.conversation_id).text


@contextmanager
def server(*, shift: int = 0, **order: object) -> Iterator[FakeServer]:
    """A scripted server in a thread of its own, told to misbehave."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        made = asyncio.run_coroutine_threadsafe(serve(Options(shift=shift)), loop).result(5)
        loop.call_soon_threadsafe(made.replica.control, order)
        yield made
        asyncio.run_coroutine_threadsafe(made.close(), loop).result(5)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def test_plain_text_goes_on_elsewhere() -> None:
    here = {"model": "fake", "lane": "interactive", "tier": "free", "version": "fake", "region": ""}
    written, first = "parley_reconstructed_tokens_total", "parley_run_ttft_seconds_count"
    before = counted(written, model="fake"), counted(first, **here)
    ended, text = run("die:12", {})
    assert (ended.state, text) == ("completed", expected_text(30, "f"))
    (seam,) = ended.reconstructed
    assert seam["at"] > 12, "characters, where readers are told"
    assert counted(written, model="fake") - before[0] == 12
    assert counted(first, **here) - before[1] == 1


def test_what_cannot_be_continued_ends_clearly_once_it_was_seen() -> None:
    ended, text = run("die:12", {"n": 2})
    assert (ended.state, text) == ("incomplete", expected_text(12, "f"))
    assert ended.error is not None
    assert ended.error["code"] == "replica_failed"
    assert "several answers" in ended.error["message"]


@pytest.mark.parametrize(("extra", "fault"), [({}, "die"), ({"n": 2}, "shutdown"), ({"n": 2}, "ids")], ids=repr)
def test_what_nobody_has_seen_begins_again(extra: dict[str, Any], fault: str) -> None:
    with server(fault=fault, at=0, times=2) as broken:
        ended, text = run("", extra, f"fake={broken.url}")
        assert broken.replica.requests > 2
    assert (ended.state, text) == ("completed", expected_text(30, "f"))


@pytest.mark.parametrize(
    ("said", "extra", "fault"),
    [
        ('say: {"one": 1, "two": 2}', JSON, "die"),
        ('say: {"one": 1, "two": 2}', JSON, "garbage"),
        ('call:now {"one": 1, "two": 2}', TOOLS, "die"),
        ('call:now {"one": 1, "two": 2}', TOOLS, "truncate"),
    ],
)
def test_what_is_held_until_it_is_whole_begins_again_in_its_middle_too(
    said: str, extra: dict[str, Any], fault: str
) -> None:
    with server(fault=fault, at=3, times=2) as broken:
        ended, _ = run(f"\n{said}", extra, f"fake={broken.url}")
        assert broken.replica.requests > 2
    answer = Message.objects.get(id=ended.answer_id, conversation_id=ended.conversation_id)
    assert (ended.state, ended.reconstructed) == ("completed", [])
    told = answer.text or answer.tool_calls[0]["function"]["arguments"]
    assert json.loads(told) == {"one": 1, "two": 2}


def test_ids_do_not_go_to_another_tokenizer() -> None:
    """Each would refuse the other's. Whichever is first breaks off; the other goes on from the text."""
    with server() as one, server(shift=7) as two:
        ended, text = run("die:12", {}, f"fake={one.url}", f"fake={two.url}")
    assert (ended.state, text) == ("completed", expected_text(30, "f"))
    assert [failover["at"] for failover in ended.reconstructed] == [len(expected_text(12, "f"))]


def test_other_weights_go_on_with_an_answer_only_where_nothing_else_is_there() -> None:
    """Its place would be the second by name alone."""
    ended, text = run("die:12", {}, *(f"fake=fake://{name}?weights={w}" for name, w in (("a", 1), ("b", 2), ("c", 1))))
    assert (ended.state, text, ended.replica) == ("completed", expected_text(30, "f"), "fake@c")
    assert "other_weights" not in ended.reconstructed[0]


def test_that_other_weights_went_on_is_said() -> None:
    ended, text = run("die:12", {}, "fake=fake://a?weights=1", "fake=fake://b?weights=2")
    assert (ended.state, text) == ("completed", expected_text(30, "f"))
    (failover,) = ended.reconstructed
    assert failover["other_weights"] is True
    answer = Message.objects.get(id=ended.answer_id, conversation_id=ended.conversation_id)
    assert answer.notices == [{"kind": "reconstructed", **failover}]
