"""One HTTP exchange over raw ASGI: no framework between a chunk and the socket.

Reads a bounded body, writes JSON or a stream, and tells when the client has gone (the server tells nobody who
does not listen).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import orjson

from apps.api.realtime.errors import ApiError
from apps.core.errors import TooLarge
from apps.core.http import MAX_BODY_BYTES
from apps.core.middleware import request_id_from

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class Exchange:
    """A request and its response. Not for use by two tasks at once, except the watch for the client's leaving."""

    __slots__ = ("_headers", "_receive", "_send", "_watch", "id", "scope", "started")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self._headers: dict[bytes, bytes] = dict(scope["headers"])
        self.id = request_id_from(self.header(b"x-request-id"))
        self.started = False
        self._watch: asyncio.Task[None] | None = None

    def header(self, name: bytes) -> str | None:
        value = self._headers.get(name)
        return None if value is None else value.decode("latin-1")

    async def body(self) -> bytes:
        """The whole body. Raises TooLarge beyond the limit, ClientGone when it never came."""
        parts, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > MAX_BODY_BYTES:
                raise TooLarge("The request is larger than 1 MiB. Shorten the messages.")
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)

    def on_disconnect(self, gone: Callable[[], None]) -> None:
        """Call `gone` once the client has left. Only after the body was read."""

        async def watch() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            gone()

        self._watch = asyncio.create_task(watch())

    async def start_stream(self, headers: Mapping[str, str]) -> None:
        """Send status 200 and the headers, unless that has been done."""
        if not self.started:
            await self._start(200, headers)

    async def write(self, data: bytes, *, last: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": not last})

    async def send_json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        data = orjson.dumps(body, default=str)
        fields = {"content-type": "application/json", "content-length": str(len(data)), "cache-control": "no-store"}
        await self._start(status, fields | dict(headers or {}))
        await self.write(data, last=True)

    async def send_error(self, error: ApiError, headers: Mapping[str, str] | None = None) -> None:
        await self.send_json(error.status, error.body, dict(headers or {}) | error.headers)

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def _start(self, status: int, headers: Mapping[str, str]) -> None:
        self.started = True
        fields = {"x-request-id": self.id, **headers}
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
