"""A small HTTP/1.1 client on asyncio transports: keep-alive connections, one exchange at a time on each.

Responsible for: connections and their bounds, timeouts to connect and to the first byte, reading a response piece
by piece into a sink without a task a piece, and back-pressure. Written because general clients cost several times
as much a token. Leaves to `openai_http` what requests and responses mean.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Protocol, cast
from urllib.parse import urlsplit

import httptools

HANG_S, FIRST_TOKEN_S, PREFILL_RATE = 12.0, 60.0, 200.0
_MAX_HEADERS = 100
_STALE = "closed before it answered"


class HttpError(Exception):
    """The exchange failed below HTTP: no connection, a broken one, a timeout, or bytes that are not HTTP."""


class TooLate(HttpError):
    """There is a connection, and nothing comes from it."""


class Sink(Protocol):
    """Where one response goes. After `on_end` or `on_lost` nothing more comes."""

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None: ...

    def on_body(self, data: bytes) -> None: ...

    def on_end(self) -> None: ...

    def on_lost(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds.

    `idle`: between two tokens of an answer. `silence`: while an answer waits for its first token, how long all answers
    of the server may be silent together. `first_token`: how long the first may take although others are heard. What
    the server needs to read the prompt comes on top of both, at `prefill_rate` tokens a second. `first_byte` bounds
    the wait for any response's head, `small` whole exchanges that are no answers."""

    connect: float = 5.0
    first_byte: float = 600.0
    silence: float = HANG_S
    first_token: float = FIRST_TOKEN_S
    idle: float = HANG_S
    prefill_rate: float = PREFILL_RATE
    small: float = 5.0


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Connection(asyncio.Protocol):
    """One connection. `fresh` until its first response has ended."""

    __slots__ = ("_client", "_headers", "_parser", "_sink", "_sized", "fresh", "idle_since", "silent", "transport")

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._parser = httptools.HttpResponseParser(self)
        self._sink: Sink | None = None
        self._headers: dict[bytes, bytes] = {}
        self._sized = False
        self.transport: asyncio.Transport | None = None
        self.fresh = True
        self.silent = True
        self.idle_since = 0.0

    def send(self, data: bytes, sink: Sink) -> None:
        assert self.transport is not None
        self._sink, self.silent = sink, True
        self.transport.write(data)

    def close(self) -> None:
        """Drop the connection at once; what it was reading is not told."""
        self._sink = None
        if self.transport is not None:
            self.transport.abort()

    def close_if_read_by(self, sink: Sink) -> None:
        """Close, unless that sink's response has ended meanwhile."""
        if self._sink is sink:
            self.close()

    def pause(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def resume(self) -> None:
        if self.transport is not None:
            self.transport.resume_reading()

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    # ------------------------------------------------ asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast and not a check: uvloop has a class of its own.
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.silent = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserCallbackError) as error:
            self._lose(f"not HTTP: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.forget(self)
        sink, self._sink = self._sink, None
        if sink is None:
            return
        if exc is None and not self.silent and self._headers and not self._sized:
            sink.on_end()
        else:
            sink.on_lost(_STALE if self.silent else f"the connection was lost: {exc or 'closed by the server'}")

    def _lose(self, reason: str) -> None:
        sink = self._sink
        self.close()
        if sink is not None:
            sink.on_lost(reason)

    # ------------------------------------------------ httptools

    def on_message_begin(self) -> None:
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) < _MAX_HEADERS:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._sized = b"content-length" in self._headers or b"transfer-encoding" in self._headers
        if self._sink is not None:
            self._sink.on_head(self._parser.get_status_code(), self._headers)

    def on_body(self, data: bytes) -> None:
        if self._sink is not None:
            self._sink.on_body(data)

    def on_message_complete(self) -> None:
        sink, self._sink = self._sink, None
        keep = sink is not None and self._parser.should_keep_alive()
        self.fresh = False
        if keep:
            self._client.keep(self)
        else:
            self.close()
        if sink is not None:
            sink.on_end()


