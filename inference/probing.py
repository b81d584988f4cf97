"""Probes of replicas whose breakers are open: short requests of our own, in the background, one a replica at a time.

Responsible for: when a probe is due and what it means. Leaves the state machine to `breaker`, and what follows from a
verdict to `client`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection

from inference.members import Member
from inference.prober import try_out
from inference.protocol import Engine, InferenceError, ReplicaState

log = logging.getLogger(__name__)


class BreakerProbes:
    """`settled` is called with each replica that was probed. `tasks` are those on their way."""

    def __init__(
        self, engine_of: Callable[[Member], Engine], settled: Callable[[Member], None], within_s: float
    ) -> None:
        self._engine_of, self._settled, self._within_s = engine_of, settled, within_s
        self.tasks: set[asyncio.Task[None]] = set()

    def begin(self, members: Collection[Member]) -> None:
        """Probe those whose pause is over. Where all replicas of a model are out, none rests."""
        now = time.monotonic()
        served = {m.record.card.id for m in members if m.is_ready and m.breaker.is_closed}
        for member in members:
            urgent = member.record.card.id not in served
            if member.info.state is ReplicaState.READY and member.breaker.is_due(now, urgent=urgent):
                member.breaker.half_open()
                task = asyncio.create_task(self._probe(member), name=f"probe-{member.info.id}")
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)

    async def _probe(self, member: Member) -> None:
        ok = False
        try:
            card = member.record.card
            await try_out(self._engine_of(member), card.id, within_s=self._within_s, purpose=card.purpose)
            ok = True
        except InferenceError as error:
            log.warning("%s did not pass its probe: %s", member.info.id, error)
        finally:
            member.breaker.settle(ok=ok, now=time.monotonic())
        self._settled(member)
