"""Scripts and commands on the log. Fencing lives here: an attempt older than the newest can append nothing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple
from uuid import UUID

import redis
from django.conf import settings

from inference.pipe import Pipe, Script

# More than the ticks of the longest run: a log that lost its beginning could not be read from the start.
MAX_ENTRIES = 50_000
FEED_MAX_ITEMS = 16_384
READERS_TTL_S = 3_600


def log_key(run_id: UUID) -> str:
    return f"r:{run_id.hex}:log"


def readers_key(run_id: UUID) -> str:
    return f"r:{run_id.hex}:readers"


def feed_key(web_id: str) -> str:
    return f"web:{web_id}:feed"


def alive_key(web_id: str) -> str:
    """Exists while the web process does; a feed whose reader is gone is not fed."""
    return f"web:{web_id}:feed:alive"


def lane_key(lane: str) -> str:
    return f"lane:{lane}"


# ARGV: ttl, max entries, max feed items, ttl after the end, then per entry: id, attempt, seq, frame, token ids,
# final ("1" or "0").
# Returns, per entry, 0 (appended), 1 (fenced out) or 2 (the log had been lost: nothing of this run was appended, so
# that no reader gets a piece without the one before it; the fence is set anew).
_APPEND = Script("""
local out, feeds, lost = {}, {}, {}
for i = 5, #ARGV, 6 do
  local id, attempt, seq, frame, final = ARGV[i], tonumber(ARGV[i+1]), ARGV[i+2], ARGV[i+3], ARGV[i+5]
  local base = 'r:' .. id
  local fence = tonumber(redis.call('GET', base .. ':fence'))
  if fence and fence > attempt then
    out[#out+1] = 1
  elseif lost[id] or (not fence and tonumber(seq) > 1) then
    redis.call('SET', base .. ':fence', attempt, 'EX', ARGV[1])
    lost[id] = true
    out[#out+1] = 2
  else
    if not fence or fence < attempt then redis.call('SET', base .. ':fence', attempt, 'EX', ARGV[1]) end
    local added = redis.pcall('XADD', base .. ':log', 'MAXLEN', '~', ARGV[2], seq .. '-0', 'f', frame, 'k', ARGV[i+4])
    if type(added) == 'table' and added.err then
      out[#out+1] = 1
    else
      if seq == '1' or redis.call('XLEN', base .. ':log') == 1 then
        redis.call('EXPIRE', base .. ':log', ARGV[1])
      end
      if final == '1' then
        redis.call('EXPIRE', base .. ':log', ARGV[4])
        redis.call('EXPIRE', base .. ':readers', ARGV[4])
      end
      for _, feed in ipairs(redis.call('SMEMBERS', base .. ':readers')) do
        local batch = feeds[feed]
        if not batch then batch = {}; feeds[feed] = batch end
        batch[#batch+1] = id
        batch[#batch+1] = frame
      end
      out[#out+1] = 0
    end
  end
end
for feed, batch in pairs(feeds) do
  if redis.call('EXISTS', feed .. ':alive') == 1 then
    for at = 1, #batch, 2000 do
      redis.call('RPUSH', feed, unpack(batch, at, math.min(at + 1999, #batch)))
    end
    redis.call('LTRIM', feed, -ARGV[3], -1)
    redis.call('EXPIRE', feed, 60)
  end
end
return out
""")

# ARGV: id, attempt, ttl, after. Sets the fence unless a newer attempt holds it; returns
# {ok, frame, token ids, ...} of the entries after `after`.
_FENCE = Script("""
local base = 'r:' .. ARGV[1]
local fence = tonumber(redis.call('GET', base .. ':fence'))
if fence and fence > tonumber(ARGV[2]) then return {0} end
redis.call('SET', base .. ':fence', ARGV[2], 'EX', ARGV[3])
local out = {1}
for _, entry in ipairs(redis.call('XRANGE', base .. ':log', '(' .. ARGV[4], '+')) do
  out[#out+1] = entry[2][2]
  out[#out+1] = entry[2][4]
end
return out
""")

Outcome = Literal[0, 1, 2]
APPENDED: Outcome = 0
FENCED: Outcome = 1
LOST: Outcome = 2


class Append(NamedTuple):
    """One entry to append: `seq` continues the run's log, `final` starts its expiry."""

    run_id: UUID
    attempt: int
    seq: int
    frame: bytes
    token_ids: bytes = b""
    final: bool = False


class Entry(NamedTuple):
    """One entry as read back; `token_ids` is packed by `pack_ids`."""

    frame: bytes
    token_ids: bytes


def pack_ids(token_ids: Sequence[int]) -> bytes:
    return array("I", token_ids).tobytes()


def unpack_ids(packed: bytes) -> tuple[int, ...]:
    ids = array("I")
    ids.frombytes(packed)
    return tuple(ids)


def _arguments(entries: Sequence[Append]) -> list[bytes | str | int]:
    arguments: list[bytes | str | int] = [
        settings.RUN_LOG_TTL_S,
        MAX_ENTRIES,
        FEED_MAX_ITEMS,
        settings.RUN_LOG_LINGER_S,
    ]
    for entry in entries:
        arguments += (
            entry.run_id.hex,
            entry.attempt,
            entry.seq,
            entry.frame,
            entry.token_ids,
            "1" if entry.final else "0",
        )
    return arguments


class AsyncLog:
    """The runner's and the relay's side. Everything raises redis.RedisError when Valkey is away."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe

    async def append(self, entries: Sequence[Append]) -> list[Outcome]:
        """Append every entry in one round trip; an outcome each."""
        outcomes: list[Outcome] = await self.pipe.run(_APPEND, *_arguments(entries))
        return outcomes

    async def fence(self, run_id: UUID, attempt: int, after: int) -> tuple[Entry, ...] | None:
        """Take the log for `attempt`; its entries after `after`, or None when a newer attempt holds it."""
        reply = await self.pipe.run(_FENCE, run_id.hex, attempt, settings.RUN_LOG_TTL_S, after)
        return tuple(map(Entry, reply[1::2], reply[2::2])) if reply[0] else None

    async def read(self, run_id: UUID, after: int, limit: int = 2_000) -> tuple[bytes, ...]:
        """Frames after `after`, at most `limit`, oldest first."""
        return _frames(await self.pipe.call(*_range(run_id, after, limit)))

    async def follow(self, run_id: UUID, feed: str, after: int, limit: int) -> tuple[bytes, ...]:
        """Register a web process's feed as a reader and read the frames after `after`, in one round trip."""
        return _frames((await self.pipe.calls(*_registration(run_id, feed), _range(run_id, after, limit)))[-1])

    async def register(self, run_ids: Iterable[UUID], feed: str) -> None:
        """Have these runs' appends copied to a feed."""
        await self.pipe.calls(*(command for run_id in run_ids for command in _registration(run_id, feed)))

    async def forget(self, run_id: UUID, feed: str) -> None:
        """Undo `register`."""
        await self.pipe.call("SREM", readers_key(run_id), feed)

    async def offer(self, lane: str, run_id: UUID, feed: str) -> None:
        """Hint to the runners that a run waits, and that this feed reads it. A lost hint costs time only."""
        await self.pipe.calls(*_registration(run_id, feed), ("RPUSH", lane_key(lane), run_id.hex))


def _registration(run_id: UUID, feed: str) -> tuple[tuple[str, str, str | int], ...]:
    key = readers_key(run_id)
    return ("SADD", key, feed), ("EXPIRE", key, READERS_TTL_S)


def _range(run_id: UUID, after: int, limit: int) -> tuple[str | int, ...]:
    return "XRANGE", log_key(run_id), f"({after}", "+", "COUNT", limit


def _frames(entries: list[tuple[bytes, list[bytes]]]) -> tuple[bytes, ...]:
    """The frame is an entry's first field."""
    return tuple(fields[1] for _, fields in entries)


def append_now(client: redis.Redis, entry: Append) -> Outcome:
    """The same append from synchronous code, for a run that no runner owns."""
    reply: Any = client.eval(_APPEND.source, 0, *_arguments([entry]))
    outcome: Outcome = reply[0]
    return outcome
