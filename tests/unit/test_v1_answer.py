"""What a client of `/v1` gets when a run's events repeat, jump or change text: each character once, or an error."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from apps.api.realtime.answer import Answer, ChunkEncoder, completion_body, finish_reason
from apps.api.realtime.errors import from_run


def text(at: int, words: str) -> dict[str, Any]:
    return {"type": "text", "at": at, "text": words}


def done(words: str, state: str = "completed") -> dict[str, Any]:
    return {
        "type": "done",
        "state": state,
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 3, "cached_tokens": 1, "completion_tokens": 4},
        "message": {"text": words, "model": "fake"},
        "error": None,
    }


def fed(*events: dict[str, Any]) -> tuple[list[str], Answer]:
    answer = Answer("auto")
    return [answer.feed(event) for event in events], answer


def test_text_is_passed_on_as_it_comes() -> None:
    sent, answer = fed(
        {"type": "state", "state": "running", "model": "fake"}, text(0, "ab"), text(2, "c🙂"), done("abc🙂")
    )
    assert sent == ["", "ab", "c🙂", ""]
    assert answer.is_faithful
    assert answer.model == "fake"


def test_offsets_count_code_points() -> None:
    sent, answer = fed(text(0, "🙂é"), text(2, "日"), done("🙂é日"))
    assert "".join(sent) == "🙂é日"
    assert answer.is_faithful


def test_a_repeated_piece_is_sent_once() -> None:
    sent, answer = fed(text(0, "hello "), text(0, "hello "), text(3, "lo world"), done("hello world"))
    assert "".join(sent) == "hello world"
    assert answer.is_faithful


@pytest.mark.parametrize("snapshot", ["", "hel", "hello ", "hello wor"])
def test_a_snapshot_adds_only_what_is_new(snapshot: str) -> None:
    sent, answer = fed(text(0, "hello "), {"type": "snapshot", "text": snapshot}, text(6, "world"), done("hello world"))
    assert "".join(sent) == "hello world"
    assert answer.is_faithful


def test_what_was_missed_comes_at_the_end() -> None:
    sent, answer = fed(text(0, "one "), text(8, "three"), done("one two three"))
    assert sent == ["one ", "", "two three"]
    assert answer.is_faithful


def test_a_reader_of_nothing_but_the_end_gets_everything() -> None:
    sent, answer = fed(done("all of it"))
    assert sent == ["all of it"]
    assert answer.is_faithful


@pytest.mark.parametrize("final", ["hello earth", "hello", "hello world and more"])
def test_a_changed_answer_is_not_called_whole(final: str) -> None:
    _, answer = fed(text(0, "hello world"), {"type": "snapshot", "text": "hello"}, done(final))
    assert answer.is_faithful == (final == "hello world and more")


def test_chunks_are_openais_and_valid_json() -> None:
    encoder = ChunkEncoder(id="chatcmpl-1", created=7, model='odd "name"', include_usage=True)
    chunks = [encoder.role(), encoder.text('a"\n🙂'), encoder.finish("stop"), encoder.usage(done("x")["usage"])]
    parsed = []
    for chunk in chunks:
        assert chunk.startswith(b"data: ")
        assert chunk.endswith(b"\n\n")
        assert chunk.count(b"\n") == 2
        parsed.append(orjson.loads(chunk[6:]))
    assert all(body["id"] == "chatcmpl-1" and body["model"] == 'odd "name"' for body in parsed)
    assert parsed[0]["choices"][0]["delta"]["role"] == "assistant"
    assert parsed[1]["choices"][0] == {
        "index": 0,
        "delta": {"content": 'a"\n🙂'},
        "logprobs": None,
        "finish_reason": None,
    }
    assert parsed[2]["choices"][0]["finish_reason"] == "stop"
    assert [body["usage"] for body in parsed[:3]] == [None] * 3
    assert parsed[3]["usage"]["total_tokens"] == 7
    assert parsed[3]["usage"]["prompt_tokens_details"] == {"cached_tokens": 1}


def test_usage_is_left_out_unless_asked_for() -> None:
    encoder = ChunkEncoder(id="chatcmpl-1", created=7, model="m", include_usage=False)
    assert "usage" not in orjson.loads(encoder.text("a")[6:])


def test_an_unstreamed_answer_is_the_saved_one() -> None:
    _, answer = fed(text(0, "hel"), done("hello"))
    body = completion_body("chatcmpl-1", 7, answer)
    assert body["choices"][0]["message"]["content"] == "hello"
    assert body["usage"]["total_tokens"] == 7


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [("completed", "stop", "stop"), ("completed", "length", "length"), ("incomplete", None, "length")],
)
def test_finish_reasons(state: str, reason: str | None, expected: str) -> None:
    assert finish_reason(done("x", state) | {"finish_reason": reason}) == expected


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"code": "overloaded", "message": "m", "retry_after_s": 2.4}, 503, "server_error"),
        ({"code": "rejected", "message": "too long"}, 400, "invalid_request_error"),
        ({"code": "internal", "message": "m"}, 500, "server_error"),
        (None, 409, "invalid_request_error"),
    ],
)
def test_how_a_run_failed_becomes_a_status(error: dict[str, Any] | None, status: int, kind: str) -> None:
    shown = from_run(error, "cancelled")
    assert shown.status == status
    assert shown.body["error"]["type"] == kind
    if error and "retry_after_s" in error:
        assert shown.headers == {"retry-after": "2", "retry-after-ms": "2400"}
