"""Places on replicas as one process sees them: the line that holds while there is no shared admission.

Responsible for: choosing the least busy replica, and a bounded line of those who find none free. Counts a place on its
member when it is given; leaves to `client` to take it back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from inference.members import Member
from inference.protocol import NoReplica, Overloaded
from inference.queueing import OnWait, Ticket, WaitingLine

_AFFINITY_SLACK = 0.5
Where = tuple[str, str]
"""A model and the region that its replicas must be in, empty for any: who waits for the same."""


class LocalLine:
    """`members_of`: all members that a line waits for; `eta_of`: seconds until one that is loading is ready, if known.
    Members may belong to several lines."""

    def __init__(
        self,
        members_of: Callable[[Where], list[Member]],
        eta_of: Callable[[Where], float | None],
        *,
        max_waiting: int,
        max_wait_s: float,
    ) -> None:
        self._members_of, self._eta_of = members_of, eta_of
        self._max_waiting, self._max_wait_s = max_waiting, max_wait_s
        self._lines: dict[Where, WaitingLine[Member]] = {}

    async def take(self, where: Where, *, prefer: str, avoid: Collection[str], on_wait: OnWait | None) -> Member:
        """A member of the line's with a place counted on it. Raises NoReplica, Overloaded."""
        ticket: Ticket[Member] = Ticket(asyncio.get_running_loop().create_future(), prefer, avoid, on_wait)
        line = self._line(where)
        if not self._has_ready(where):
            raise NoReplica(where[0], eta_s=self._eta_of(where))
        if not line.tickets and (member := self._choose(where, ticket)) is not None:
            member.mine += 1
            return member
        line.join(ticket, self._slots(where))
        try:
            async with asyncio.timeout(self._max_wait_s):
                return await ticket.granted
        except BaseException as error:
            _take_back(ticket)
            if isinstance(error, TimeoutError):
                retry_after_s = line.retry_after(self._slots(where))
                raise Overloaded(retry_after_s, "the wait took too long", code="wait_too_long") from None
            raise
        finally:
            line.leave(ticket)
            line.announce(self._slots(where))

    def measure(self, where: Where, held_s: float) -> None:
        """How long a place of this line was held."""
        self._line(where).measure(held_s)

    def waiting(self, where: Where) -> int:
        line = self._lines.get(where)
        return len(line.tickets) if line else 0

    def serve(self) -> None:
        """Give free slots to those who wait, in the order of each line."""
        for where, line in self._lines.items():
            if line.tickets:
                self._serve(where, line)

    def _serve(self, where: Where, line: WaitingLine[Member]) -> None:
        if not self._has_ready(where):
            for ticket in line.tickets:
                _settle(ticket.granted, NoReplica(where[0], eta_s=self._eta_of(where)))
            line.tickets.clear()
            return
        while line.tickets and (member := self._choose(where, line.tickets[0])) is not None:
            ticket = line.tickets.popleft()
            if not ticket.granted.done():
                member.mine += 1
                ticket.granted.set_result(member)
        line.announce(self._slots(where))

    def stop(self) -> None:
        """Whoever waits is cancelled."""
        for line in self._lines.values():
            for ticket in list(line.tickets):
                ticket.granted.cancel()

    def _line(self, where: Where) -> WaitingLine[Member]:
        if where not in self._lines:
            self._lines[where] = WaitingLine(self._max_waiting, self._max_wait_s)
        return self._lines[where]

    def _choose(self, where: Where, ticket: Ticket[Member]) -> Member | None:
        """The least loaded free replica; a preferred one may be up to half its slots busier than that."""
        now = time.monotonic()
        usable = [m for m in self._members_of(where) if m.is_usable(now)]
        usable = [m for m in usable if m.info.id not in ticket.avoid] or usable
        free = [m for m in usable if m.is_free]
        if not free:
            return None
        best = min(free, key=lambda m: (m.pressure, m.mine, m.info.id))
        preferred = next((m for m in free if m.info.id == ticket.prefer), None)
        return preferred if preferred and preferred.pressure <= best.pressure + _AFFINITY_SLACK else best

    def _has_ready(self, where: Where) -> bool:
        return any(m.is_ready for m in self._members_of(where))

    def _slots(self, where: Where) -> int:
        return sum(m.info.slots for m in self._members_of(where) if m.is_ready)


def _take_back(ticket: Ticket[Member]) -> None:
    """The waiter gave up in the very turn in which it was served."""
    granted = ticket.granted
    if granted.done() and not granted.cancelled() and granted.exception() is None:
        granted.result().mine -= 1


def _settle(future: asyncio.Future[Member], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
