"""What readers notice when replicas fail under fifty streams, how soon a hang is seen, how soon a cancel arrives.

    python -m tests.bench.failover [--rounds 100] [--streams 50] [--hangs 2] [--cancels 20]

Real processes: one web, two runners, two scripted replicas. In the rounds a replica counts as hung after 2 s instead
of the default, which makes them shorter and nothing else; `hang_detect_s` is measured with the default. Prints a
report, writes build/bench/failover.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping

from infra.local.layout import REPOSITORY
from tests.faults import failing
from tests.faults.failing import Report
from tests.services import Services, session
from tests.stack import Stack

OUTPUT = REPOSITORY / "build" / "bench" / "failover.json"
QUICK = {"PARLEY_HANG_S": "2"}


def stack_of(services: Services, environment: Mapping[str, str], *, replicas: int = 2) -> Stack:
    return Stack(
        services, runners=2, replicas=replicas, settings="tests.live_settings", slots=256, environment=environment
    )


def figures(rounds: Report, hangs: Report, cancels: list[float]) -> dict[str, dict[str, object]]:
    """Each with its goal; `ok` for a ratio means at least, for everything else at most."""
    detected = hangs.pauses(*failing.HANGS)
    values: dict[str, tuple[float, str, float]] = {
        "failover_stuck": (len(rounds.stuck), "", 0),
        "failover_doubled": (len(rounds.doubled), "", 0),
        "failover_text_mismatch": (len(rounds.mismatched), "", 0),
        "hang_detect_s": (round(detected[-1], 2) if detected else float("inf"), "s", 15),
        "cancel_to_engine_ms": (round(cancels[-1], 1), "ms", 500),
    }
    found: dict[str, dict[str, object]] = {
        name: {"value": value, "unit": unit, "goal": goal, "ok": value <= goal}
        for name, (value, unit, goal) in values.items()
    }
    ratio = round(rounds.before_ratio, 5)
    return {
        "failover_before_first_token_ratio": {"value": ratio, "unit": "", "goal": 0.999, "ok": ratio >= 0.999},
        **found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--hangs", type=int, default=2)
    parser.add_argument("--cancels", type=int, default=20, help="before the first token, and as many after it")
    asked = parser.parse_args()
    services = session()
    os.environ.update(services.environment())
    try:
        with stack_of(services, {}, replicas=1) as stack:
            cancels = [
                delay
                for prompt, first in (("ttft:60000", False), ("itl:50", True))
                for delay in failing.cancel_delays_ms(stack, prompt, asked.cancels, first_token=first)
            ]
        print(f"cancels reached the replica after {min(cancels):.0f} to {max(cancels):.0f} ms", flush=True)
        with stack_of(services, {}) as stack:
            hangs = failing.run(stack, failing.kinds_for(asked.hangs, failing.HANGS), streams=asked.streams)
        print(hangs, flush=True)
        with stack_of(services, QUICK) as stack:
            rounds = failing.run(stack, failing.kinds_for(asked.rounds), streams=asked.streams)
        print(rounds, flush=True)
    finally:
        services.stop()
    found = figures(rounds, hangs, sorted(cancels))
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    for name, figure in found.items():
        print(f"{name:<40}{figure['value']:>10} {figure['unit']:<4} goal {figure['goal']} {figure['ok']}")
    return 0 if all(figure["ok"] for figure in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
