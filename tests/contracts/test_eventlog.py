"""The event log and its readers against a real Valkey: fencing, loss, bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings

from apps.conversations.eventlog import (
    APPENDED,
    FENCED,
    LOST,
    Append,
    AsyncLog,
    alive_key,
    append_now,
    encode_frame,
    feed_key,
    frame_seq,
    log_key,
    pack_ids,
    unpack_ids,
)
from apps.conversations.eventlog.log import MAX_ENTRIES
from apps.conversations.realtime.relay import CATCH_UP, MAX_BUFFERED_BYTES, Reader, Relay
from apps.core.ids import new_id
from apps.core.valkey import valkey
from inference.pipe import Pipe
from tests.services import Services

RUN = UUID("0198c0de-0000-7000-8000-000000000001")


@pytest.fixture
async def log() -> AsyncIterator[AsyncLog]:
    pipe = Pipe(settings.REDIS_URL)
    yield AsyncLog(pipe)
    await pipe.close()


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    made = Relay()
    made.start()
    yield made
    await made.stop()


def entry(seq: int, *, attempt: int = 1, text: str = "x", run: UUID = RUN, final: bool = False) -> Append:
    event = {"type": "done"} if final else {"type": "text", "at": 0, "text": text}
    return Append(run, attempt, seq, encode_frame(seq, event), pack_ids([seq]), final)


async def numbers(log: AsyncLog, run: UUID = RUN) -> list[int]:
    return [frame_seq(frame) for frame in await log.read(run, 0)]


# ------------------------------------------------------------------ fencing


async def test_what_was_appended_is_read_back_in_order(log: AsyncLog) -> None:
    other = new_id()
    assert await log.append([entry(1), entry(1, run=other), entry(2), entry(3)]) == [APPENDED] * 4
    assert await numbers(log) == [1, 2, 3]
    assert await numbers(log, other) == [1]
    assert [frame_seq(frame) for frame in await log.read(RUN, 1, limit=1)] == [2]


async def test_an_older_attempt_can_append_nothing(log: AsyncLog) -> None:
    await log.append([entry(1), entry(2)])
    taken = await log.fence(RUN, 2, 1)
    assert taken is not None
    assert [(frame_seq(one.frame), unpack_ids(one.token_ids)) for one in taken] == [(2, (2,))]
    assert await log.append([entry(3), entry(3, final=True)]) == [FENCED, FENCED]
    assert append_now(valkey(), entry(3)) == FENCED
    assert await log.fence(RUN, 1, 0) is None, "nor take it back"
    assert await log.append([entry(10, attempt=2)]) == [APPENDED]
    assert await numbers(log) == [1, 2, 10]


async def test_a_newer_attempt_fences_by_its_first_entry(log: AsyncLog) -> None:
    """As when Valkey was away while it took over."""
    await log.append([entry(1)])
    assert await log.append([entry(10, attempt=2)]) == [APPENDED]
    assert await log.append([entry(11)]) == [FENCED]
    assert await numbers(log) == [1, 10]


async def test_numbers_only_grow(log: AsyncLog) -> None:
    await log.append([entry(1), entry(2)])
    assert await log.append([entry(2)]) == [FENCED]
    assert await numbers(log) == [1, 2]


async def test_a_lost_log_is_noticed_by_whoever_continues_it(log: AsyncLog, services: Services) -> None:
    await log.append([entry(1), entry(2)])
    services.valkey.call("FLUSHALL")
    assert await log.append([entry(3), entry(4)]) == [LOST, LOST], "the producer tells all again after this"
    services.valkey.call("FLUSHALL")
    assert await log.append([entry(9, attempt=2)]) == [LOST]
    assert await log.append([entry(5)]) == [FENCED], "an attempt that slept through the loss"
    assert await log.append([entry(10, attempt=2)]) == [APPENDED]


async def test_a_log_goes_by_itself(log: AsyncLog) -> None:
    await log.append([entry(1)])
    assert 3_000 < await log.pipe.call("TTL", log_key(RUN)) <= 3_600
    await log.append([entry(2, final=True)])
    assert 200 < await log.pipe.call("TTL", log_key(RUN)) <= 300


def test_the_longest_run_fits_its_log(settings: Any) -> None:
    assert settings.RUN_DEADLINE_S / settings.RUN_FLUSH_S < MAX_ENTRIES


@pytest.mark.parametrize("ids", [[], [0], [1, 2**31 - 1, 7]])
def test_token_ids_survive_packing(ids: list[int]) -> None:
    assert unpack_ids(pack_ids(ids)) == tuple(ids)


# ------------------------------------------------------------------ readers


async def take(reader: Reader, count: int) -> list[int]:
    """The numbers of the next frames, as soon as there are so many."""
    seen: list[int] = []
    while len(seen) < count:
        frames = await reader.take(5)
        assert frames, f"no more than {seen[-5:]} came"
        seen += [frame_seq(frame) for frame in frames]
    return seen


async def until_fed(relay: Relay) -> None:
    for _ in range(500):
        if await relay.valkey.call("EXISTS", alive_key(relay.id)):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the relay made no feed")


async def test_readers_get_what_was_there_and_what_comes(log: AsyncLog, relay: Relay) -> None:
    await log.append([entry(n) for n in range(1, 4)])
    all_of_it, later = await relay.open(RUN, 0), await relay.open(RUN, 2)
    assert await take(all_of_it, 3) == [1, 2, 3]
    assert await take(later, 1) == [3]
    await log.append([entry(4), entry(5)])
    assert await take(all_of_it, 2) == await take(later, 2) == [4, 5]
    assert await all_of_it.take(0) == []
    await log.append([entry(6, final=True)])
    assert await take(all_of_it, 1) == [6]
    assert all_of_it.ended
    assert not later.ended


async def test_a_run_that_nobody_reads_is_not_fed(log: AsyncLog, relay: Relay) -> None:
    reader = await relay.open(RUN, 0)
    await until_fed(relay)
    relay.close(reader)
    await asyncio.gather(*relay._goodbyes)
    await log.append([entry(1)])
    assert await relay.valkey.call("LLEN", feed_key(relay.id)) == 0
    assert relay.readers == {}


async def test_a_web_that_died_is_not_fed(log: AsyncLog) -> None:
    dead = Relay()
    await dead._register([RUN.hex])
    await log.append([entry(1), entry(2)])
    assert not await log.pipe.call("EXISTS", feed_key(dead.id))
    await dead.stop()


async def test_a_slow_reader_holds_a_bounded_buffer_and_misses_nothing(log: AsyncLog, relay: Relay) -> None:
    reader = await relay.open(RUN, 0)
    await until_fed(relay)
    await log.append([entry(1)])
    assert await take(reader, 1) == [1]
    count, size = 400, 4_000
    for start in range(2, count, 50):
        await log.append([entry(n, text="y" * size) for n in range(start, min(start + 50, count))])
        await asyncio.sleep(0)
        assert reader._bytes <= MAX_BUFFERED_BYTES
    assert count * size > 4 * MAX_BUFFERED_BYTES
    assert await take(reader, count - 2) == list(range(2, count))


async def test_a_reader_far_behind_reads_the_log_in_pages(log: AsyncLog, relay: Relay) -> None:
    count = 2 * CATCH_UP + 10
    for start in range(1, count + 1, 500):
        await log.append([entry(n) for n in range(start, min(start + 500, count + 1))])
    reader = await relay.open(RUN, 0)
    assert len(await reader.take(1)) == CATCH_UP
    assert await take(reader, count - CATCH_UP) == list(range(CATCH_UP + 1, count + 1))


async def test_readers_go_on_after_the_feed_was_lost(log: AsyncLog, relay: Relay, services: Services) -> None:
    reader = await relay.open(RUN, 0)
    await until_fed(relay)
    await log.append([entry(1)])
    assert await take(reader, 1) == [1]
    services.valkey.call("FLUSHALL")
    assert await log.append([entry(2)]) == [LOST]
    await log.append([entry(3)])
    assert await take(reader, 1) == [3]


async def test_many_readers_of_many_runs_wait_on_few_connections(log: AsyncLog, relay: Relay) -> None:
    ids = [new_id() for _ in range(50)]
    readers = [await relay.open(id, 0) for id in ids for _ in range(4)]
    await asyncio.gather(*(reader.take(0) for reader in readers))
    await log.append([entry(1, run=id) for id in ids])
    assert await asyncio.gather(*(take(reader, 1) for reader in readers)) == [[1]] * 200
    clients = [one for one in valkey().client_list() if one["cmd"] == "blmpop"]
    assert len(clients) == 1


async def test_more_readers_than_connections_come_at_once(log: AsyncLog, relay: Relay) -> None:
    """As when a web was killed and its readers come to this one."""
    ids = [new_id() for _ in range(150)]
    await log.append([entry(1, run=id) for id in ids])
    readers = await asyncio.gather(*(relay.open(id, 0) for id in ids))
    assert await asyncio.gather(*(take(reader, 1) for reader in readers)) == [[1]] * 150
    await log.append([entry(2, run=id) for id in ids])
    assert await asyncio.gather(*(take(reader, 1) for reader in readers)) == [[2]] * 150


async def test_a_reader_that_comes_as_the_last_one_leaves_is_fed(log: AsyncLog, relay: Relay) -> None:
    first = await relay.open(RUN, 0)
    await until_fed(relay)
    for number in range(1, 30):
        relay.close(first)
        await asyncio.sleep(0)
        first = await relay.open(RUN, number - 1)
        await log.append([entry(number)])
        assert await take(first, 1) == [number]
