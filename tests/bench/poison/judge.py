"""What came of the hostile files, as figures and as a table of their ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

TERMINAL_GOAL_S = 130.0
RSS_GOAL_GIB = 1.0
ENDED = frozenset({"ready", "partial", "failed", "needs_password"})
UNCLEAR = frozenset({"crashed", "unavailable"})
"""Reasons that say nothing about the file: not a failure of the product, and worth a look."""
Figures = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one file ended. `state` is "unfinished" when it was given up, "refused" when it was not taken."""

    name: str
    state: str
    reason: str
    terminal_s: float

    @property
    def end(self) -> str:
        return self.reason if self.state == "failed" else f"{self.state} {self.reason}".strip()


def figures(outcomes: Sequence[Outcome], *, deaths: int, peak_bytes: int, neighbours: int, failures: int) -> Figures:
    """`neighbours` healthy files went beside them, of which `failures` did not end as they should have."""
    slowest = max((outcome.terminal_s for outcome in outcomes), default=0.0)
    unfinished = sum(outcome.state == "unfinished" for outcome in outcomes)
    values = {
        "poison_worker_deaths": (deaths, "", 0),
        "poison_unfinished": (unfinished, "files", 0),
        "poison_terminal_p100_s": (round(slowest, 1), "s", TERMINAL_GOAL_S),
        "poison_rss_gib": (round(peak_bytes / (1 << 30), 3), "GiB", RSS_GOAL_GIB),
        "poison_neighbour_failures": (failures, f"of {neighbours}", 0),
        "poison_files": (len(outcomes), "files", None),
    }
    return {
        name: {"value": value, "unit": unit, "goal": goal, "ok": goal is None or value <= goal}
        for name, (value, unit, goal) in values.items()
    }


def table(outcomes: Sequence[Outcome]) -> str:
    """How many files of each ending ended in which way."""
    by_ending: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        ending = PurePosixPath(outcome.name).suffix
        by_ending.setdefault(ending, Counter())[outcome.end] += 1
    lines = [
        f"  {ending:6} " + ", ".join(f"{end} {count}" for end, count in counts.most_common())
        for ending, counts in sorted(by_ending.items())
    ]
    total = Counter(outcome.end for outcome in outcomes)
    return "\n".join([*lines, "  all    " + ", ".join(f"{end} {count}" for end, count in total.most_common())])
