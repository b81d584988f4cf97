"""One tailer a web process for all its readers.

A reader registers this process's feed at its run; from then on the runner's append copies each frame to the feed,
and one blocking read brings the frames of every run. The log itself is read once a reader, for what came before.
A reader that is slow loses its buffer, not its place: it catches up from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from functools import lru_cache
from typing import Any
from uuid import UUID

import redis
import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError

from apps.conversations.eventlog import (
    AsyncLog,
    alive_key,
    encode_frame,
    feed_key,
    frame_data,
    frame_seq,
    is_done,
)
from apps.conversations.services import runs
from apps.conversations.types import RunFrame
from apps.core.db import in_db
from apps.core.ids import new_id
from apps.core.loops import stop_tasks
from inference.pipe import Pipe

log = structlog.get_logger(__name__)
MAX_BUFFERED_BYTES = 256 * 1024
CATCH_UP = 1_000
RETRY_S = 0.25
FEED_TTL_S = 30
POP_ITEMS = 2_048
POP_S = 5.0
WATCH_S = 2.0
SILENT_WATCHES = 2


class Reader:
    """One reader of one run. `take()` returns the next frames, in order and once each."""

    __slots__ = (
        "_arrived",
        "_buffer",
        "_bytes",
        "_given",
        "_relay",
        "closed",
        "ended",
        "gap",
        "run_id",
        "seq",
        "silent",
    )

    def __init__(self, relay: Relay, run_id: UUID, after: int) -> None:
        self.run_id, self.seq = run_id, after
        self.ended = False
        self.gap = False  # the log holds frames that the buffer does not
        self.silent = 0
        self.closed = False
        self._relay = relay
        self._given: list[bytes] = []
        self._buffer: deque[bytes] = deque()
        self._bytes = 0
        self._arrived: asyncio.Future[None] | None = None

    def begin(self, frames: tuple[bytes, ...]) -> None:
        """What the log held when this reader was registered; meanwhile the buffer has taken what came since."""
        if len(frames) == CATCH_UP:
            self.lose_place()
        self._given.extend(frames)

    def push(self, frame: bytes) -> None:
        """Called by the relay for each new frame."""
        self.silent = 0
        if self.gap:
            self._notice()
            return
        if self._bytes + len(frame) > MAX_BUFFERED_BYTES:
            self._buffer.clear()
            self._bytes, self.gap = 0, True
        else:
            self._buffer.append(frame)
            self._bytes += len(frame)
        self._notice()

    def stop(self) -> None:
        """The reader is gone: end a waiting `take`."""
        self.closed = True
        self._notice()

    def _notice(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def give(self, frame: bytes) -> None:
        """A frame that did not come by the feed: what Postgres says when the log cannot be read."""
        self._given.append(frame)
        self._notice()

    def lose_place(self) -> None:
        """The feed may have missed something: read the log again."""
        self._buffer.clear()
        self._bytes, self.gap = 0, True
        self._notice()

    async def take(self, within: float) -> list[bytes]:
        """Frames after the last ones, empty when none came within that many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        while not (frames := await self._ready()):
            wait = deadline - loop.time()
            if wait <= 0 or self.closed:
                return []
            await self._wait(min(wait, RETRY_S) if self.gap else wait)
        self.seq = frame_seq(frames[-1])
        self.ended = is_done(frames[-1])
        return frames

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        if self._buffer or self._given:
            return
        self._arrived = loop.create_future()
        handle = loop.call_later(seconds, self._notice)
        try:
            await self._arrived
        finally:
            handle.cancel()
            self._arrived = None

    async def _ready(self) -> list[bytes]:
        if self.gap and not self._given:
            return await self._catch_up()
        given = bool(self._given)
        frames = [*self._given, *self._buffer]
        self._given.clear()
        self._buffer.clear()
        self._bytes = 0
        seq = self.seq
        fresh: list[bytes] = []
        for frame in frames:
            number = frame_seq(frame)
            if number > seq + 1 and not given:
                # A frame is missing, or a new attempt has begun; the log knows which.
                self.gap = True
                return fresh or await self._catch_up()
            if number > seq:
                seq = number
                fresh.append(frame)
        return fresh

    async def _catch_up(self) -> list[bytes]:
        """Frames from the log. The gap is closed first, so that frames arriving meanwhile are buffered."""
        self.gap = False
        try:
            frames = await self._relay.log.read(self.run_id, self.seq, CATCH_UP)
        except redis.RedisError:
            self.gap = True
            return []
        self.gap = self.gap or len(frames) == CATCH_UP
        return list(frames)


