"""One replica as one process sees it: its load, and whether it may be used after what it did.

Responsible for: occupancy from our own answers and from what was published, and which errors count against it. Leaves
the pauses to `breaker`, and to `client` which member is chosen.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from inference.breaker import PAUSE_MOST_S, Breaker
from inference.protocol import (
    Engine,
    EngineFailed,
    EngineOverloaded,
    EngineUnavailable,
    FailureKind,
    InferenceError,
    ReplicaInfo,
    ReplicaState,
)
from inference.registry import Record

_FULL_PAUSE_S = 0.5


@dataclass(eq=False, slots=True)
class Member:
    """`mine`: answers of this process on it. `others`: those of anyone else, as last published. `full_until`: it
    refused for lack of room."""

    record: Record
    engine: Engine | None = None
    mine: int = 0
    others: int = 0
    full_until: float = 0.0
    retired: bool = False
    breaker: Breaker = field(default_factory=Breaker)

    @property
    def info(self) -> ReplicaInfo:
        return self.record.replica

    @property
    def state(self) -> ReplicaState:
        """What was published, unless this process knows worse."""
        published = self.info.state
        bad = published is ReplicaState.READY and self.breaker.is_quarantined
        return ReplicaState.QUARANTINED if bad else published

    @property
    def is_ready(self) -> bool:
        return self.state is ReplicaState.READY

    def seen(self) -> Record:
        """The record with what this process knows: for those who look, and for publishing."""
        return replace(self.record, replica=replace(self.info, state=self.state, breaker=self.breaker.state.value))

    @property
    def pressure(self) -> float:
        return (self.mine + self.others) / max(1, self.info.slots)

    @property
    def is_free(self) -> bool:
        return self.mine + self.others < self.info.slots

    def is_usable(self, now: float) -> bool:
        return self.is_ready and self.breaker.is_closed and self.full_until <= now

    def update(self, record: Record) -> None:
        """A newer record. A replica that became ready again has answered its warm-up, so it is used at once."""
        new, old = record.replica, self.info
        if new.state is ReplicaState.READY and old.state is not ReplicaState.READY:
            self.full_until = 0.0
            self.breaker.close(time.monotonic())
        if new.updated_at != old.updated_at:
            self.others = max(0, new.running + new.waiting - self.mine)
        self.record = record

    def judge(self, error: InferenceError | None, asked_at: float) -> None:
        """How an answer went that was asked for at `asked_at`. What we aborted ourselves is nobody's failure."""
        now = time.monotonic()
        if error is None:
            self.breaker.succeed()
        elif isinstance(error, EngineOverloaded):
            self.full_until = max(self.full_until, now + min(error.retry_after_s or _FULL_PAUSE_S, PAUSE_MOST_S))
        elif isinstance(error, EngineFailed | EngineUnavailable) and error.kind is not FailureKind.ABORTED:
            self.breaker.fail(asked_at, now)
