"""Small helpers for the raw ASGI endpoints that stream: no framework between a frame and the socket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs

import orjson
import structlog

from apps.core.errors import AppError
from apps.core.http import PROBLEM, as_app_error, problem, problem_headers
from apps.core.middleware import request_id_from

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
log = structlog.get_logger(__name__)


def header(scope: Scope, name: bytes) -> str | None:
    """The first value of a header (lower-case `name`)."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def query(scope: Scope, name: str) -> str | None:
    values = parse_qs(scope.get("query_string", b"").decode("latin-1")).get(name)
    return values[0] if values else None


def request_id(scope: Scope) -> str:
    return request_id_from(header(scope, b"x-request-id"))


async def send_json(
    send: Send, status: int, body: Any, headers: Mapping[str, str], content_type: str = "application/json"
) -> None:
    data = orjson.dumps(body, option=orjson.OPT_UTC_Z, default=str)
    fields = {"content-type": content_type, "content-length": str(len(data)), "cache-control": "no-store", **headers}
    await start(send, status, fields)
    await send({"type": "http.response.body", "body": data})


async def start(send: Send, status: int, headers: Mapping[str, str]) -> None:
    pairs = [(key.lower().encode(), value.encode("latin-1")) for key, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def send_problem(send: Send, error: Exception, id: str) -> None:
    """Answer with the problem body of an expected error; log and hide an unexpected one."""
    known = as_app_error(error)
    if known is None:
        log.error("stream.crashed", request_id=id, exc_info=error)
        known = AppError("Something went wrong on our side. Give the request id to support.")
    await send_json(send, known.status, problem(known, id), {"x-request-id": id, **problem_headers(known)}, PROBLEM)


async def until_disconnect(receive: Receive) -> None:
    """Return when the client has gone. The server tells nobody who does not listen."""
    while (await receive())["type"] != "http.disconnect":
        pass
