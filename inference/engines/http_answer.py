"""One request on its way over HTTP: the sink of a connection and the source of a stream.

Responsible for: what a status means, keeping bytes until the consumer pulls, silence, and letting go of the connection
in every way that an answer can end. Leaves the reading of chunks to `events`, the request to `payloads`.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from inference.engines.events import AnswerReader, error_message
from inference.engines.http import Connection, HeadSink, HttpClient, HttpError, Timeouts, TooLate
from inference.engines.payloads import Call
from inference.engines.stream import MergedStream
from inference.protocol import (
    EngineFailed,
    EngineOverloaded,
    EngineRejected,
    EngineUnavailable,
    FailureKind,
    GenerationRequest,
    InferenceError,
)

KEY_REFUSED = "the server refused our key"
_HOLD_BYTES = 256 * 1024
_TAIL_S = 2.0
_BYTES_PER_TOKEN = 4
_EVENT_STREAM = b"text/event-stream"


class Host(Protocol):
    """What an answer needs of its engine. `heard_at`: when any of its answers last had a token."""

    http: HttpClient
    timeouts: Timeouts
    heard_at: float
    busy: frozenset[int]

    def headers_for(self, request: GenerationRequest) -> dict[str, str]: ...

    async def plan(self, request: GenerationRequest) -> Call: ...

    def enlist(self, answer: Answer) -> None: ...

    def delist(self, answer: Answer) -> None: ...

    def abort_soon(self, request_id: str) -> None: ...


class Answer(HeadSink):
    """See the module. `check` is called by the engine's sweep."""

    def __init__(self, engine: Host, request: GenerationRequest) -> None:
        super().__init__()
        self.engine = engine
        self.request = request
        self.connection: Connection | None = None
        self.stream: MergedStream
        self.reader = AnswerReader()
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._size = 0
        self._asked = self._heard = self._spoke = self._loop.time()
        self._allowance = 0.0
        self._progress = 0
        self._over: str | None = None
        self._refused: asyncio.Future[None] = self._loop.create_future()

    # ------------------------------------------------ the stream's source

    async def open(self, stream: MergedStream) -> None:
        self.stream = stream
        call = await self.engine.plan(self.request)
        if call.lag:
            stream.push(call.lag, None, 0)
        if call.max_tokens < 1:
            stream.finish("length", None)
            return
        self.reader.by_ids = call.by_ids
        self._allowance = len(call.body) / _BYTES_PER_TOKEN / self.engine.timeouts.prefill_rate
        self._asked = self._heard = self._spoke = self._loop.time()
        data = self.engine.http.build("POST", call.path, call.body, self.engine.headers_for(self.request))
        self.engine.enlist(self)
        try:
            self.connection = await self.engine.http.exchange(data, self)
            if self.status != 200:
                raise await self._refusal()
            self._check_type()
        except HttpError as error:
            self._leave()
            kind = FailureKind.HUNG if isinstance(error, TooLate) else FailureKind.DIED
            raise EngineUnavailable(str(error), kind) from None
        except asyncio.CancelledError:
            self._leave()
            self.engine.abort_soon(self.request.request_id)
            raise
        except InferenceError:
            self._leave()
            raise

    def _check_type(self) -> None:
        """Servers may leave the type out; what says that it is something else is no answer."""
        kind = self.headers.get(b"content-type", _EVENT_STREAM)
        if not kind.lower().startswith(_EVENT_STREAM):
            said = kind[:80].decode("latin-1")
            raise EngineUnavailable(f"the answer is {said} and not an event stream", FailureKind.GARBAGE)

    async def _refusal(self) -> InferenceError:
        """The error that a response with another status than 200 stands for, once its body is here."""
        try:
            async with asyncio.timeout(self.engine.timeouts.small):
                await self._refused
        except TimeoutError:
            pass
        return refusal(self.status, self.headers, b"".join(self._parts), self.engine.busy)

    def drain(self, stream: MergedStream) -> None:
        data = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts, self._size = [], 0
        reader = self.reader
        try:
            reader.read(data, stream)
        except InferenceError as error:
            self.fail(error)
        else:
            if reader.progress != self._progress:
                self._progress = reader.progress
                self._spoke = self.engine.heard_at = self._loop.time()
            if reader.done or (self._over is not None and reader.finish_reason):
                self._part()
                stream.finish(reader.finish_reason or "stop", reader.usage, reader.calls)
            elif self._over is not None:
                self.fail(
                    EngineFailed(self._over)
                    if self._over
                    else EngineFailed("the answer ended without a finish reason", FailureKind.GARBAGE)
                )

    def pause(self) -> None:
        if self.connection is not None and self.connection.is_open and self._over is None:
            self.connection.pause()

    def resume(self) -> None:
        if self.connection is not None and self.connection.is_open and self._over is None:
            self._heard = self._spoke = self._loop.time()
            self.connection.resume()

    async def close(self, *, ended: bool) -> None:
        if not ended:
            self._leave()
            self.engine.abort_soon(self.request.request_id)

    def fail(self, error: InferenceError) -> None:
        self._leave()
        self.stream.fail(error)

    def _leave(self) -> None:
        """Out of the engine's books. A connection in mid-answer is closed, which aborts the answer."""
        self.engine.delist(self)
        if self._over is None:
            self._over = ""
            if self.connection is not None:
                self.connection.close()

    def _part(self) -> None:
        """All was said. The connection may still have to read the end of the body before it can be kept."""
        self.engine.delist(self)
        if self._over is None and self.connection is not None:
            self._over = ""
            self._loop.call_later(_TAIL_S, self.connection.close_if_read_by, self)

    def check(self, now: float) -> None:
        """Called by the sweep: a replica that says nothing for too long counts as dead, and so does one that goes on
        talking without saying anything."""
        if self.stream.paused or self.stream.ended:
            return
        late = self._late_between(now) if self.reader.begun else self._late_to_begin(now)
        if late is None:
            return
        if self.connection is None:
            self.give_up(late)
        elif self.reader.finish_reason:
            self._leave()
            self.stream.finish(self.reader.finish_reason, self.reader.usage, self.reader.calls)
        else:
            self.fail(EngineFailed(late, FailureKind.HUNG))

    def _late_to_begin(self, now: float) -> str | None:
        """A server whose other answers go on may still be reading this prompt, or have put it in a line."""
        limits = self.engine.timeouts
        silent = now - max(self._asked, self.engine.heard_at) >= limits.silence + self._allowance
        if silent or now - self._asked >= limits.first_token + self._allowance:
            return f"no first token for {now - self._asked:.1f} s"
        return None

    def _late_between(self, now: float) -> str | None:
        limit = self.engine.timeouts.idle
        if now - self._heard >= limit:
            return f"no token for {limit:g} s"
        # What has come and was not read yet may hold one.
        if not self._parts and now - self._spoke >= limit:
            return f"no token for {limit:g} s, only empty events"
        return None

    # ------------------------------------------------ the connection's sink

    def on_body(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self.status != 200:
            if self._size > _HOLD_BYTES:
                self._settle_refusal()
            return
        if data[:1] != b":":
            self._heard = self._loop.time()
        self.stream.notify()
        if self._size > _HOLD_BYTES:
            self.stream.hold()

    def on_end(self) -> None:
        self._finish_reading("")

    def on_lost(self, reason: str) -> None:
        super().on_lost(reason)
        if self.status:
            self._finish_reading(reason)

    def _finish_reading(self, reason: str) -> None:
        if self._over is not None:
            return
        self._over = reason
        if self.status == 200:
            self.stream.notify()
            self.stream.wake()
        else:
            self._settle_refusal()

    def _settle_refusal(self) -> None:
        if not self._refused.done():
            self._refused.set_result(None)


def refusal(status: int, headers: dict[bytes, bytes], body: bytes, busy: frozenset[int]) -> InferenceError:
    """What a status before the answer means: room, a broken or leaving replica, or a wrong request."""
    said = error_message(body) or f"HTTP {status}"
    if status in busy:
        return EngineOverloaded(_seconds(headers.get(b"retry-after")), said)
    if status in (401, 403):
        return EngineUnavailable(f"{KEY_REFUSED}: {said}", FailureKind.ERROR)
    if status in (400, 405, 409, 413, 415, 422, 501):
        return EngineRejected(status, said)
    return EngineUnavailable(f"HTTP {status}: {said}", FailureKind.ERROR)


def _seconds(value: bytes | None) -> float | None:
    """Retry-After in seconds; its date form is not used by model servers and is left out."""
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None
