"""All measurements, one after another: `python -m tests.bench [NAME...]` (`make bench`).

Each measurement is a program of its own that writes `build/bench/NAME.json` (name -> value, unit, goal, ok). This
one runs them, prints every figure again and ends with 1 when a goal was missed or a measurement failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.layout import REPOSITORY
from tests.bench.reports import REPORTS, report, show

DATA = {"retrieval": "PARLEY_BENCH_RETRIEVAL", "router": "PARLEY_BENCH_ROUTER", "parse": "PARLEY_BENCH_PARSE"}
"""Sets that are not in the repository: measured where the variable names a folder."""


@dataclass(frozen=True)
class Measurement:
    """A program of this package and what it needs to be told."""

    name: str
    arguments: tuple[str, ...] = field(default=())

    @property
    def report(self) -> Path:
        return report(self.name)


def _optional(key: str) -> tuple[str, ...]:
    """A folder of real data, for a measurement that has generated data too."""
    data = os.environ.get(key)
    return ("--data", data) if data else ()


def measurements() -> list[Measurement]:
    found = [
        Measurement("streaming"),
        Measurement("valkey_cpu"),
        Measurement("admission"),
        Measurement("inference"),
        Measurement("overload"),
        Measurement("files"),
        Measurement("ingest"),
        Measurement("poison"),
        Measurement("context"),
        Measurement("tables"),
        Measurement("failover"),
        Measurement("citations", _optional("PARLEY_BENCH_CITATIONS")),
        Measurement("engine_cpu", ("--json", str(REPORTS / "engine_cpu.json"))),
    ]
    found += [Measurement(name, ("--data", data)) for name, key in DATA.items() if (data := os.environ.get(key))]
    return found


def measure(wanted: list[Measurement]) -> list[str]:
    """Run them; returns the names of those that failed as programs."""
    failed = []
    for measurement in wanted:
        print(f"\n-- {measurement.name}", flush=True)
        measurement.report.unlink(missing_ok=True)
        began = time.monotonic()
        command = [sys.executable, "-m", f"tests.bench.{measurement.name}", *measurement.arguments]
        code = subprocess.run(command, cwd=REPOSITORY, check=False).returncode
        print(f"   {time.monotonic() - began:.0f} s", flush=True)
        # A missed goal may show in the exit status too; without a report it is the program that failed.
        if not measurement.report.exists():
            print(f"   {measurement.name} wrote no report (exit code {code})")
            failed.append(measurement.name)
    return failed


def main() -> int:
    names = [measurement.name for measurement in measurements()]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(names)} (all)")
    asked = parser.parse_args().names
    if missing := [f"{name} needs {DATA[name]}" for name in asked if name in DATA and name not in names]:
        parser.error(f"{', '.join(missing)}: a folder with its data")
    if unknown := set(asked) - set(names):
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    wanted = [measurement for measurement in measurements() if not asked or measurement.name in asked]
    REPORTS.mkdir(parents=True, exist_ok=True)
    failed = measure(wanted)
    missed = show([measurement.name for measurement in wanted])
    print(f"\n{len(missed)} goals missed, {len(failed)} measurements failed")
    return 1 if failed or missed else 0


if __name__ == "__main__":
    sys.exit(main())
