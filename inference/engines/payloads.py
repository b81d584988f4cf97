"""Request bodies for OpenAI-compatible servers, and which additions a server understands.

Responsible for: fresh requests, continuation by token ids or by text, vLLM's extra fields, its internal request ids
and its capabilities by version. Pure functions; leaves the sending to `openai_http`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from inference.protocol import ChatMessage, EngineRejected, GenerationRequest, Resume

VLLM = frozenset({"token_ids", "cache_salt", "usage", "continue", "tokenize", "metrics", "abort"})
_CHAT_ONLY = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs", "reasoning_effort", "top_logprobs"}
)
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Call:
    """One request to send. `lag`: text to give first, held in the ids but not yet given to the reader."""

    path: str
    body: bytes
    max_tokens: int
    by_ids: bool = False
    lag: str = ""


def capabilities_of(version: str) -> frozenset[str]:
    """What a vLLM of this version understands. Priority is not in it: it depends on the server's flags."""
    return VLLM if version_of(version) >= (0, 11) else frozenset({"usage", "continue", "tokenize", "metrics"})


def version_of(version: str) -> tuple[int, int]:
    """Major and minor number; what is no number counts as newer than all."""
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (1, 0)


def engine_ids(request_id: str) -> list[str]:
    """The names vLLM gives a request that came with this X-Request-Id, for chat and for completions."""
    return [f"chatcmpl-{request_id}", f"cmpl-{request_id}", f"cmpl-{request_id}-0"]


def messages_of(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    return [message.view() for message in messages]


def text_not_given(whole: str, given: str) -> str:
    """The end of `whole` that the reader lacks: engines hold text back that may become a stop string, while its ids
    are out already. A character that is not complete yet is left to the continuation."""
    whole = whole.rstrip("\ufffd")
    return whole[len(given) :] if whole.startswith(given) else ""


def build_call(request: GenerationRequest, model: str, capabilities: frozenset[str], *, lag: str = "") -> Call:
    """EngineRejected when the server cannot continue what `request.resume` holds."""
    resume = request.resume
    if resume is None:
        return _chat_call(request, model, capabilities, request.messages, request.max_tokens, {})
    if resume.by_ids and "token_ids" in capabilities:
        return _ids_call(request, model, capabilities, resume, lag)
    if not resume.text:
        return _chat_call(request, model, capabilities, request.messages, request.max_tokens, {})
    if "continue" not in capabilities:
        raise EngineRejected(501, "this server cannot continue an answer")
    said = len(resume.token_ids) or len(resume.text) // _CHARS_PER_TOKEN
    messages = (*request.messages, ChatMessage("assistant", resume.text))
    more = {"continue_final_message": True, "add_generation_prompt": False}
    return _chat_call(request, model, capabilities, messages, request.max_tokens - said, more)


def _chat_call(
    request: GenerationRequest,
    model: str,
    capabilities: frozenset[str],
    messages: Sequence[ChatMessage],
    max_tokens: int,
    more: dict[str, Any],
) -> Call:
    body = {
        **request.extra,
        **_common(request, model, capabilities),
        **more,
        "messages": messages_of(messages),
        "max_tokens": max_tokens,
    }
    return Call("/v1/chat/completions", orjson.dumps(body), max_tokens)


def _ids_call(request: GenerationRequest, model: str, capabilities: frozenset[str], resume: Resume, lag: str) -> Call:
    extra = {k: v for k, v in request.extra.items() if k not in _CHAT_ONLY}
    max_tokens = request.max_tokens - len(resume.token_ids)
    body = {
        **extra,
        **_common(request, model, capabilities),
        "prompt": [*resume.prompt_token_ids, *resume.token_ids],
        "max_tokens": max_tokens,
    }
    return Call("/v1/completions", orjson.dumps(body), max_tokens, by_ids=True, lag=lag)


def _common(request: GenerationRequest, model: str, capabilities: frozenset[str]) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "stream": True}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if "usage" in capabilities:
        body["stream_options"] = {"include_usage": True}
    if "token_ids" in capabilities:
        body["return_token_ids"] = True
    if request.cache_salt and "cache_salt" in capabilities:
        body["cache_salt"] = request.cache_salt
    if request.priority and "priority" in capabilities:
        body["priority"] = request.priority
    return body
