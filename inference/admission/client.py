"""What a process holds of the shared admission: its tickets, its heartbeat, and the news of its grants.

Responsible for: one call to ask and one to release; waiting for the feed; telling waiters where they are; saying again
what it holds when Valkey has forgotten; never leaving a ticket behind. Leaves every decision to the scripts, and the
line of one process without Valkey to `inference.client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import redis

from inference.admission.policy import DEFAULT, Policy
from inference.admission.stats import Stats
from inference.admission.types import Ask, Grant, Standing
from inference.admission.verbs import Gone, Granted, NoneReady, Refused, Stranger, Verbs, digest
from inference.breaker import spread
from inference.pipe import Pipe
from inference.protocol import NoReplica, Overloaded, ReplicaInfo
from inference.queueing import OnWait, WaitState

log = logging.getLogger(__name__)

FEED_WAIT_S = 2.0
FEED_BATCH = 200
LOOKED_UP_AT_ONCE = 100
# Releases that could not be said; more than this many are left to the reaper.
MOST_UNSAID = 10_000


@dataclass(eq=False, slots=True)
class _Ticket:
    """`mark` tells this asking from earlier ones with the same ticket. `asked` and `granted`: milliseconds by the
    server's clock. `place` ends with the replica or with an error. `nothing_there`: it was refused, so that there is
    nothing to release. `whole`: it was left without an error."""

    ask: Ask
    mark: int
    asked: float
    on_wait: OnWait | None
    place: asyncio.Future[str]
    told: WaitState | None = None
    first: WaitState | None = None
    replica: str = ""
    granted: float = 0.0
    used: int | None = None
    nothing_there: bool = False
    whole: bool = False

    def tell(self, state: WaitState) -> None:
        """The waiter hears of a change of position only."""
        if self.first is None:
            self.first = state
        if self.told is None or self.told.position != state.position:
            self.told = state
            if self.on_wait:
                self.on_wait(state)

    def settle(self, replica: str, now: float) -> None:
        if not self.place.done():
            self.replica, self.granted = replica, now
            self.place.set_result(replica)

    def fail(self, error: Exception) -> None:
        if not self.place.done():
            self.place.set_exception(error)


class Admission:
    """`owner` names this process, differently at each start. `acquire` raises redis.RedisError while Valkey is away."""

    def __init__(self, pipe_url: str, *, owner: str, policy: Policy = DEFAULT) -> None:
        self.policy = policy
        self.stats = Stats()
        self.owner = owner
        self._pipe = Pipe(pipe_url)
        self._feed = Pipe(pipe_url, patience_s=FEED_WAIT_S + 5)
        self._verbs = Verbs(self._pipe, owner, policy)
        self._replicas: dict[str, tuple[ReplicaInfo, ...]] = {}
        self._digests: dict[str, str] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._unsaid: dict[str, _Ticket] = {}
        self._marks = count(1)
        self._must_remind = False
        self._meeting = asyncio.Lock()
        self._replicas_changed = asyncio.Event()
        self._heard_at = time.monotonic()
        self._offset_ms = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._releasing: set[asyncio.Task[None]] = set()

    # ------------------------------------------------ life

    async def start(self) -> None:
        """Begins to beat. Valkey may be away: then asking raises until it is there."""
        try:
            await self._meet()
        except redis.RedisError as error:
            log.warning("the shared admission cannot be reached: %s", error)
        loops = {
            "beat": (self._beat, 0.0),
            "feed": (self._hear, 0.0),
            "announce": (self._announce, self.policy.announce_s),
        }
        for name, (step, pause_s) in loops.items():
            self._tasks.append(asyncio.create_task(_keep(step, pause_s), name=f"admission-{name}"))

    async def stop(self) -> None:
        """Waiting tickets are cancelled; what is still held is released."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        for ticket in list(self._tickets.values()):
            ticket.place.cancel()
            self._leave(ticket)
        await asyncio.gather(*self._releasing, return_exceptions=True)
        await self._feed.close()
        await self._pipe.close()

    def set_replicas(self, replicas: Sequence[ReplicaInfo]) -> None:
        """The ready ones, of all models; each region of a model counts as a model of its own (`ReplicaInfo.line`). Who
        waits for a model without any is told so."""
        by_model: dict[str, list[ReplicaInfo]] = {}
        for replica in replicas:
            by_model.setdefault(replica.line, []).append(replica)
        for model in self._replicas.keys() - by_model.keys():
            by_model[model] = []
            for ticket in self._tickets.values():
                if ticket.ask.model == model:
                    ticket.fail(NoReplica(model))
        before = self._digests
        self._replicas = {model: tuple(group) for model, group in by_model.items()}
        self._digests = {model: digest(group) for model, group in self._replicas.items()}
        if self._digests != before:
            self._replicas_changed.set()

    # ------------------------------------------------ places

    @asynccontextmanager
    async def acquire(self, ask: Ask, on_wait: OnWait | None = None) -> AsyncIterator[Grant]:
        """A place, after a wait when all are taken; released when the `async with` ends.

        `on_wait` is called in the event loop, with the position when the wait begins and each time it changes.
        Raises NoReplica, Overloaded, redis.RedisError (Valkey is away).
        """
        ticket = _Ticket(ask, next(self._marks), self._now(), on_wait, asyncio.get_running_loop().create_future())
        self._tickets[ask.ticket] = ticket
        try:
            yield await self._admit(ticket)
            ticket.whole = True
        finally:
            self._leave(ticket)

    def used(self, ticket: str, tokens: int) -> None:
        """How many tokens the run really took, told before its place is left: the rest is given back to its budget
        and to its part of the line. Without it all that was reserved counts as used. Tell 0 of an answer that failed
        when its error does not leave the `async with`: its time then says nothing about the replicas."""
        if held := self._tickets.get(ticket):
            held.used = tokens

    async def capacity(self, model: str) -> Standing:
        """Of all processes together. Raises redis.RedisError."""
        return await self._verbs.capacity(model)

    def abandon(self, ticket: str) -> None:
        """Give a place back that was asked for elsewhere and is not needed."""
        self._in_background(self._release_unasked(ticket))

    async def _release_unasked(self, ticket: str) -> None:
        with contextlib.suppress(redis.RedisError):  # then it lapses
            await self._verbs.release(self._now(), ticket, 0, whole=False)

    async def _admit(self, ticket: _Ticket) -> Grant:
        if self._replicas_changed.is_set():
            await self._meet()
        lane = ticket.ask.lane
        try:
            async with asyncio.timeout(self.policy.max_wait_s[lane]):
                await self._enter(ticket)
                replica = await ticket.place
        except TimeoutError:
            left_s = ticket.told.estimated_wait_s if ticket.told else None
            retry_s = max(1.0, left_s or self.policy.unmeasured_hold_s)
            error = Overloaded(retry_s, "the wait took too long", code="wait_too_long")
            raise self._count(ticket, error) from None
        waited_s = max(0.0, ticket.granted - ticket.asked) / 1000
        self.stats.granted[f"{lane}:{ticket.ask.tier}"] += 1
        self.stats.waited(ticket.ask.model, waited_s, ticket.first.estimated_wait_s if ticket.first else None)
        return Grant(ticket.ask.ticket, replica, waited_s)

    async def _enter(self, ticket: _Ticket, *, reminded: bool = False) -> None:
        """Ask; afterwards the ticket's place is settled, failed, or on its way through the feed."""
        try:
            reply = await self._verbs.ask(
                self._now(), ticket.ask, asked=ticket.asked, mark=ticket.mark, reminded=reminded
            )
        except Stranger:
            if reminded:
                raise
            await self._meet()
            if ticket.first is None and not ticket.place.done():
                await self._enter(ticket)
            return
        match reply:
            case Granted(replica):
                ticket.settle(replica, self._now())
            case WaitState():
                ticket.tell(reply)
            case Refused():
                ticket.nothing_there = True
                ticket.fail(self._count(ticket, reply.error(ticket.ask)))
            case NoneReady():
                ticket.nothing_there = True
                ticket.fail(NoReplica(ticket.ask.model))

    def _count(self, ticket: _Ticket, refusal: Overloaded) -> Overloaded:
        self.stats.refused[ticket.ask.model, refusal.code] += 1
        return refusal

    def _leave(self, ticket: _Ticket) -> None:
        """Release in the background: leaving must not wait for Valkey, nor fail because it is away."""
        if not self._is_here(ticket):
            return
        del self._tickets[ticket.ask.ticket]
        if ticket.nothing_there:
            return
        self._in_background(self._release(ticket))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)

    async def _release(self, ticket: _Ticket) -> None:
        id = ticket.ask.ticket
        if id in self._tickets:
            return  # asked again meanwhile: the new ask has replaced it
        try:
            await self._verbs.release(self._now(), id, ticket.used, whole=ticket.whole)
        except redis.RedisError:
            # Away; or a fresh Valkey, which may be hearing of this ticket just now. Said again after the next beat.
            if len(self._unsaid) < MOST_UNSAID:
                self._unsaid[id] = ticket

    # ------------------------------------------------ heartbeat, recovery

    def _now(self) -> float:
        """Milliseconds by the server's clock, which all owners share; steady when ours is set."""
        return time.monotonic() * 1000 + self._offset_ms

    async def _beat(self) -> None:
        """At the next heartbeat, or at once when the replicas have changed: until they are told there is no line."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(spread(self.policy.heartbeat_s)):
                await self._replicas_changed.wait()
        try:
            await self._meet()
            unsaid, self._unsaid = self._unsaid, {}
            for ticket in unsaid.values():
                await self._release(ticket)
        except redis.RedisError as error:
            if time.monotonic() - self._heard_at > self.policy.owner_ttl_s:
                # Others have given our tickets away by now.
                for ticket in self._tickets.values():
                    ticket.fail(redis.ConnectionError(f"Valkey is away: {error}"))
            raise

    async def _meet(self) -> None:
        """Beat; tell what is stale, and everything when Valkey does not know us."""
        async with self._meeting:
            seconds, micros = await self._pipe.call("TIME")
            self._offset_ms = int(seconds) * 1000 + int(micros) / 1000 - time.monotonic() * 1000
            first, told = not self._verbs.epoch, self._digests
            beat = await self._verbs.beat(self._now(), tuple(told.items()))
            self.stats.reaped += beat.reaped
            for model in beat.stale:
                await self._verbs.set_replicas(self._now(), model, self._replicas.get(model, ()))
            # Only now: who asks meanwhile must not find the replicas of before.
            if self._digests == told:
                self._replicas_changed.clear()
            self._must_remind |= not beat.known and not first
            if self._must_remind:
                await self._remind()
                self._must_remind = False
            self._heard_at = time.monotonic()

    async def _remind(self) -> None:
        """Say again what we hold, then who waits, oldest first. Who leaves while it is said may be released before it
        is heard, since a fresh Valkey is told the scripts first: so that is said again too."""
        self.stats.recovered += 1
        oldest_first = sorted(self._tickets.values(), key=lambda ticket: ticket.asked)
        for ticket in oldest_first:
            if ticket.replica and self._is_here(ticket):
                await self._verbs.hold(
                    self._now(), ticket.ask, asked=ticket.asked, granted=ticket.granted, replica=ticket.replica
                )
                await self._release_who_left(ticket)
        for ticket in oldest_first:
            if ticket.first is not None and not ticket.place.done() and self._is_here(ticket):
                await self._enter(ticket, reminded=True)
                await self._release_who_left(ticket)

    def _is_here(self, ticket: _Ticket) -> bool:
        return self._tickets.get(ticket.ask.ticket) is ticket

    async def _release_who_left(self, ticket: _Ticket) -> None:
        if not self._is_here(ticket):
            await self._release(ticket)

    # ------------------------------------------------ news

    async def _hear(self) -> None:
        """Grants to our waiting tickets, as they come."""
        feed = f"adm:feed:{self.owner}"
        reply = await self._feed.call("BLMPOP", FEED_WAIT_S, 1, feed, "LEFT", "COUNT", FEED_BATCH)
        for item in reply[1] if reply else ():
            id, replica, mark = item.decode().split("\n")
            if (ticket := self._tickets.get(id)) and ticket.mark == int(mark):
                ticket.settle(replica, self._now())

    async def _announce(self) -> None:
        """Tell waiters of changed positions; settle those whose news was lost."""
        waiting = [ticket for ticket in self._tickets.values() if ticket.first and not ticket.place.done()]
        for at in range(0, len(waiting), LOOKED_UP_AT_ONCE):
            group = waiting[at : at + LOOKED_UP_AT_ONCE]
            epoch = self._verbs.epoch
            places = await self._verbs.where(self._now(), [ticket.ask.ticket for ticket in group])
            for ticket, place in zip(group, places, strict=True):
                if ticket.place.done():
                    continue
                match place:
                    case WaitState():
                        ticket.tell(place)
                    case Granted(replica):
                        ticket.settle(replica, self._now())
                    case Gone() if epoch == self._verbs.epoch:
                        await self._meet()


async def _keep(step: Callable[[], Awaitable[None]], pause_s: float) -> None:
    """Repeat a step for ever. While Valkey is away, one try a second."""
    while True:
        try:
            await step()
            await asyncio.sleep(spread(pause_s))
        except redis.RedisError as error:
            log.warning("the shared admission cannot be reached: %s", error)
            await asyncio.sleep(spread(1.0))
