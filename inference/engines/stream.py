"""One answer between a producer that never waits and a consumer that pulls.

Responsible for: merging what arrives between two pulls, waking the consumer rarely (first data, a shared tick,
the end), back-pressure, and the order text-before-error. Leaves to a `Source` how data is fetched and aborted.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from inference.protocol import (
    Delta,
    DeltaStream,
    EngineFailed,
    EngineUnavailable,
    FailureKind,
    InferenceError,
    Usage,
    WrittenCall,
)

MERGE_S = 0.02
BUFFER_CHARS = 64 * 1024


class Source(Protocol):
    """Where a stream's data comes from. `open` sends the request, returns once the answer is known to begin, and
    raises what `Engine.generate` may raise before the first delta. `drain` turns what was announced by `notify`
    into pushes, so that a source parses all tokens of a pull together."""

    async def open(self, stream: MergedStream) -> None: ...

    def drain(self, stream: MergedStream) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    async def close(self, *, ended: bool) -> None: ...


class Ticker:
    """Wakes all streams that have news at the same moment, once a period, and costs nothing while none has."""

    __slots__ = ("_armed", "_due", "_loop", "period")

    def __init__(self, period: float = MERGE_S) -> None:
        self.period = period
        self._due: set[MergedStream] = set()
        self._armed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, stream: MergedStream) -> None:
        self._due.add(stream)
        if not self._armed:
            self._armed = True
            self._loop = self._loop or asyncio.get_running_loop()
            self._loop.call_later(self.period, self._fire)

    def discard(self, stream: MergedStream) -> None:
        self._due.discard(stream)

    def _fire(self) -> None:
        self._armed = False
        due, self._due = self._due, set()
        for stream in due:
            stream.wake()


class MergedStream(DeltaStream):
    """See `DeltaStream`. The producer calls `push` (or `notify`, and `push` when drained), then `finish` or `fail`
    once."""

    __slots__ = (
        "_calls",
        "_closed",
        "_delivered",
        "_ended",
        "_error",
        "_finish",
        "_ids",
        "_loop",
        "_news",
        "_next_at",
        "_opened",
        "_paused",
        "_prompt_ids",
        "_size",
        "_source",
        "_texts",
        "_ticker",
        "_tokens",
        "_usage",
        "_waiter",
    )

    def __init__(self, source: Source, ticker: Ticker) -> None:
        self._source = source
        self._ticker = ticker
        self._loop = asyncio.get_running_loop()
        self._texts: list[str] = []
        self._ids: list[int] = []
        self._tokens = self._size = 0
        self._prompt_ids: tuple[int, ...] | None = None
        self._finish: str | None = None
        self._usage: Usage | None = None
        self._calls: tuple[WrittenCall, ...] = ()
        self._error: InferenceError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._next_at = 0.0
        self._opened = self._delivered = self._ended = self._closed = False
        self._paused = self._news = False

    # ------------------------------------------------ producer's side

    @property
    def ended(self) -> bool:
        return self._ended

    @property
    def paused(self) -> bool:
        return self._paused

    def set_prompt(self, token_ids: tuple[int, ...]) -> None:
        self._prompt_ids = token_ids

    def push(self, text: str, token_ids: list[int] | None, tokens: int) -> None:
        self._texts.append(text)
        if token_ids:
            self._ids += token_ids
        self._tokens += tokens
        self._size += len(text)
        self._tell()
        if self._size > BUFFER_CHARS:
            self.hold()

    def notify(self) -> None:
        """There is something to drain. `wake` goes with it when it must not wait for the tick."""
        self._news = True
        self._tell()

    def hold(self) -> None:
        """The consumer is far behind: stop the source until the next pull."""
        if not self._paused:
            self._paused = True
            self._source.pause()

    def _tell(self) -> None:
        if self._waiter is not None:
            if self._delivered:
                self._ticker.add(self)
            else:
                self.wake()

    def finish(self, reason: str, usage: Usage | None, calls: tuple[WrittenCall, ...] = ()) -> None:
        if not self._ended:
            self._finish, self._usage, self._calls, self._ended = reason, usage, calls, True
            self.wake()

    def fail(self, error: InferenceError) -> None:
        if not self._ended:
            begun = self._delivered or self._tokens > 0
            if begun and not isinstance(error, EngineFailed):
                error = EngineFailed(str(error), _kind_of(error))
            elif not begun and isinstance(error, EngineFailed):
                error = EngineUnavailable(str(error), error.kind)
            self._error, self._ended = error, True
            self.wake()

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # ------------------------------------------------ consumer's side

    def __aiter__(self) -> MergedStream:
        return self

    async def __anext__(self) -> Delta:
        if not self._opened:
            self._opened = True
            try:
                await self._source.open(self)
            except BaseException:
                self._closed = self._ended = True
                raise
        while not self._closed:
            if self._must_wait():
                self._waiter = self._loop.create_future()
                await self._waiter
            if (delta := self.take()) is not None:
                return delta
            if self._ended:
                break
        raise StopAsyncIteration

    def _must_wait(self) -> bool:
        if self._ended:
            return False
        if not self._tokens and not self._texts and not self._news:
            return True
        if not self._delivered or self._loop.time() >= self._next_at:
            return False
        self._ticker.add(self)
        return True

    def take(self) -> Delta | None:
        if self._news:
            self._news = False
            self._source.drain(self)
        done = self._finish
        if not self._tokens and not self._texts and done is None:
            if self._error is not None and not self._closed:
                self._closed = True
                raise self._error
            self._release()
            return None
        texts = self._texts
        delta = Delta(
            text=texts[0] if len(texts) == 1 else "".join(texts),
            token_ids=tuple(self._ids),
            tokens=self._tokens,
            prompt_token_ids=self._prompt_ids,
            finish_reason=done,
            usage=self._usage,
            tool_calls=self._calls,
        )
        self._texts, self._ids, self._prompt_ids = [], [], None
        self._tokens = self._size = 0
        self._finish = self._usage = None
        self._delivered = True
        self._next_at = self._loop.time() + self._ticker.period
        self._release()
        return delta

    def _release(self) -> None:
        if self._paused and not self._ended:
            self._paused = False
            self._source.resume()

    async def aclose(self) -> None:
        if self._closed and not self._opened:
            return
        self._closed = True
        ended, self._ended = self._ended, True
        self._texts, self._ids, self._tokens, self._finish, self._error = (
            [],
            [],
            0,
            None,
            None,
        )
        self._ticker.discard(self)
        self.wake()
        if self._opened:
            await self._source.close(ended=ended)


def _kind_of(error: InferenceError) -> FailureKind:
    return error.kind if isinstance(error, EngineUnavailable) else FailureKind.ERROR
