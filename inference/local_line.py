"""Places on replicas as one process sees them: the line that holds while there is no shared admission.

Responsible for: choosing the least busy replica, and a bounded line of those who find none free. Counts a place on its
member when it is given; leaves to `client` to take it back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from inference.members import Member
from inference.protocol import ModelInfo, NoReplica, Overloaded
from inference.queueing import OnWait, Ticket, WaitingLine

_AFFINITY_SLACK = 0.5


class LocalLine:
    """`members_of`: all members of a model; `eta_of`: seconds until a model that is loading is ready, if known."""

    def __init__(
        self,
        members_of: Callable[[str], list[Member]],
        eta_of: Callable[[str], float | None],
        *,
        max_waiting: int,
        max_wait_s: float,
    ) -> None:
        self._members_of, self._eta_of = members_of, eta_of
        self._max_waiting, self._max_wait_s = max_waiting, max_wait_s
        self._lines: dict[str, WaitingLine[Member]] = {}

    async def take(self, info: ModelInfo, *, prefer: str, avoid: Collection[str], on_wait: OnWait | None) -> Member:
        """A member with a place counted on it. Raises NoReplica, Overloaded."""
        ticket: Ticket[Member] = Ticket(asyncio.get_running_loop().create_future(), prefer, avoid, on_wait)
        line = self._line(info.id)
        if not self._has_ready(info.id):
            raise NoReplica(info.id, eta_s=info.eta_s)
        if not line.tickets and (member := self._choose(info.id, ticket)) is not None:
            member.mine += 1
            return member
        line.join(ticket, self._slots(info.id))
        try:
            async with asyncio.timeout(self._max_wait_s):
                return await ticket.granted
        except BaseException as error:
            _take_back(ticket)
            if isinstance(error, TimeoutError):
                retry_after_s = line.retry_after(self._slots(info.id))
                raise Overloaded(retry_after_s, "the wait took too long", code="wait_too_long") from None
            raise
        finally:
            line.leave(ticket)
            line.announce(self._slots(info.id))

    def measure(self, model: str, held_s: float) -> None:
        """How long a place of this model was held."""
        self._line(model).measure(held_s)

    def waiting(self, model: str) -> int:
        line = self._lines.get(model)
        return len(line.tickets) if line else 0

    def serve(self, model: str) -> None:
        """Give free slots to those who wait, in order."""
        line = self._lines.get(model)
        if line is None or not line.tickets:
            return
        if not self._has_ready(model):
            for ticket in line.tickets:
                _settle(ticket.granted, NoReplica(model, eta_s=self._eta_of(model)))
            line.tickets.clear()
            return
        while line.tickets and (member := self._choose(model, line.tickets[0])) is not None:
            ticket = line.tickets.popleft()
            if not ticket.granted.done():
                member.mine += 1
                ticket.granted.set_result(member)
        line.announce(self._slots(model))

    def serve_all(self) -> None:
        for model in list(self._lines):
            self.serve(model)

    def stop(self) -> None:
        """Whoever waits is cancelled."""
        for line in self._lines.values():
            for ticket in list(line.tickets):
                ticket.granted.cancel()

    def _line(self, model: str) -> WaitingLine[Member]:
        if model not in self._lines:
            self._lines[model] = WaitingLine(self._max_waiting, self._max_wait_s)
        return self._lines[model]

    def _choose(self, model: str, ticket: Ticket[Member]) -> Member | None:
        """The least loaded free replica; a preferred one may be up to half its slots busier than that."""
        now = time.monotonic()
        usable = [m for m in self._members_of(model) if m.is_usable(now)]
        usable = [m for m in usable if m.info.id not in ticket.avoid] or usable
        free = [m for m in usable if m.is_free]
        if not free:
            return None
        best = min(free, key=lambda m: (m.pressure, m.mine, m.info.id))
        preferred = next((m for m in free if m.info.id == ticket.prefer), None)
        return preferred if preferred and preferred.pressure <= best.pressure + _AFFINITY_SLACK else best

    def _has_ready(self, model: str) -> bool:
        return any(m.is_ready for m in self._members_of(model))

    def _slots(self, model: str) -> int:
        return sum(m.info.slots for m in self._members_of(model) if m.is_ready)


def _take_back(ticket: Ticket[Member]) -> None:
    """The waiter gave up in the very turn in which it was served."""
    granted = ticket.granted
    if granted.done() and not granted.cancelled() and granted.exception() is None:
        granted.result().mine -= 1


def _settle(future: asyncio.Future[Member], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
