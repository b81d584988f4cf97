"""One replica as one process sees it: its load, and whether it may be used after what it did.

Responsible for: occupancy from our own answers and from what was published, and the pause after failures. Leaves to
`client` which member is chosen.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from inference.protocol import (
    Engine,
    EngineFailed,
    EngineOverloaded,
    EngineUnavailable,
    InferenceError,
    ReplicaInfo,
    ReplicaState,
)
from inference.registry import Record

_PAUSE_FIRST_S, _PAUSE_MOST_S, _FULL_PAUSE_S = 1.0, 30.0, 0.5


@dataclass(eq=False, slots=True)
class Member:
    """`mine`: answers of this process on it. `others`: those of anyone else, as last published."""

    record: Record
    engine: Engine | None = None
    mine: int = 0
    others: int = 0
    failures: int = 0
    cool_until: float = 0.0
    retired: bool = False

    @property
    def info(self) -> ReplicaInfo:
        return self.record.replica

    @property
    def pressure(self) -> float:
        return (self.mine + self.others) / max(1, self.info.slots)

    @property
    def is_free(self) -> bool:
        return self.mine + self.others < self.info.slots

    def is_usable(self, now: float) -> bool:
        return self.info.state is ReplicaState.READY and self.cool_until <= now

    def update(self, record: Record) -> None:
        """A newer record. A replica that became ready again starts with a clean sheet."""
        new, old = record.replica, self.info
        if new.state is ReplicaState.READY and old.state is not ReplicaState.READY:
            self.failures, self.cool_until = 0, 0.0
        if new.updated_at != old.updated_at:
            self.others = max(0, new.running + new.waiting - self.mine)
        self.record = record

    def judge(self, error: InferenceError | None) -> None:
        """Pause after a failure, twice as long each time in a row; after a refusal for room only for a moment."""
        now = time.monotonic()
        if error is None:
            self.failures = 0
        elif isinstance(error, EngineOverloaded):
            self.cool_until = max(self.cool_until, now + min(error.retry_after_s or _FULL_PAUSE_S, _PAUSE_MOST_S))
        elif isinstance(error, EngineFailed | EngineUnavailable):
            pause = min(_PAUSE_MOST_S, _PAUSE_FIRST_S * 2.0**self.failures)
            self.failures += 1
            self.cool_until = now + spread(pause)


def spread(seconds: float) -> float:
    """`seconds` give or take a tenth, so that processes and clients do not come back in step."""
    return seconds * (0.9 + 0.2 * secrets.randbelow(1000) / 1000)
