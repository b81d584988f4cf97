"""The waiting line of one model: first come, first served, bounded, and honest about how long it takes.

Responsible for: positions, the estimate from measured holding times, and the bound. Leaves to `client` who is
served from which replica.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from inference.protocol import Overloaded

_UNMEASURED_HOLD_S = 10.0


@dataclass(frozen=True, slots=True)
class WaitState:
    """`position` 1 is next. `estimated_wait_s` is None until rates were measured."""

    position: int
    estimated_wait_s: float | None


Grant = TypeVar("Grant")
OnWait = Callable[[WaitState], None]


@dataclass(eq=False, slots=True)
class Ticket(Generic[Grant]):
    """One reservation that waits. `granted` is set by the pool, which has then already counted it."""

    granted: asyncio.Future[Grant]
    prefer: str | None = None
    avoid: Collection[str] = ()
    on_wait: OnWait | None = None
    told: WaitState | None = None


@dataclass(slots=True)
class WaitingLine(Generic[Grant]):
    max_waiting: int
    max_wait_s: float
    tickets: deque[Ticket[Grant]] = field(default_factory=deque)
    hold_s: float | None = None

    def measure(self, held_s: float) -> None:
        """Exponential mean over about the last ten answers."""
        self.hold_s = held_s if self.hold_s is None else self.hold_s + 0.1 * (held_s - self.hold_s)

    def estimate(self, position: int, slots: int) -> float | None:
        """Slots free up `slots / hold_s` times a second, and `position` of them must."""
        return None if self.hold_s is None else position * self.hold_s / max(1, slots)

    def retry_after(self, slots: int) -> float:
        """Time until half of the line has been served: by then a place is likely, and clients come back spread."""
        waiting = max(1, len(self.tickets) // 2)
        return max(1.0, waiting * (self.hold_s or _UNMEASURED_HOLD_S) / max(1, slots))

    def join(self, ticket: Ticket[Grant], slots: int) -> None:
        """Overloaded when the line is full, or so long that the wait would exceed its bound."""
        position = len(self.tickets) + 1
        wait = self.estimate(position, slots)
        if position > self.max_waiting:
            raise Overloaded(
                self.retry_after(slots),
                f"{len(self.tickets)} requests are already waiting",
            )
        if wait is not None and wait > self.max_wait_s:
            raise Overloaded(self.retry_after(slots), f"the wait would be about {wait:.0f} s", code="wait_too_long")
        self.tickets.append(ticket)
        self._tell(ticket, WaitState(position, wait))

    def leave(self, ticket: Ticket[Grant]) -> None:
        if ticket in self.tickets:
            self.tickets.remove(ticket)

    def announce(self, slots: int) -> None:
        """Tell those whose position has changed."""
        for position, ticket in enumerate(self.tickets, 1):
            if ticket.told is None or ticket.told.position != position:
                self._tell(ticket, WaitState(position, self.estimate(position, slots)))

    @staticmethod
    def _tell(ticket: Ticket[Grant], state: WaitState) -> None:
        ticket.told = state
        if ticket.on_wait:
            ticket.on_wait(state)
