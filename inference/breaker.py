"""The circuit breaker of one replica, as one process sees it: closed, open, half open.

    closed     answers go there
    open       none does, after a failure; for twice as long each time in a row
    half_open  one short probe of our own is on its way; nobody's answer is risked

Responsible for: the state machine and its pauses. Leaves the probe to `client`, and what counts as a failure to
`members`. Times are `time.monotonic()` seconds.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum

PAUSE_FIRST_S, PAUSE_MOST_S = 1.0, 30.0
# Openings in a row after which a replica counts as quarantined: pauses of 1, 2, 4, 8 and 16 s have passed.
QUARANTINE_AFTER = 5


class BreakerState(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(eq=False, slots=True)
class Breaker:
    """`failures`: openings since the last good answer. `until`: when an open breaker may be probed. `since`: the last
    time it closed."""

    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    until: float = 0.0
    since: float = 0.0

    @property
    def is_closed(self) -> bool:
        return self.state is BreakerState.CLOSED

    @property
    def is_quarantined(self) -> bool:
        return not self.is_closed and self.failures >= QUARANTINE_AFTER

    def fail(self, asked_at: float, now: float) -> None:
        """An answer that was asked for at `asked_at` failed. All that break with one death count once: what was asked
        before the breaker last closed tells nothing new."""
        if self.is_closed and asked_at >= self.since:
            self._open(now)

    def succeed(self) -> None:
        """An answer ended well: the row of failures is over. A breaker that is open is closed by its probe alone."""
        if self.is_closed:
            self.failures = 0

    def is_due(self, now: float, *, urgent: bool = False) -> bool:
        """Whether to probe now. `urgent`: nothing else could answer, so a pause would spare nobody."""
        return self.state is BreakerState.OPEN and (urgent or self.until <= now)

    def half_open(self) -> None:
        self.state = BreakerState.HALF_OPEN

    def settle(self, *, ok: bool, now: float) -> None:
        """The probe's verdict. `failures` stays: a replica that passes probes and fails answers rests ever longer."""
        if self.state is BreakerState.HALF_OPEN:
            self.close(now) if ok else self._open(now)

    def close(self, now: float) -> None:
        self.state, self.since = BreakerState.CLOSED, now

    def _open(self, now: float) -> None:
        pause = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2.0**self.failures)
        self.failures += 1
        self.state, self.until = BreakerState.OPEN, now + spread(pause)


def spread(seconds: float) -> float:
    """`seconds` give or take a tenth, so that processes and clients do not come back in step."""
    return seconds * (0.9 + 0.2 * secrets.randbelow(1000) / 1000)
