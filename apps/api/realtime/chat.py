"""`POST /v1/chat/completions`: a durable run, told in OpenAI's words.

The response starts with the first token (or after a heartbeat's wait), so that a refusal or an early failure has
its own HTTP status. A client that goes away in mid-answer means "stop" in this API, so its run is cancelled,
unless it asked to detach.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import orjson
import structlog
from django.conf import settings

from apps.accounts.public import Allowance, check_rate_on_loop, peek_rate_on_loop
from apps.accounts.types import Actor
from apps.api.realtime.answer import (
    DONE,
    HEARTBEAT,
    Answer,
    ChunkEncoder,
    completion_body,
    error_chunk,
    finish_reason,
)
from apps.api.realtime.errors import ApiError, from_run
from apps.api.realtime.exchange import Exchange
from apps.api.selectors import chat_messages, parse_chat, run_params
from apps.api.types import ChatRequest
from apps.conversations.public import ApiCall, Lane, StartedRun, cancel_run, find_api_run, start_api_run
from apps.conversations.realtime import Reader, frame_data, relay
from apps.core.db import in_db
from apps.core.errors import AppError, Invalid, RateLimited
from apps.core.ids import new_id

log = structlog.get_logger(__name__)
KEY_MAX_CHARS = 200
_ANSWERED = ("completed", "incomplete")
_DIVERGED = ApiError(
    500, "A fault changed the answer after part of it was sent. Ask again, or read it by its run id.", "answer_changed"
)
STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
}


@dataclass(slots=True)
class _Call:
    """One request and the run that answers it."""

    exchange: Exchange
    actor: Actor
    request: ChatRequest
    run: StartedRun
    allowance: Allowance
    detached: bool
    began: float
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def id(self) -> str:
        return f"chatcmpl-{self.run.run_id.hex}"

    @property
    def headers(self) -> dict[str, str]:
        return rate_headers(self.allowance) | {
            "x-parley-run-id": str(self.run.run_id),
            "x-parley-conversation-id": str(self.run.conversation_id),
            "openai-processing-ms": str(round((time.monotonic() - self.began) * 1000)),
        }


def rate_headers(allowance: Allowance) -> dict[str, str]:
    return {
        "x-ratelimit-limit-requests": str(allowance.limit),
        "x-ratelimit-remaining-requests": str(allowance.remaining),
        "x-ratelimit-reset-requests": f"{allowance.reset_s:.3g}s",
    }


async def chat_completions(exchange: Exchange, actor: Actor) -> None:
    """Answer one request. Raises AppErrors for what is refused before the response starts."""
    began = time.monotonic()
    body = await exchange.body()
    request = parse_chat(body)
    key = exchange.header(b"idempotency-key")
    if key and len(key) > KEY_MAX_CHARS:
        raise Invalid(f"Idempotency-Key is longer than {KEY_MAX_CHARS} characters.", param="Idempotency-Key")
    detached = exchange.header(b"x-parley-detach") == "true"
    asked = ApiCall(request.model, chat_messages(request), run_params(request), key or None, exchange.id)
    run, reader, allowance = await _start(actor, asked)
    call = _Call(exchange, actor, request, run, allowance, detached, began)
    exchange.on_disconnect(reader.stop)
    try:
        if request.stream:
            await _stream(call, reader)
        else:
            await _collect(call, reader)
    finally:
        relay().close(reader)
        if not reader.ended:
            await _leave(call)


async def _start(actor: Actor, asked: ApiCall) -> tuple[StartedRun, Reader, Allowance]:
    """The run of this call, and its reader, who is there before the run so that nothing has to be read again."""
    try:
        allowance = await check_rate_on_loop(relay().valkey, actor, "run")
    except RateLimited:
        # What was accepted once is not refused when its client asks again.
        if (run := await in_db(find_api_run, actor, asked)) is None:
            raise
        return run, await relay().open(run.run_id, 0), await peek_rate_on_loop(relay().valkey, actor, "run")
    reader = relay().expect(new_id())
    try:
        run = await in_db(start_api_run, actor, asked, run_id=reader.run_id)
    except BaseException:
        relay().close(reader)
        raise
    if run.created:
        await relay().offer(Lane.INTERACTIVE, reader)
    else:
        relay().close(reader)
        reader = await relay().open(run.run_id, 0)
    return run, reader, allowance


async def _leave(call: _Call) -> None:
    """The client went away before the end. Another request with the same key may still read a replayed run."""
    if call.detached or not call.run.created:
        return
    try:
        await asyncio.shield(in_db(cancel_run, call.actor, call.run.run_id))
    except AppError as error:
        log.warning("v1.not_cancelled", run_id=str(call.run.run_id), error=error.code)


async def _collect(call: _Call, reader: Reader) -> None:
    """The whole answer at once, from the run's last event."""
    answer = Answer(call.request.model)
    while answer.final is None:
        frames = await reader.take(settings.RUN_HEARTBEAT_S)
        if reader.closed:
            return
        for frame in frames:
            answer.feed(orjson.loads(frame_data(frame)))
    if answer.final["state"] not in _ANSWERED:
        await call.exchange.send_error(from_run(answer.final["error"], answer.final["state"]), call.headers)
        return
    await call.exchange.send_json(200, completion_body(call.id, call.created, answer), call.headers)


async def _stream(call: _Call, reader: Reader) -> None:
    """The answer as it comes. One write for all that arrived together."""
    answer = Answer(call.request.model)
    encoder: ChunkEncoder | None = None
    exchange = call.exchange
    while answer.final is None:
        frames = await reader.take(settings.RUN_HEARTBEAT_S)
        if reader.closed:
            return
        texts = [text for frame in frames if (text := answer.feed(orjson.loads(frame_data(frame))))]
        if texts and encoder is None:
            encoder = _encoder(call, answer)
            await exchange.start_stream(STREAM_HEADERS | call.headers)
            await exchange.write(encoder.role() + b"".join(map(encoder.text, texts)))
        elif texts and encoder is not None:
            await exchange.write(b"".join(map(encoder.text, texts)))
        elif not frames:
            await exchange.start_stream(STREAM_HEADERS | call.headers)
            await exchange.write(HEARTBEAT)
    await _end_stream(call, answer, encoder)


def _encoder(call: _Call, answer: Answer) -> ChunkEncoder:
    return ChunkEncoder(id=call.id, created=call.created, model=answer.model, include_usage=call.request.include_usage)


async def _end_stream(call: _Call, answer: Answer, encoder: ChunkEncoder | None) -> None:
    exchange, final = call.exchange, answer.final
    if final is None:
        return
    error = None
    if final["state"] not in _ANSWERED:
        error = from_run(final["error"], final["state"])
    elif not answer.is_faithful:
        error = _DIVERGED
    if error is not None and not exchange.started:
        await exchange.send_error(error, call.headers)
        return
    await exchange.start_stream(STREAM_HEADERS | call.headers)
    if error is not None:
        await exchange.write(error_chunk(error.body), last=True)
        return
    head = b"" if encoder is not None else _encoder(call, answer).role()
    encoder = encoder or _encoder(call, answer)
    if calls := final["message"].get("tool_calls"):
        head += encoder.tool_calls(calls)
    usage = encoder.usage(final["usage"]) if call.request.include_usage else b""
    await exchange.write(head + encoder.finish(finish_reason(final)) + usage + DONE, last=True)
