"""A run's events as readers get them from real processes: two webs, a runner, a scripted replica."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from apps.conversations.eventlog import log_key
from inference.engines.script import expected_text
from tests.client import Api, Refused, eventually
from tests.reader import Audit, Event, Reading, reduce
from tests.services import Services
from tests.stack import Stack

SLOTS = 8
N = 120
SLOW = f"n:{N} itl:20"
"""An answer of two and a half seconds, for tests that come in the middle."""


@pytest.fixture(scope="module")
def stack(services: Services) -> Iterator[Stack]:
    with Stack(services, webs=2, slots=SLOTS, settings="tests.live_settings") as running:
        yield running


@pytest.fixture(scope="module")
def key(stack: Stack) -> str:
    return stack.api_key()


@pytest.fixture
def api(stack: Stack, key: str) -> Api:
    return Api(stack.url(), key)


@pytest.fixture
def other_web(stack: Stack, key: str) -> Api:
    return Api(stack.url(2), key)


@pytest.fixture
def valkey(stack: Stack) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(stack.valkey.url()) as client:
        yield client


def ask(api: Api, text: str, **more: Any) -> Any:
    return api.ask(api.new_conversation(), text, **more)


def seed() -> str:
    return uuid.uuid4().hex[:8]


def sql(stack: Stack, query: str) -> str:
    return stack.services.postgres.ask(query, stack.name)


# ------------------------------------------------------------------ a whole stream


def test_a_stream_tells_everything_in_order_and_ends(api: Api) -> None:
    mark = seed()
    posted = ask(api, f"n:60 itl:3 seed:{mark}")
    with api.events(posted["run"]["id"]) as stream:
        events = list(stream)
        assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert "no-transform" in stream.headers["cache-control"]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    first, last = events[0], events[-1]
    assert first.data["type"] == "state"
    assert (first.data["state"], first.data["attempt"], first.data["model"]) == ("running", 1, "fake")
    assert {event.type for event in events[1:-1]} == {"text"}
    assert (last.type, last.data["state"], last.data["finish_reason"]) == ("done", "completed", "stop")
    assert last.data["usage"]["completion_tokens"] == 60
    text = "".join(event.data["text"] for event in events[1:-1])
    assert text == expected_text(60, mark) == last.data["message"]["text"]


def test_what_is_saved_is_what_was_streamed(api: Api, stack: Stack) -> None:
    mark = seed()
    posted = ask(api, f"n:50 itl:2 seed:{mark}")
    audit = api.read(posted["run"]["id"])
    assert audit.is_clean, audit
    question, answer = api.messages(posted["question"]["conversation_id"])
    assert answer["text"] == audit.reading.text == expected_text(50, mark)
    assert audit.reading.message is not None
    assert {key: answer[key] for key in audit.reading.message} == audit.reading.message
    run = api.run(posted["run"]["id"])
    assert (run["state"], run["completion_tokens"], run["attempt"]) == ("completed", 50, 1)
    assert run["replica"]
    assert 0 <= run["waited_ms"] <= run["ttft_ms"]
    assert [reason["step"] for reason in run["decision"]["reasons"]] == ["rule", "load"]
    assert run["decision"]["replica"] == run["replica"]
    assert [step["state"] for step in run["transitions"]] == ["queued", "running", "completed"]
    assert run["reconstructed"] == []
    context = api.get(f"/api/runs/{run['id']}/context")
    assert [message["role"] for message in context["messages"]] == ["system", "user"]
    assert context["messages"][-1]["content"] == question["text"]
    usage = f"select completion_tokens from accounts_usageentry where subject_id = '{run['id']}'"
    assert sql(stack, usage) == "50"


def test_the_next_turn_is_sent_the_branch_it_continues(api: Api) -> None:
    conversation = api.new_conversation()
    first = api.ask(conversation, "say: Paris")
    api.read(first["run"]["id"])
    second = api.ask(conversation, "say: In France", parent=first["answer"]["id"])
    api.read(second["run"]["id"])
    other = api.ask(conversation, "say: elsewhere", parent=first["answer"]["id"])
    api.read(other["run"]["id"])
    sent = api.get(f"/api/runs/{other['run']['id']}/context")["messages"]
    assert [message["content"] for message in sent[1:]] == ["say: Paris", "Paris", "say: elsewhere"]


def test_tokens_are_told_together_but_the_first_at_once(api: Api) -> None:
    posted = ask(api, f"n:200 itl:5 seed:{seed()}")
    with api.events(posted["run"]["id"]) as stream:
        texts = [event.data["text"] for event in stream if event.type == "text"]
    assert len(texts) < 100, "five-millisecond tokens are coalesced"
    assert len(texts[0]) < 60, "the first piece did not wait for more"


def test_the_model_names_the_conversation_after_its_first_answer(api: Api) -> None:
    conversation = api.new_conversation()
    first = api.ask(conversation, "say: Blue skies explained")
    api.read(first["run"]["id"])
    eventually(lambda: api.get(f"/api/conversations/{conversation}")["title"] == "Blue skies explained")


def test_an_answer_that_reaches_its_limit_is_incomplete(api: Api) -> None:
    reading = api.read(ask(api, "n:1500 itl:0 burst:50 seed:long")["run"]["id"]).reading
    assert reading.state == "incomplete"
    assert reading.text == expected_text(1024, "long")
    assert reading.error is None


def test_a_refusal_of_the_model_ends_in_a_failed_answer(api: Api) -> None:
    posted = ask(api, "refuse:400")
    reading = api.read(posted["run"]["id"]).reading
    assert (reading.state, reading.text) == ("failed", "")
    assert reading.error is not None
    assert reading.error["code"] == "rejected"
    answer = api.messages(posted["answer"]["conversation_id"])[1]
    assert (answer["status"], answer["error"]) == ("failed", reading.error)


# ------------------------------------------------------------------ coming back


def first_part(api: Api, run: str) -> tuple[Reading, list[Event]]:
    """Read some text, then lose the connection."""
    reading, seen = Reading(), []
    with api.events(run) as stream:
        for event in stream:
            reading = reduce(reading, event)
            seen.append(event)
            if len(reading.text) > 40:
                break
    assert not reading.ended
    return reading, seen


@pytest.mark.parametrize("by", ["header", "query", "both, header larger", "both, query larger"])
def test_a_reader_comes_back_to_its_place_on_another_web(api: Api, other_web: Api, by: str) -> None:
    mark = seed()
    run = ask(api, f"{SLOW} seed:{mark}")["run"]["id"]
    reading, _ = first_part(api, run)
    place = {
        "header": {"last_event_id": reading.seq},
        "query": {"after": reading.seq},
        "both, header larger": {"last_event_id": reading.seq, "after": 1},
        "both, query larger": {"last_event_id": 1, "after": reading.seq},
    }[by]
    with other_web.events(run, **place) as stream:
        rest = list(stream)
    assert [event.seq for event in rest] == list(range(reading.seq + 1, reading.seq + 1 + len(rest)))
    for event in rest:
        reading = reduce(reading, event)
    assert reading.text == expected_text(N, mark)


def test_readers_do_not_disturb_each_other(api: Api, other_web: Api) -> None:
    run = ask(api, f"{SLOW} seed:{seed()}")["run"]["id"]
    with api.events(run) as one, other_web.events(run) as two, api.events(run, after=3) as late:
        _, seen = first_part(api, run)
        all_one, all_two, all_late = list(one), list(two), list(late)
    assert all_one == all_two
    assert all_late == all_one[3:]
    assert seen == all_one[: len(seen)]
    with other_web.events(run) as after_the_end:
        assert list(after_the_end) == all_one, "a finished run is told from its log for a while"


def test_when_the_log_has_expired_the_message_is_given(api: Api, other_web: Api, valkey: redis.Redis) -> None:
    posted = ask(api, f"n:20 seed:{seed()}")
    run = posted["run"]["id"]
    audit = api.read(run)
    left = valkey.ttl(log_key(uuid.UUID(run)))
    assert 0 < left <= 300, "the log of a finished run goes by itself"
    valkey.delete(log_key(uuid.UUID(run)))
    for reader, after in ((api, 0), (other_web, 0), (api, audit.reading.seq), (api, 10**11)):
        with pytest.raises(Refused) as gone, reader.events(run, after=after):
            pass
        assert gone.value.status == 410
        problem = gone.value.reply.json
        assert problem["code"] == "gone"
        assert problem["message"] == api.messages(posted["answer"]["conversation_id"])[1]


def test_a_reader_that_has_everything_is_given_the_message(api: Api) -> None:
    run = ask(api, f"n:5 seed:{seed()}")["run"]["id"]
    seq = api.read(run).reading.seq
    with pytest.raises(Refused) as gone, api.events(run, after=seq):
        pass
    assert gone.value.status == 410


def test_a_reader_ahead_of_the_log_still_learns_the_end(api: Api) -> None:
    run = ask(api, f"n:30 itl:10 seed:{seed()}")["run"]["id"]
    with api.events(run, after=10**9) as stream:
        events = list(stream)
    assert [event.type for event in events] == ["done"]


@pytest.mark.parametrize("place", ["x", "-1", "1.5", "²", "9" * 13])
def test_a_place_that_is_not_a_number_is_refused(api: Api, place: str) -> None:
    run = ask(api, f"n:3 seed:{seed()}")["run"]["id"]
    reply = api.call("GET", f"/api/runs/{run}/events", headers={"last-event-id": place.encode().decode("latin-1")})
    assert (reply.status, reply.json["code"]) == (422, "invalid")


def test_silence_is_filled_with_heartbeats(api: Api) -> None:
    with api.events(ask(api, f"n:3 ttft:2500 seed:{seed()}")["run"]["id"]) as stream:
        list(stream)
    assert stream.beats >= 2


def test_readers_that_do_not_read_lose_nothing(api: Api) -> None:
    words = " ".join(f"{number:04d}{'x' * 180}" for number in range(1000))
    posted = ask(api, f"say: {words}")
    run = posted["run"]["id"]
    with contextlib.ExitStack() as streams:
        slow = [streams.enter_context(api.events(run)) for _ in range(5)]
        eventually(lambda: api.run(run)["finished_at"], within=30)
        for stream in slow:
            audit = Audit()
            for event in stream:
                audit.take(event)
            assert audit.is_clean
            assert audit.reading.text == words


# ------------------------------------------------------------------ waiting in line


def test_those_who_wait_are_told_their_place(api: Api) -> None:
    first = [ask(api, f"n:3 ttft:4000 seed:{seed()}") for _ in range(SLOTS)]
    with api.events(first[-1]["run"]["id"]) as stream:
        stream.until(lambda reading: reading.seq > 0)
    waiting = [ask(api, f"n:3 seed:{seed()}")["run"]["id"] for _ in range(3)]
    with contextlib.ExitStack() as streams:
        seen = [list(streams.enter_context(api.events(run))) for run in waiting]
    places = [
        [event.data["position"] for event in events if event.type == "state" and event.data["state"] == "queued"]
        for events in seen
    ]
    assert 0 < places[0][0] < places[1][0] < places[2][0]
    assert all(told == sorted(told, reverse=True) for told in places)
    assert [events[-1].data["state"] for events in seen] == ["completed"] * 3


def test_cancelling_one_that_waits_in_line(stack: Stack, api: Api) -> None:
    for _ in range(SLOTS):
        ask(api, f"n:3 ttft:1500 seed:{seed()}")
    posted = ask(api, f"n:3 seed:{seed()}")
    requests = Api(stack.replica_url(), "").get("/stats")["requests"]
    with api.events(posted["run"]["id"]) as stream:
        stream.until(lambda reading: reading.seq > 0)
        api.cancel(posted["run"]["id"])
        ended = stream.until(lambda reading: reading.ended)
    assert (ended.state, ended.text) == ("cancelled", "")
    assert Api(stack.replica_url(), "").get("/stats")["requests"] - requests < 5, "it was never sent"


# ------------------------------------------------------------------ who may read


def test_streams_of_others_do_not_exist(stack: Stack, api: Api) -> None:
    stranger = Api(stack.url(), stack.api_key("stranger@example.org"))
    mine = ask(api, f"n:3 seed:{seed()}")
    gone = ask(api, f"n:3 seed:{seed()}")
    api.call("DELETE", f"/api/conversations/{gone['answer']['conversation_id']}").must_be(204)
    replies = [
        stranger.call("GET", f"/api/runs/{mine['run']['id']}/events"),
        api.call("GET", f"/api/runs/{gone['run']['id']}/events"),
        api.call("GET", f"/api/runs/{uuid.uuid4()}/events"),
    ]
    said = [{key: value for key, value in reply.json.items() if key != "request_id"} for reply in replies]
    assert said == [said[0]] * 3
    assert (said[0]["status"], said[0]["code"]) == (404, "not_found")
    assert Api(stack.url(), "pk_nobody").call("GET", f"/api/runs/{mine['run']['id']}/events").status == 401


# ------------------------------------------------------------------ cancelling


def aborted(stack: Stack) -> int:
    count: int = Api(stack.replica_url(), "").get("/stats")["aborted"]
    return count


def test_cancelling_stops_the_replica_and_keeps_the_text(stack: Stack, api: Api, other_web: Api) -> None:
    waits = []
    for _ in range(3):
        mark = seed()
        posted = ask(api, f"n:500 itl:20 seed:{mark}")
        run, before = posted["run"]["id"], aborted(stack)
        with api.events(run) as stream:
            reading = stream.until(lambda reading: len(reading.text) > 60)
            began = time.monotonic()
            other_web.cancel(run)
            eventually(lambda before=before: aborted(stack) > before, every=0.01)  # type: ignore[misc]
            waits.append(time.monotonic() - began)
            reading = stream.until(lambda reading: reading.ended, reading)
        assert reading.state == "cancelled"
        assert 60 < len(reading.text) < len(expected_text(500, mark))
        assert expected_text(500, mark).startswith(reading.text)
        answer = api.messages(posted["answer"]["conversation_id"])[1]
        assert (answer["status"], answer["text"]) == ("cancelled", reading.text)
        run_after = api.run(run)
        assert run_after["state"] == "cancelled"
        assert api.cancel(run) == run_after, "once more changes nothing"
    assert min(waits) < 0.5, waits


def test_cancelling_after_the_end_changes_nothing(api: Api) -> None:
    posted = ask(api, f"n:5 seed:{seed()}")
    api.read(posted["run"]["id"])
    before = api.run(posted["run"]["id"])
    assert api.cancel(posted["run"]["id"]) == before
    assert before["state"] == "completed"


def test_deleting_a_conversation_stops_its_run(stack: Stack, api: Api) -> None:
    posted = ask(api, f"n:2000 itl:20 seed:{seed()}")
    before = aborted(stack)
    with api.events(posted["run"]["id"]) as stream:
        stream.until(lambda reading: bool(reading.text))
        api.call("DELETE", f"/api/conversations/{posted['answer']['conversation_id']}").must_be(204)
        assert stream.until(lambda reading: reading.ended).state == "cancelled"
    eventually(lambda: aborted(stack) > before)


def test_closing_the_tab_stops_nothing(stack: Stack, api: Api) -> None:
    mark = seed()
    posted = ask(api, f"n:40 itl:20 seed:{mark}")
    before = aborted(stack)
    first_part(api, posted["run"]["id"])
    eventually(lambda: api.run(posted["run"]["id"])["state"] == "completed")
    assert api.messages(posted["answer"]["conversation_id"])[1]["text"] == expected_text(40, mark)
    assert aborted(stack) == before
