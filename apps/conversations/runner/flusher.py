"""One clock for all the streams of a runner: each tick takes what replicas produced and appends it in one call.

No task wakes for a token. A run's first token is flushed at once; later ones wait for the tick (25 ms).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import redis
import structlog
from django.conf import settings

from apps.conversations.eventlog import FENCED, LOST, Append, AsyncLog
from apps.conversations.runner.writer import FencedOut, RunWriter
from apps.conversations.services import runs
from apps.core.db import in_db
from inference.protocol import DeltaStream, InferenceError

log = structlog.get_logger(__name__)


class Flusher:
    """Owns the ticks and the checkpoints. `follow` hands a stream over until it ends."""

    def __init__(self, event_log: AsyncLog) -> None:
        self.log = event_log
        self.writers: dict[RunWriter, None] = {}
        self._urgent: dict[RunWriter, None] = {}
        self._due = False
        self._wake = asyncio.Event()
        self._flushed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._connected = True

    def add(self, writer: RunWriter) -> None:
        self.writers[writer] = None
        self.hurry(writer)

    def remove(self, writer: RunWriter) -> None:
        self.writers.pop(writer, None)
        self._urgent.pop(writer, None)

    def hurry(self, writer: RunWriter) -> None:
        """Flush this run now rather than at the next tick; the others keep their tick."""
        self._urgent[writer] = None
        self._wake.set()

    def _tick(self) -> None:
        self._timer, self._due = None, True
        self._wake.set()

    async def follow(self, writer: RunWriter, stream: DeltaStream) -> str:
        """Read a stream to its end; its finish reason. Raises the engine's errors and FencedOut."""
        delta = await anext(stream)
        writer.take(delta)
        self.hurry(writer)
        if delta.finish_reason is not None:
            return delta.finish_reason
        writer.stream = stream
        writer.ended = asyncio.get_running_loop().create_future()
        try:
            return await writer.ended
        finally:
            writer.stream = writer.ended = None

    async def flushed(self, writer: RunWriter) -> None:
        """Wait until everything this run emitted so far has been offered to the log."""
        self.hurry(writer)
        await asyncio.shield(self._flushed)

    async def run(self) -> None:
        """Tick until cancelled. Errors of Valkey are survived: readers get a snapshot when it is back."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            done, self._flushed = self._flushed, asyncio.get_running_loop().create_future()
            writers = list(self.writers if self._due else self._urgent)
            self._due = False
            self._urgent.clear()
            if self._timer is None and self.writers:
                self._timer = asyncio.get_running_loop().call_later(settings.RUN_FLUSH_S, self._tick)
            self._pull(writers)
            await self._flush(writers)
            done.set_result(None)

    @staticmethod
    def _pull(writers: Iterable[RunWriter]) -> None:
        for writer in writers:
            if writer.stream is None or writer.ended is None or writer.ended.done():
                continue
            try:
                delta = writer.stream.take()
            except InferenceError as error:
                writer.ended.set_exception(error)
                continue
            if delta is not None:
                writer.take(delta)
                if delta.finish_reason is not None:
                    writer.ended.set_result(delta.finish_reason)

    async def _flush(self, writers: Iterable[RunWriter]) -> None:
        batches = [(writer, entries) for writer in writers if (entries := writer.drain())]
        if not batches:
            return
        try:
            outcomes = iter(await self.log.append([entry for _, entries in batches for entry in entries]))
        except redis.RedisError as error:
            self._lost_everything(batches, error)
            return
        if not self._connected:
            log.info("eventlog.back")
            self._connected = True
        for writer, entries in batches:
            results = [next(outcomes) for _ in entries]
            if FENCED in results:
                fence(writer)
            elif LOST in results:
                self._again(writer, entries)

    def _lost_everything(self, batches: Iterable[tuple[RunWriter, list[Append]]], error: Exception) -> None:
        if self._connected:
            log.warning("eventlog.away", error=type(error).__name__)
            self._connected = False
        for writer, entries in batches:
            self._again(writer, entries)

    @staticmethod
    def _again(writer: RunWriter, entries: list[Append]) -> None:
        writer.log_was_lost(final=entries[-1] if entries[-1].final else None)

    async def checkpoint(self) -> None:
        """Write the progress of every run in one statement, and stop those that are no longer ours."""
        progress = {w: p for w in list(self.writers) if w.seq and not w.fenced and (p := w.progress())}
        if not progress:
            return
        kept = await in_db(runs.checkpoint_runs, list(progress.values()))
        for writer in progress:
            if writer.run_id not in kept and writer in self.writers:
                fence(writer)


def fence(writer: RunWriter) -> None:
    """Stop a run that a newer attempt has taken."""
    writer.fenced = True
    if writer.ended is not None and not writer.ended.done():
        writer.ended.set_exception(FencedOut())
