"""What a run's events mean to a client that can only append: new text, never a retraction.

After a fault a run's events may repeat text (a snapshot, a resumed attempt). `Answer` sends each character once,
and finds out at the end whether what was sent is what was saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson


class Answer:
    """The text of one answer as a client has it so far."""

    __slots__ = ("_parts", "final", "model", "sent")

    def __init__(self, model: str) -> None:
        self.model = model
        self.sent = 0
        self.final: Mapping[str, Any] | None = None
        self._parts: list[str] = []

    def feed(self, event: Mapping[str, Any]) -> str:
        """Take one event; returns the text that the client has not got yet, often empty."""
        kind = event["type"]
        if kind == "text":
            return self._append(event["at"], event["text"])
        if kind == "snapshot":
            return self._append(0, event["text"])
        if kind == "state":
            self.model = event.get("model") or self.model
        elif kind == "done":
            self.final = event
            self.model = event["message"].get("model") or self.model
            return self._append(0, event["message"]["text"])
        return ""

    @property
    def is_faithful(self) -> bool:
        """Whether the client has exactly the text that was saved. Meaningful once `final` is set."""
        return self.final is not None and "".join(self._parts) == self.final["message"]["text"]

    def _append(self, at: int, text: str) -> str:
        # Text from beyond a gap is left for the end, when the whole text comes.
        new = text[self.sent - at :] if at <= self.sent else ""
        if new:
            self.sent += len(new)
            self._parts.append(new)
        return new


DONE: Final = b"data: [DONE]\n\n"
HEARTBEAT: Final = b": hb\n\n"


class ChunkEncoder:
    """Server-sent `chat.completion.chunk`s. What all chunks share is encoded once; a delta costs one dumps."""

    __slots__ = ("_base", "_head", "_tail", "_usage")

    def __init__(self, *, id: str, created: int, model: str, include_usage: bool) -> None:
        shared = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._base = b"data: " + orjson.dumps(shared)[:-1]
        # With include_usage OpenAI sends the field in every chunk, null in all but the last.
        self._usage = b',"usage":null}\n\n' if include_usage else b"}\n\n"
        self._head = self._base + b',"choices":[{"index":0,"delta":{"content":'
        self._tail = b'},"logprobs":null,"finish_reason":null}]' + self._usage

    def role(self) -> bytes:
        delta = b'{"role":"assistant","content":"","refusal":null}'
        return b"%b%b%b" % (self._choice(delta), b'"logprobs":null,"finish_reason":null}]', self._usage)

    def text(self, text: str) -> bytes:
        return self._head + orjson.dumps(text) + self._tail

    def tool_calls(self, calls: Sequence[Mapping[str, Any]]) -> bytes:
        """All calls at once: they are given out when they are whole."""
        delta = orjson.dumps({"tool_calls": [{"index": n, **call} for n, call in enumerate(calls)]})
        return b'%b"logprobs":null,"finish_reason":null}]%b' % (self._choice(delta), self._usage)

    def finish(self, reason: str) -> bytes:
        return b'%b"logprobs":null,"finish_reason":%b}]%b' % (self._choice(b"{}"), orjson.dumps(reason), self._usage)

    def usage(self, usage: Mapping[str, Any]) -> bytes:
        return b'%b,"choices":[],"usage":%b}\n\n' % (self._base, orjson.dumps(usage_body(usage)))

    def _choice(self, delta: bytes) -> bytes:
        return b'%b,"choices":[{"index":0,"delta":%b,' % (self._base, delta)


def error_chunk(body: Mapping[str, Any]) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def finish_reason(final: Mapping[str, Any]) -> str:
    """OpenAI's word for how an answer ended well."""
    if final["message"].get("tool_calls"):
        return "tool_calls"
    return "length" if final["state"] == "incomplete" or final.get("finish_reason") == "length" else "stop"


def usage_body(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "prompt_tokens": usage["prompt_tokens"],
        "completion_tokens": usage["completion_tokens"],
        "total_tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage["cached_tokens"]},
    }


def completion_body(id: str, created: int, answer: Answer) -> dict[str, Any]:
    """The whole answer of a request that does not stream."""
    final = answer.final or {}
    text, calls = final["message"]["text"], final["message"].get("tool_calls")
    return {
        "id": id,
        "object": "chat.completion",
        "created": created,
        "model": answer.model,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": text or None if calls else text,
                    "refusal": None,
                    "annotations": [],
                    **({"tool_calls": calls} if calls else {}),
                },
                "logprobs": None,
                "finish_reason": finish_reason(final),
            }
        ],
        "usage": usage_body(final["usage"]),
        "system_fingerprint": None,
    }
