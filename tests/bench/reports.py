"""Reports of measurements, `build/bench/NAME.json`, as a table: `python -m tests.bench.reports NAME...`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infra.local.layout import REPOSITORY

REPORTS = REPOSITORY / "build" / "bench"


def report(name: str) -> Path:
    return REPORTS / f"{name}.json"


def show(names: Sequence[str]) -> list[str]:
    """Print every figure of the reports that are there; returns the names of those that missed their goals."""
    missed = []
    print(f"\n{'figure':<56}{'value':>10}  {'unit':<14}{'goal':>8}")
    for path in filter(Path.exists, map(report, names)):
        figures: dict[str, dict[str, Any]] = json.loads(path.read_text())
        for name, figure in figures.items():
            goal = "" if figure["goal"] is None else f"{figure['goal']:g}"
            word = "" if figure["goal"] is None else "ok" if figure["ok"] else "MISSED"
            print(f"{name:<56}{figure['value']:>10}  {figure['unit']:<14}{goal:>8}  {word}")
            missed += [] if figure["ok"] else [name]
    return missed


if __name__ == "__main__":
    sys.exit(1 if show(sys.argv[1:]) else 0)
