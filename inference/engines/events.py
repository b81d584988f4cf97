"""Reads the events of an OpenAI-style streamed answer, chat or completion, into a stream.

Responsible for: the shapes of chunks (deltas, tool calls, token ids, finish reason, usage, errors after a 200) and what
breaks an answer. Leaves to `openai_http` the connection, and to `sse` the framing.
"""

from __future__ import annotations

from typing import Any

import orjson

from inference.engines.sse import SseError, SseParser
from inference.engines.stream import MergedStream
from inference.protocol import (
    EngineFailed,
    EngineOverloaded,
    EngineRejected,
    FailureKind,
    InferenceError,
    Usage,
    WrittenCall,
)

_BROKEN_FINISHES = frozenset({"abort", "error"})
# Far beyond any vocabulary: what is outside was never a token.
_MAX_ID = 1 << 27
_SAYING = ("reasoning_content", "reasoning", "refusal")
_LEAVING = ("after shutdown", "engine is dead", "enginedead")


class CallParts:
    """Tool calls on their way: pieces come under the index of their call."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[int, list[str]] = {}

    def add(self, pieces: list[dict[str, Any]]) -> None:
        """TypeError and AttributeError for what is no call. Servers that leave the index out send whole calls."""
        for piece in pieces:
            index, function = piece.get("index"), piece.get("function") or {}
            call = self._parts.setdefault(index if isinstance(index, int) else len(self._parts), ["", "", ""])
            for part, said in enumerate((piece.get("id"), function.get("name"), function.get("arguments"))):
                if said is not None:
                    call[part] += said

    def whole(self) -> tuple[WrittenCall, ...]:
        return tuple(WrittenCall(*self._parts[index]) for index in sorted(self._parts))


class AnswerReader:
    """State of one answer. `begun` once a token came; `done` after `[DONE]`. `progress` counts events that said
    something, in whatever field. `calls` are whole once there is a finish reason."""

    __slots__ = ("_calls", "_prompt_told", "_sse", "begun", "by_ids", "done", "finish_reason", "progress", "usage")

    def __init__(self) -> None:
        self.by_ids = False
        self.begun = self.done = False
        self.progress = 0
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self._prompt_told = False
        self._calls = CallParts()
        self._sse = SseParser()

    @property
    def calls(self) -> tuple[WrittenCall, ...]:
        return self._calls.whole()

    def read(self, data: bytes, stream: MergedStream) -> None:
        """Push what `data` holds. EngineFailed on garbage, an abort or an error; EngineOverloaded and
        EngineRejected when the error says so."""
        try:
            payloads = self._sse.feed(data)
        except SseError as error:
            raise EngineFailed(str(error), FailureKind.GARBAGE) from None
        for payload in payloads:
            if payload == b"[DONE]":
                self.done = True
                if self.finish_reason is None:
                    raise EngineFailed("the answer ended without a finish reason", FailureKind.GARBAGE)
                return
            try:
                self._read_chunk(orjson.loads(payload), stream)
            except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, IndexError):
                raise EngineFailed(f"the replica sent garbage: {payload[:80]!r}", FailureKind.GARBAGE) from None

    def _read_chunk(self, chunk: dict[str, Any], stream: MergedStream) -> None:
        choices = chunk.get("choices")
        if not choices:
            if choices is None or "error" in chunk:
                raise stream_error(chunk)
            self._read_usage(chunk)
            return
        choice = choices[0]
        delta = choice.get("delta")
        text = choice["text"] if delta is None else delta.get("content") or ""
        called = delta.get("tool_calls") if delta else None
        ids = choice.get("token_ids")
        if not self._prompt_told:
            self._read_prompt(chunk, choice, stream)
        if ids and (max(ids) >= _MAX_ID or min(ids) < 0):
            raise EngineFailed(f"the replica sent ids of no vocabulary: {ids[:4]}", FailureKind.GARBAGE)
        if ids or text:
            self.begun = True
            self.progress += 1
            stream.push(text, ids, len(ids) if ids else 1)
        elif called or (delta and any(delta.get(field) for field in _SAYING)):
            self.begun = True
            self.progress += 1
        if called:
            self._calls.add(called)
            stream.push("", None, 0 if ids or text else 1)
        if (finish := choice.get("finish_reason")) is not None:
            self._finish(str(finish))
        if chunk.get("usage"):
            self._read_usage(chunk)

    def _finish(self, reason: str) -> None:
        if reason in _BROKEN_FINISHES:
            raise EngineFailed(f"the replica ended the answer with {reason!r}", FailureKind.ERROR)
        self.finish_reason = reason

    def _read_prompt(self, chunk: dict[str, Any], choice: dict[str, Any], stream: MergedStream) -> None:
        ids = chunk.get("prompt_token_ids") or choice.get("prompt_token_ids")
        if ids:
            self._prompt_told = True
            stream.set_prompt(tuple(ids))

    def _read_usage(self, chunk: dict[str, Any]) -> None:
        usage = chunk.get("usage")
        if usage:
            details = usage.get("prompt_tokens_details") or {}
            self.usage = Usage(
                prompt_tokens=int(usage["prompt_tokens"]),
                completion_tokens=int(usage["completion_tokens"]),
                cached_tokens=int(details.get("cached_tokens") or 0),
            )


def stream_error(chunk: dict[str, Any]) -> InferenceError:
    """The meaning of an error object that came as an event, after the status had said 200."""
    said = _message_in(chunk)
    if said is None:
        raise TypeError("neither choices nor an error")
    error = chunk.get("error")
    code = error.get("code") if isinstance(error, dict) else chunk.get("code")
    if code in (429, 503) and not any(word in said.lower() for word in _LEAVING):
        return EngineOverloaded(None, said)
    if isinstance(code, int) and 400 <= code < 500:
        return EngineRejected(code, said)
    return EngineFailed(f"the replica reported an error: {said}", FailureKind.ERROR)


def error_message(body: bytes) -> str | None:
    """The sentence in an error body, of OpenAI's, vLLM's or FastAPI's shape."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:200].decode("utf-8", "replace").strip() or None
    return _message_in(value) if isinstance(value, dict) else None


def _message_in(value: dict[str, Any]) -> str | None:
    error = value.get("error", value.get("message", value.get("detail")))
    if isinstance(error, dict):
        error = error.get("message", error)
    return None if error is None else str(error)[:500]