class Relay:
    """All the readers of a web process, its feed, and the watch over runs that have gone silent."""

    def __init__(self) -> None:
        self.id = new_id().hex
        self.feed = feed_key(self.id)
        self.valkey = Pipe(settings.REDIS_URL)
        self.log = AsyncLog(self.valkey)
        # A blocking call holds up those behind it, so the feed has a connection of its own.
        self._popping = Pipe(settings.REDIS_URL, patience_s=POP_S * 2)
        self.readers: dict[str, list[Reader]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._goodbyes: set[asyncio.Task[None]] = set()
        self._unregistered: set[str] = set()
        self._away = False

    def start(self) -> None:
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._tail()), asyncio.create_task(self._watch())]

    async def stop(self) -> None:
        await stop_tasks([*self._tasks, *self._goodbyes])
        self._tasks = []
        with contextlib.suppress(redis.RedisError):
            await self.valkey.call("DEL", alive_key(self.id), self.feed)
        await self.valkey.close()
        await self._popping.close()

    async def open(self, run_id: UUID, after: int) -> Reader:
        """Register a reader. While Valkey is away it is fed from Postgres."""
        reader = self._add(run_id, after)
        try:
            reader.begin(await self.log.follow(run_id, self.feed, after, CATCH_UP))
        except redis.RedisError:
            reader.lose_place()
            self._unregistered.add(run_id.hex)
        return reader

    def expect(self, run_id: UUID) -> Reader:
        """A reader of a run that is not there yet. Nothing is lost if `offer` follows."""
        return self._add(run_id, 0)

    async def offer(self, lane: str, reader: Reader) -> None:
        """Give an expected run, which is there now, to the runners."""
        try:
            await self.log.offer(lane, reader.run_id, self.feed)
        except redis.RedisError as error:
            log.warning("run.hint_lost", run_id=str(reader.run_id), error=type(error).__name__)
            self._unregistered.add(reader.run_id.hex)

    def _add(self, run_id: UUID, after: int) -> Reader:
        self.start()
        reader = Reader(self, run_id, after)
        self.readers.setdefault(run_id.hex, []).append(reader)
        return reader

    def close(self, reader: Reader) -> None:
        key = reader.run_id.hex
        others = [other for other in self.readers.get(key, ()) if other is not reader]
        if others:
            self.readers[key] = others
            return
        self.readers.pop(key, None)
        if not reader.ended:
            task = asyncio.create_task(self._unregister(key))
            self._goodbyes.add(task)
            task.add_done_callback(self._goodbyes.discard)

    async def _register(self, keys: list[str]) -> None:
        await self.log.register((UUID(hex=key) for key in keys), self.feed)

    async def _register_again(self) -> None:
        """Readers that the runners may not know of."""
        keys = [key for key in self._unregistered if key in self.readers]
        if keys:
            await self._register(keys)
        self._unregistered.difference_update(keys)
        self._unregistered.intersection_update(self.readers)
        for key in keys:
            for reader in self.readers.get(key, ()):
                reader.lose_place()

    async def _unregister(self, key: str) -> None:
        with contextlib.suppress(redis.RedisError):
            if key not in self.readers:
                await self.log.forget(UUID(hex=key), self.feed)
            if key in self.readers:
                # Somebody came meanwhile, whose registration this may have undone.
                self._unregistered.add(key)
                await self._register_again()

    async def _tail(self) -> None:
        """Read the feed for ever. A new or lost feed is made again, and then every reader reads its log."""
        while True:
            try:
                await self._make_feed()
                while True:
                    await self._read_feed()
            except redis.RedisError as error:
                if not self._away:
                    log.warning("relay.away", error=type(error).__name__)
                self._away = True
                await asyncio.sleep(0.2)

    async def _make_feed(self) -> None:
        await self.valkey.call("SET", alive_key(self.id), 1, "EX", FEED_TTL_S)
        if self.readers:
            await self._register(list(self.readers))
        self._away = False
        for reader in self._all():
            reader.lose_place()

    async def _read_feed(self) -> None:
        """One blocking pop brings what every run said since the last: run id, frame, run id, frame, ..."""
        reply: Any = await self._popping.call("BLMPOP", POP_S, 1, self.feed, "LEFT", "COUNT", POP_ITEMS)
        if reply is None:
            return
        items = reply[1]
        for at in range(0, len(items), 2):
            for reader in self.readers.get(items[at].decode(), ()):
                reader.push(items[at + 1])

    def _all(self) -> list[Reader]:
        return [reader for group in self.readers.values() for reader in group]

    async def _watch(self) -> None:
        """Keep the feed alive, and ask Postgres about runs that say nothing."""
        while True:
            await asyncio.sleep(WATCH_S)
            with contextlib.suppress(redis.RedisError):
                if not await self.valkey.call("EXPIRE", alive_key(self.id), FEED_TTL_S):
                    await self._make_feed()
                await self._register_again()
            for reader in self._all():
                reader.silent += 1
            silent = [r for r in self._all() if r.silent >= SILENT_WATCHES or self._away]
            if silent:
                with contextlib.suppress(OperationalError, InterfaceError):
                    await self._tell_from_postgres(silent)

    async def _tell_from_postgres(self, silent: list[Reader]) -> None:
        """The end of runs whose last event was lost and, while Valkey is away, how far the others are."""
        ids = list({reader.run_id for reader in silent})
        ends = await in_db(runs.finished_events, ids)
        texts = await in_db(runs.saved_texts, [id for id in ids if id not in ends]) if self._away else {}
        for reader in silent:
            if reader.run_id in ends:
                seq, event = ends[reader.run_id]
                reader.give(encode_frame(max(seq, reader.seq + 1), event))
            elif reader.run_id in texts:
                seq, text = texts[reader.run_id]
                if seq > reader.seq:
                    reader.give(encode_frame(seq, {"type": "snapshot", "text": text}))


@lru_cache(maxsize=1)
def relay() -> Relay:
    """This process's relay. Call it in the event loop that serves requests."""
    return Relay()


async def follow(run_id: UUID, after: int = 0) -> AsyncIterator[RunFrame]:
    """The events of a run from `after` on, until its end. Access must have been checked."""
    reader = await relay().open(run_id, after)
    try:
        while not reader.ended:
            for frame in await reader.take(settings.RUN_HEARTBEAT_S):
                yield RunFrame(frame_seq(frame), frame_data(frame))
    finally:
        relay().close(reader)
