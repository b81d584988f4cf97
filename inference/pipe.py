"""A pipelined connection to Valkey for an event loop: any number of calls in flight, one write a turn of the loop.

Streams make thousands of small calls a second. The well-kept client takes a connection from a pool, a lock, a timer
and a task switch for each; here a call is a packed command and a future. It is for calls only: no subscriptions and
no transactions, for which `new_async_valkey` is there. `docs/adr/0012` has the measurements.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import hiredis
import redis
from redis.asyncio.connection import parse_url

Argument = bytes | str | int | float
CONNECT_S = 1.0
MAX_CALLS = 50_000


class Script:
    """A Lua script, sent as its digest once the server knows it."""

    __slots__ = ("digest", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self.digest = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()


def _refusal(message: str) -> redis.ResponseError:
    return redis.exceptions.NoScriptError(message) if message.startswith("NOSCRIPT") else redis.ResponseError(message)


class _Link(asyncio.Protocol):
    """One connection. Replies come in the order of the calls."""

    def __init__(self, patience_s: float) -> None:
        self.patience_s = patience_s
        self.lost: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(protocolError=redis.InvalidResponse, replyError=_refusal, notEnoughData=self)
        self._calls: deque[asyncio.Future[Any]] = deque()
        self._out: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._heard_at = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(redis.ConnectionError(f"Valkey closed the connection: {exc}" if exc else "Valkey is away."))

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        reader, calls = self._reader, self._calls
        reader.feed(data)
        try:
            while (reply := reader.gets()) is not self:
                call = calls.popleft()
                if call.done():
                    continue  # its caller was cancelled
                if isinstance(reply, redis.ResponseError):
                    call.set_exception(reply)
                else:
                    call.set_result(reply)
        except redis.InvalidResponse as error:
            self.close(error)

    def call(self, packed: bytes) -> asyncio.Future[Any]:
        if self.lost is not None:
            raise self.lost
        if len(self._calls) >= MAX_CALLS:
            raise redis.ConnectionError("Too many calls to Valkey are unanswered.")
        if not self._out:
            self._loop.call_soon(self._write)
        self._out.append(packed)
        if not self._calls:
            self._heard_at = self._loop.time()
        future: asyncio.Future[Any] = self._loop.create_future()
        self._calls.append(future)
        if self._watch is None:
            self._watch = self._loop.call_later(self.patience_s, self._look)
        return future

    def _write(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _look(self) -> None:
        """One timer for all calls: a server that owes an answer and says nothing is away."""
        self._watch = None
        if not self._calls:
            return
        left = self._heard_at + self.patience_s - self._loop.time()
        if left <= 0:
            self.close(redis.TimeoutError(f"Valkey did not answer within {self.patience_s:g} s."))
        else:
            self._watch = self._loop.call_later(left, self._look)

    def close(self, reason: Exception) -> None:
        if self.lost is None:
            self.lost = reason
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        calls, self._calls = self._calls, deque()
        for call in calls:
            if not call.done():
                call.set_exception(reason)
        if self._transport is not None:
            self._transport.abort()


class Pipe:
    """Calls to one server over one connection, made again when it was lost.

    `patience_s`: how long the server may owe an answer; more than the wait of a blocking call. Every method raises
    redis.RedisError: ResponseError for the server's refusal, ConnectionError or TimeoutError when it is away. What
    was in flight then may or may not have been done.
    """

    def __init__(self, url: str, *, patience_s: float = 5.0) -> None:
        self.url, self.patience_s = url, patience_s
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None

    async def call(self, *command: Argument) -> Any:
        """One command's reply, bytes where the server sends text."""
        link = self._link
        if link is None or link.lost is not None:
            link = await self._connected()
        return await link.call(hiredis.pack_command(command))  # type: ignore[arg-type]

    async def calls(self, *commands: Sequence[Argument]) -> list[Any]:
        """The replies of commands sent together. All are sent, whatever the earlier ones come to."""
        link = self._link
        if link is None or link.lost is not None:
            link = await self._connected()
        futures = [link.call(hiredis.pack_command(tuple(command))) for command in commands]  # type: ignore[arg-type]
        await asyncio.wait(futures[-1:])
        for future in futures:
            if (error := future.exception()) is not None:
                raise error
        return [future.result() for future in futures]

    async def run(self, script: Script, *arguments: Argument, keys: Sequence[str] = ()) -> Any:
        """A script's reply. A server that does not know it is sent the source."""
        try:
            return await self.call("EVALSHA", script.digest, len(keys), *keys, *arguments)
        except redis.exceptions.NoScriptError:
            return await self.call("EVAL", script.source, len(keys), *keys, *arguments)

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._link is not None:
            self._link.close(redis.ConnectionError("This connection was closed."))
            # The transport is gone one turn later.
            await asyncio.sleep(0)
            self._link = None

    async def _connected(self) -> _Link:
        """The connection; all who find none wait for the same attempt."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._settle)
        return await asyncio.shield(self._connecting)

    def _settle(self, task: asyncio.Task[_Link]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._link = task.result()

    async def _connect(self) -> _Link:
        wanted: Mapping[str, Any] = parse_url(self.url)
        loop = asyncio.get_running_loop()
        secure = _tls(wanted) if self.url.startswith("rediss:") else None
        try:
            async with asyncio.timeout(CONNECT_S):
                if path := wanted.get("path"):
                    _, link = await loop.create_unix_connection(lambda: _Link(self.patience_s), path)
                else:
                    host, port = wanted.get("host", "127.0.0.1"), int(wanted.get("port", 6379))
                    _, link = await loop.create_connection(lambda: _Link(self.patience_s), host, port, ssl=secure)
                await _introduce(link, wanted)
                return link
        except TimeoutError as error:
            raise redis.TimeoutError(f"Valkey took no connection within {CONNECT_S:g} s.") from error
        except OSError as error:
            raise redis.ConnectionError(f"Valkey takes no connections: {error}") from error


def _tls(wanted: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=wanted.get("ssl_ca_certs"))
    if wanted.get("ssl_cert_reqs") == "none":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def _introduce(link: _Link, wanted: Mapping[str, Any]) -> None:
    try:
        if password := wanted.get("password"):
            user = [wanted["username"]] if wanted.get("username") else []
            await link.call(hiredis.pack_command(("AUTH", *user, password)))
        if database := wanted.get("db"):
            await link.call(hiredis.pack_command(("SELECT", int(database))))  # type: ignore[arg-type]
    except BaseException:
        link.close(redis.ConnectionError("The connection could not be opened."))
        raise
