"""What one process has seen of admission, as plain numbers for its metrics."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

WAIT_BOUNDS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
ERROR_BOUNDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0)
# Below this a relative error says nothing.
SHORTEST_WAIT_S = 1.0


@dataclass(slots=True)
class Histogram:
    """Counts by upper bound, the last for all above."""

    bounds: Sequence[float]
    counts: list[int] = field(default_factory=list)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(slots=True)
class Stats:
    """`granted`: by class, `lane:tier`. `refused`: by model and code. `estimate_errors`: by model; a model in a region
    is one of its own. `reaped`: tickets of others (or overdue ones) that this
    process took back. `recovered`: times that it told a Valkey without memory what it holds."""

    granted: Counter[str] = field(default_factory=Counter)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    waits_s: Histogram = field(default_factory=lambda: Histogram(WAIT_BOUNDS_S))
    estimate_errors: dict[str, Histogram] = field(default_factory=dict)
    reaped: int = 0
    recovered: int = 0
    recent_errors: deque[float] = field(default_factory=lambda: deque(maxlen=1_000))

    def waited(self, model: str, waited_s: float, estimated_s: float | None) -> None:
        """`estimated_s`: what was told when the wait began."""
        self.waits_s.add(waited_s)
        if estimated_s is not None:
            error = estimate_error(estimated_s, waited_s)
            self.estimate_errors.setdefault(model, Histogram(ERROR_BOUNDS)).add(error)
            self.recent_errors.append(error)

    def median_error(self) -> float | None:
        """Of the last thousand waits."""
        return median(self.recent_errors) if self.recent_errors else None


def estimate_error(estimated_s: float, waited_s: float) -> float:
    """The difference as a share of the real wait, and of at least a second."""
    return abs(estimated_s - waited_s) / max(waited_s, SHORTEST_WAIT_S)
