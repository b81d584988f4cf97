"""A runner whose fencing is switched off, to show that the checkers notice: `python -m tests.faults.unfenced`.

It does what a product without fencing tokens would: it appends at the end of the log whatever its attempt is, saves
its progress under whichever attempt is current, and ends the run if nobody has.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.live_settings")

import django

django.setup()

from apps.conversations.eventlog import APPENDED, Append, AsyncLog, log_key, readers_key  # noqa: E402
from apps.conversations.eventlog.log import Outcome  # noqa: E402
from apps.conversations.models import Run  # noqa: E402
from apps.conversations.runner.execution import Execution  # noqa: E402
from apps.conversations.runner.flusher import Flusher  # noqa: E402
from apps.conversations.runner.process import RunnerProcess  # noqa: E402
from apps.conversations.services import finishing, runs  # noqa: E402
from apps.conversations.types import RunResult  # noqa: E402
from apps.core.db import in_db  # noqa: E402
from inference.pipe import Script  # noqa: E402

# KEYS: log, readers. ARGV: id, seq, frame, token ids. Takes the next free number when its own is used.
_APPEND = Script("""
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local seq = tonumber(ARGV[2])
if #top > 0 then seq = math.max(seq, tonumber(string.match(top[1][1], '^%d+')) + 1) end
local frame = 'id: ' .. string.format('%d', seq) .. string.match(ARGV[3], '\\n.*$')
redis.call('XADD', KEYS[1], string.format('%d', seq) .. '-0', 'f', frame, 'k', ARGV[4])
for _, feed in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if redis.call('EXISTS', feed .. ':alive') == 1 then redis.call('RPUSH', feed, ARGV[1], frame) end
end
""")


class UnfencedLog(AsyncLog):
    async def append(self, entries: Sequence[Append]) -> list[Outcome]:
        for entry in entries:
            keys = [log_key(entry.run_id), readers_key(entry.run_id)]
            await self.pipe.run(_APPEND, entry.run_id.hex, entry.seq, entry.frame, entry.token_ids, keys=keys)
        return [APPENDED] * len(entries)


class UnfencedFlusher(Flusher):
    async def checkpoint(self) -> None:
        progress = [p for writer in list(self.writers) if writer.seq and (p := writer.progress())]
        if progress:
            current = await in_db(_attempts, [p.run_id for p in progress])
            await in_db(runs.checkpoint_runs, [replace(p, attempt=current.get(p.run_id, 0)) for p in progress])


class UnfencedExecution(Execution):
    async def _finish(self, result: RunResult) -> dict[str, Any] | None:
        id = self.claimed.id
        numbered = replace(result, seq=self.writer.next_seq())
        event = await in_db(finishing.finish_run, id, (await in_db(_attempts, [id]))[id], numbered, by=self.runner)
        if event is None:
            ended = await in_db(runs.finished_events, [id])
            return ended[id][1]
        return event


def _attempts(run_ids: Sequence[UUID]) -> dict[UUID, int]:
    return dict(Run.objects.filter(id__in=run_ids).values_list("id", "attempt"))


class UnfencedRunner(RunnerProcess):
    kind_of_execution = UnfencedExecution

    def __init__(self) -> None:
        super().__init__()
        self.log = UnfencedLog(self.valkey)
        self.flusher = UnfencedFlusher(self.log)


async def main() -> None:
    await UnfencedRunner().run()


if __name__ == "__main__":
    asyncio.run(main())
