"""`GET /api/runs/{id}/events`: a run's events as server-sent events, from wherever the reader stopped."""

from __future__ import annotations

import asyncio
from uuid import UUID

from django.conf import settings

from apps.accounts.public import actor_of_scope
from apps.accounts.types import Actor
from apps.conversations.access import access_run
from apps.conversations.realtime.asgi_http import (
    Receive,
    Scope,
    Send,
    header,
    query,
    request_id,
    send_problem,
    start,
    until_disconnect,
)
from apps.conversations.realtime.relay import Reader, relay
from apps.conversations.selectors import View, answer_view
from apps.conversations.types import TERMINAL
from apps.core.db import in_db
from apps.core.errors import Gone, Invalid, NotAuthenticated

HEARTBEAT = b": hb\n\n"
HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",
    "x-accel-buffering": "no",
}


async def run_events(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI endpoint. 401, 404 and 410 (with the final message) come before the stream starts."""
    id = request_id(scope)
    try:
        reader, first = await _open(scope)
    except Exception as error:  # noqa: BLE001 - the edge: everything becomes a response
        await send_problem(send, error, id)
        return
    gone = asyncio.create_task(until_disconnect(receive))
    gone.add_done_callback(lambda _: reader.stop())
    try:
        await start(send, 200, {**HEADERS, "x-request-id": id})
        await _stream(reader, first, send)
    finally:
        gone.cancel()
        relay().close(reader)


async def _open(scope: Scope) -> tuple[Reader, list[bytes]]:
    actor = await actor_of_scope(scope)
    if actor is None:
        raise NotAuthenticated("Sign in, or send a valid API key.")
    after = max(_number(header(scope, b"last-event-id")), _number(query(scope, "starting_after")))
    run_id: UUID = scope["url_route"]["kwargs"]["run_id"]
    final = await in_db(_final_message, actor, run_id)
    reader = await relay().open(run_id, after)
    first = await reader.take(0)
    if final is not None and not first:
        relay().close(reader)
        raise Gone("This stream has ended and its events are no longer kept. Here is the message.", message=final)
    return reader, first


def _final_message(actor: Actor, run_id: UUID) -> View | None:
    """The answer of a finished run; None while it is active. Raises NotFound."""
    run = access_run(actor, run_id)
    return answer_view(run) if run.state in TERMINAL else None


def _number(value: str | None) -> int:
    if not value:
        return 0
    if not value.isdecimal() or len(value) > 12:
        raise Invalid("Last-Event-ID and starting_after are sequence numbers.")
    return int(value)


async def _stream(reader: Reader, frames: list[bytes], send: Send) -> None:
    body = b"".join(frames) or HEARTBEAT
    while True:
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if reader.ended or reader.closed:
            break
        body = b"".join(await reader.take(settings.RUN_HEARTBEAT_S)) or HEARTBEAT
    await send({"type": "http.response.body", "body": b""})
