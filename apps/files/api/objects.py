"""`/storage/`: signed PUT and GET of the filesystem store, as plain ASGI.

Django would collect a whole body before a view runs; here bytes go to disk as they arrive, one bounded buffer
an upload. The signature in the address is the whole authorization: it was given out after an access check.
With an S3 store this answers 404, because browsers talk to the store itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, TypeVar
from urllib.parse import quote

import orjson
import structlog

from apps.core.errors import AppError, Invalid, NotFound, TooLarge
from apps.core.http import PROBLEM, problem, problem_headers
from apps.core.middleware import request_id_from
from apps.files.storage import StorageUnavailable, storage
from apps.files.storage.filesystem import FilesystemStorage, PartWriter
from apps.files.storage.signing import GET_PATH, PUT_PATH, GetGrant, PutGrant, verify

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")

IDLE_S = 60.0
_BUFFER = 1 << 20
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="objects")
log = structlog.get_logger(__name__)


class RangeNotSatisfiable(AppError):
    code, status, title = "invalid", 416, "No such range of bytes"


class MethodNotAllowed(AppError):
    code, status, title = "invalid", 405, "Method not allowed"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application for paths below /storage/."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    request_id = request_id_from(headers.get("x-request-id"))
    try:
        await _dispatch(scope, headers, request_id, receive, send)
    except AppError as error:
        body = orjson.dumps(problem(error, request_id))
        await _respond(
            send,
            error.status,
            {**problem_headers(error), "content-type": PROBLEM},
            request_id,
            body,
        )
    except ClientGone:
        log.info("objects.client_gone", request_id=request_id)
    except OSError as error:
        log.error("objects.disk", request_id=request_id, error=str(error))
        unavailable = StorageUnavailable()
        body = orjson.dumps(problem(unavailable, request_id))
        await _respond(
            send,
            503,
            {**problem_headers(unavailable), "content-type": PROBLEM},
            request_id,
            body,
        )


class ClientGone(Exception):
    """The other side closed the connection; there is nobody to answer."""


async def _dispatch(scope: Scope, headers: dict[str, str], request_id: str, receive: Receive, send: Send) -> None:
    path, method, store = scope["path"], scope["method"], storage()
    if not isinstance(store, FilesystemStorage) or not path.startswith((PUT_PATH, GET_PATH)):
        raise NotFound("There is nothing here.")
    if path.startswith(PUT_PATH):
        if method != "PUT":
            raise MethodNotAllowed("Send the part with PUT.")
        etag = await _receive_part(store, verify(PutGrant, path.removeprefix(PUT_PATH)), headers, receive)
        await _respond(send, 200, {"etag": f'"{etag}"'}, request_id)
        return
    if method not in ("GET", "HEAD"):
        raise MethodNotAllowed("Read the object with GET.")
    await _send_object(
        store,
        verify(GetGrant, path.removeprefix(GET_PATH)),
        headers,
        request_id,
        method,
        send,
    )


# Receiving


async def _receive_part(store: FilesystemStorage, grant: PutGrant, headers: dict[str, str], receive: Receive) -> str:
    announced = headers.get("content-length", "")
    if announced.isdigit() and int(announced) > grant.size:
        raise TooLarge(f"This part may have {grant.size} bytes and no more.")
    writer = await _in_thread(store.open_part, grant)
    try:
        await _copy_body(receive, writer)
        return await _in_thread(writer.commit)
    finally:
        writer.discard()


async def _copy_body(receive: Receive, writer: PartWriter) -> None:
    buffer = bytearray()
    more = True
    while more:
        message = await _next(receive)
        buffer += message.get("body", b"")
        more = message.get("more_body", False)
        if len(buffer) >= _BUFFER or not more:
            await _in_thread(writer.write, bytes(buffer))
            buffer.clear()


async def _next(receive: Receive) -> MutableMapping[str, Any]:
    try:
        async with asyncio.timeout(IDLE_S):
            message = await receive()
    except TimeoutError as error:
        raise Invalid(f"No bytes arrived for {IDLE_S:.0f} seconds. Send the part again.") from error
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message


# Sending


async def _send_object(
    store: FilesystemStorage,
    grant: GetGrant,
    headers: dict[str, str],
    request_id: str,
    method: str,
    send: Send,
) -> None:
    size = await _in_thread(store.size, grant.key)
    if size is None:
        raise NotFound("This file's content is not there any more.")
    start, end = _range(headers.get("range"), size)
    partial = (start, end) != (0, size)
    answer = _object_headers(grant) | {"content-length": str(end - start)}
    if partial:
        answer["content-range"] = f"bytes {start}-{end - 1}/{size}"
    await _start(send, 206 if partial else 200, answer, request_id)
    if method == "GET":
        async with aclosing(_chunks(store.read(grant.key, start=start, end=end))) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _chunks(source: Iterator[bytes]) -> Any:
    while (chunk := await _in_thread(next, source, b"")) != b"":
        yield chunk


def _object_headers(grant: GetGrant) -> dict[str, str]:
    """A stored file is somebody's upload: it never runs or renders as a page of ours."""
    kind = "inline" if grant.inline else "attachment"
    return {
        "content-type": grant.content_type,
        "content-disposition": f"{kind}; filename*=UTF-8''{quote(grant.filename, safe='')}",
        "content-security-policy": "default-src 'none'; sandbox",
        "x-content-type-options": "nosniff",
        "accept-ranges": "bytes",
        "cache-control": "private, no-store",
    }


def _range(header: str | None, size: int) -> tuple[int, int]:
    """The half-open range asked for. Several ranges or an unknown unit mean the whole object (RFC 9110)."""
    match = _RANGE.fullmatch(header or "")
    if match is None or match.groups() == ("", ""):
        return 0, size
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= end:
        raise RangeNotSatisfiable(f"The file has {size} bytes.")
    return start, end


# Answers


async def _start(send: Send, status: int, headers: dict[str, str], request_id: str) -> None:
    pairs = [(name.lower().encode(), value.encode()) for name, value in {**headers, "x-request-id": request_id}.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})


async def _respond(send: Send, status: int, headers: dict[str, str], request_id: str, body: bytes = b"") -> None:
    await _start(send, status, {**headers, "content-length": str(len(body))}, request_id)
    await send({"type": "http.response.body", "body": body})


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads, function, *args)