class HttpClient:
    """Connections to one server. `url` may end in a path, which all request paths follow."""

    def __init__(
        self,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        max_connections: int = 4096,
        keep_s: float = 4.0,
        timeouts: Timeouts | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an http or https address")
        self.timeouts = timeouts or Timeouts()
        self._host, self._tls = parts.hostname, parts.scheme == "https"
        self._port = parts.port or (443 if self._tls else 80)
        self._base = parts.path.rstrip("/")
        self._max, self._keep_s = max_connections, keep_s
        self._ssl = ssl.create_default_context() if self._tls else None
        self._open: set[Connection] = set()
        self._idle: deque[Connection] = deque()
        self._closed = False
        host = f"[{self._host}]" if ":" in self._host else self._host
        shown = host if parts.port is None else f"{host}:{parts.port}"
        lines = {"Host": shown, "User-Agent": "parley", "Content-Type": "application/json", **(headers or {})}
        self._head = "".join(f"{k}: {v}\r\n" for k, v in lines.items()).encode("latin-1")

    def build(self, method: str, path: str, body: bytes = b"", extra: dict[str, str] | None = None) -> bytes:
        more = "".join(f"{k}: {v}\r\n" for k, v in (extra or {}).items())
        start = f"{method} {self._base}{path} HTTP/1.1\r\n{more}Content-Length: {len(body)}\r\n"
        return start.encode("latin-1") + self._head + b"\r\n" + body

    async def acquire(self, *, fresh: bool = False) -> Connection:
        """An open connection that nobody else uses. HttpError when none can be had."""
        now = asyncio.get_running_loop().time()
        while self._idle and not fresh:
            connection = self._idle.pop()
            if connection.is_open and now - connection.idle_since < self._keep_s:
                return connection
            connection.close()
        if self._closed:
            raise HttpError("the client is closed")
        if len(self._open) >= self._max:
            raise HttpError(f"{self._max} connections are open already")
        return await self._connect()

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        connection = Connection(self)
        self._open.add(connection)
        try:
            async with asyncio.timeout(self.timeouts.connect):
                name = self._host if self._tls else None
                await loop.create_connection(
                    lambda: connection, self._host, self._port, ssl=self._ssl, server_hostname=name
                )
        except TimeoutError:
            raise HttpError(f"no connection within {self.timeouts.connect:g} s") from None
        except (OSError, ssl.SSLError) as error:
            raise HttpError(f"no connection: {error}") from None
        finally:
            if connection.transport is None:
                self._open.discard(connection)
        return connection

    def keep(self, connection: Connection) -> None:
        if self._closed or not connection.is_open:
            connection.close()
            return
        now = asyncio.get_running_loop().time()
        connection.idle_since = now
        self._idle.append(connection)
        while self._idle and now - self._idle[0].idle_since > self._keep_s:
            self._idle.popleft().close()

    def forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    async def exchange(self, data: bytes, sink: HeadSink) -> Connection:
        """Send a request and wait for the response's head; the body then flows into `sink`. A kept connection that
        the server had closed meanwhile is replaced once. HttpError."""
        for fresh in (False, True):
            connection = await self.acquire(fresh=fresh)
            was_kept = not connection.fresh
            head = sink.begin()
            connection.send(data, sink)
            try:
                async with asyncio.timeout(self.timeouts.first_byte):
                    await head
            except TimeoutError:
                connection.close()
                raise TooLate(f"no answer within {self.timeouts.first_byte:g} s") from None
            except TooLate:
                connection.close()
                raise
            except HttpError:
                if was_kept and connection.silent:
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            return connection
        raise HttpError(_STALE)

    async def call(
        self, method: str, path: str, body: bytes = b"", *, within: float | None = None, limit: int = 16 << 20
    ) -> Response:
        """A whole small exchange. HttpError when it fails, takes too long, or answers more than `limit` bytes."""
        sink = _Collector(limit)
        connection: Connection | None = None
        try:
            async with asyncio.timeout(within or self.timeouts.small):
                connection = await self.exchange(self.build(method, path, body), sink)
                return await sink.whole
        except TimeoutError:
            raise TooLate(f"{path}: no answer within {within or self.timeouts.small:g} s") from None
        finally:
            if connection is not None and not sink.ended:
                connection.close()

    def close(self) -> None:
        self._closed = True
        for connection in list(self._open):
            connection.close()


class HeadSink:
    """A sink whose head can be awaited. Subclasses see the body."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self._head: asyncio.Future[None] | None = None

    def begin(self) -> asyncio.Future[None]:
        self._head = asyncio.get_running_loop().create_future()
        return self._head

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> None:
        self.status, self.headers = status, headers
        if self._head is not None and not self._head.done():
            self._head.set_result(None)

    def on_body(self, data: bytes) -> None:
        raise NotImplementedError

    def on_end(self) -> None:
        raise NotImplementedError

    def on_lost(self, reason: str) -> None:
        self._fail_head(HttpError(reason))

    def give_up(self, reason: str) -> None:
        """Wait for the head no longer."""
        self._fail_head(TooLate(reason))

    def _fail_head(self, error: HttpError) -> None:
        if self._head is not None and not self._head.done():
            self._head.set_exception(error)


class _Collector(HeadSink):
    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.ended = False
        self.whole: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            self._settle(HttpError(f"more than {self._limit} bytes"))
        else:
            self._parts.append(data)

    def on_end(self) -> None:
        self.ended = True
        self._settle(Response(self.status, self.headers, b"".join(self._parts)))

    def on_lost(self, reason: str) -> None:
        super().on_lost(reason)
        if self.status:
            self._settle(HttpError(reason))

    def _settle(self, outcome: Response | HttpError) -> None:
        if self.whole.done():
            return
        if isinstance(outcome, HttpError):
            self.whole.set_exception(outcome)
        else:
            self.whole.set_result(outcome)
