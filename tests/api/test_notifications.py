"""`/ws/notifications`: what a person's other tabs are told, and who is told nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.client import Api
from tests.services import Services
from tests.stack import Stack


@pytest.fixture(scope="module")
def stack(services: Services) -> Iterator[Stack]:
    with Stack(services, webs=2, settings="tests.live_settings") as running:
        yield running


@pytest.fixture(scope="module")
def api(stack: Stack) -> Api:
    return Api(stack.url(1), stack.api_key())


def tab(stack: Stack, key: str | None, *, web: int = 2, origin: str | None = None) -> ClientConnection:
    """A tab on the other web than the one that is asked."""
    base = stack.url(web)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    address = f"{base.replace('http', 'ws')}/ws/notifications"
    return connect(address, origin=Origin(origin or base), additional_headers=headers, open_timeout=20)


def next_note(tab: ClientConnection, wanted: Callable[[Any], bool], within: float = 10) -> Any:
    deadline = time.monotonic() + within
    while (left := deadline - time.monotonic()) > 0:
        note = json.loads(tab.recv(timeout=left))
        if wanted(note):
            return note
    raise AssertionError("the note did not come")


def listening(tab: ClientConnection, api: Api) -> None:
    """Until a tab's subscription is in place notes may pass it by, as they may any tab that is just opening."""
    for _ in range(40):
        api.new_conversation()
        try:
            tab.recv(timeout=0.25)
        except TimeoutError:
            continue
        return
    raise AssertionError("the tab hears nothing")


def test_other_tabs_learn_of_conversations_runs_and_titles(stack: Stack, api: Api) -> None:
    with tab(stack, api.key) as other, tab(stack, api.key, web=1) as same:
        for one in (other, same):
            listening(one, api)
        conversation = api.new_conversation()
        posted = api.ask(conversation, "say: Seen on every device")
        run = posted["run"]["id"]
        for one in (other, same):
            made = next_note(
                one, lambda note: note["type"] == "conversation" and note["conversation"]["id"] == conversation
            )
            assert made["conversation"]["title"] == ""
            asked = next_note(one, lambda note: note["type"] == "conversation")["conversation"]
            assert (asked["active_run_id"], asked["head_message_id"]) == (run, posted["answer"]["id"])
            started = next_note(one, lambda note: note["type"] == "run")["run"]
            assert (started["id"], started["state"], started["conversation_id"]) == (run, "queued", conversation)
            ended = next_note(one, lambda note: note["type"] == "run" and note["run"]["state"] == "completed")["run"]
            assert (ended["id"], ended["answer_id"]) == (run, posted["answer"]["id"])
            assert ended.items() <= api.run(run).items(), "the whole run, as it is read"
            assert set(ended) == set(posted["run"])
            titled = next_note(one, lambda note: note["type"] == "conversation")["conversation"]
            assert titled["title"] == "Seen on every device"
        api.call("PATCH", f"/api/conversations/{conversation}", {"pinned": True}).must_be(200)
        api.call("DELETE", f"/api/conversations/{conversation}").must_be(204)
        for one in (other, same):
            assert next_note(one, lambda note: note["type"] == "conversation")["conversation"]["pinned"]
            assert next_note(one, lambda note: note["type"] == "conversation")["conversation"]["deleted_at"]


def test_a_ping_is_answered(stack: Stack, api: Api) -> None:
    with tab(stack, api.key) as one:
        one.send("ping")
        assert one.recv(timeout=5) == "pong"
        one.send("x" * 1000)
        one.send(b"\x00\x01")
        one.send("ping")
        assert one.recv(timeout=5) == "pong", "anything else is ignored"


@pytest.mark.parametrize(
    ("key", "origin"), [(None, None), ("pk_wrong", None), ("right", "https://evil.example"), ("right", "null")]
)
def test_who_is_told_nothing(stack: Stack, api: Api, key: str | None, origin: str | None) -> None:
    with tab(stack, api.key if key == "right" else key, origin=origin) as one:
        with pytest.raises(ConnectionClosed):
            one.recv(timeout=10)
        assert one.close_code == 4401


def test_notes_go_to_their_owner_alone(stack: Stack, api: Api) -> None:
    stranger = Api(stack.url(1), stack.api_key("stranger@example.org"))
    with tab(stack, stranger.key) as theirs, tab(stack, api.key) as mine:
        listening(theirs, stranger)
        listening(mine, api)
        conversation = api.new_conversation()
        next_note(mine, lambda note: note["conversation"]["id"] == conversation)
        marker = stranger.new_conversation()
        seen: list[str] = []
        while not seen or seen[-1] != marker:
            seen.append(json.loads(theirs.recv(timeout=5))["conversation"]["id"])
        assert conversation not in seen


def test_notes_come_again_after_valkey_was_away(stack: Stack, api: Api) -> None:
    with tab(stack, api.key) as one:
        listening(one, api)
        stack.restart("valkey", empty=True)
        one.send("ping")
        while one.recv(timeout=5) != "pong":
            pass
        listening(one, api)
