"""Admission under overload and at scale, by simulation in virtual time with the real scripts.

    python -m tests.bench.inference [--json build/bench/inference.json] [--quick]

Two replicas of fixed speed get ten times what they can do, open loop, for ten minutes; then half of it: the worst of
three seeds is told. The greedy neighbour asks for a hundred times what others do while they ask for 80 % of what there
is. The scale run is 4,000 replicas and 139,000 runs a second, with answers a few tenths of a second long so that it
fits into this machine; its CPU includes the simulator's own. What routing to one of several models costs is told beside
what admission costs, as replicas and as models are added.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import redis
import uvloop

from inference.admission import Budget, Policy, Tier
from inference.admission.policy import DEFAULT
from inference.admission.verbs import Verbs
from inference.pipe import Pipe
from inference.simulate import (
    Run,
    Simulation,
    estimate_errors,
    goodput,
    least_jain,
    levels_chosen,
    median_us,
    percentile,
    served,
    tier_shares,
)
from inference.simulated_load import Source, Speed, people, replicas
from infra.local.layout import REPOSITORY
from tests.factories.admission import leaks
from tests.services import session

OUTPUT = REPOSITORY / "build" / "bench" / "inference.json"
SLOTS, SPEED = 8, Speed()
CAPACITY = 2 * SLOTS / SPEED.mean_s
"""Runs a second that two replicas can do."""
WARM_S, DROP_S, END_S = 100.0, 600.0, 800.0
SEEDS = (1, 2, 3)
SCALE_PER_S, SCALE_REPLICAS, SCALE_SLOTS = 139_000.0, 4_000, 16
# Answers as short as lets that many slots do that many a second.
SCALE_SPEED = replace(SPEED, prompt_token_s=0.00005, token_s=0.00196)


@dataclass(frozen=True)
class Figure:
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    def row(self) -> dict[str, object]:
        good = self.goal is None or (self.value >= self.goal if self.at_least else self.value <= self.goal)
        return {"value": round(self.value, 3), "unit": self.unit, "goal": self.goal, "ok": good}


class Stage:
    """Plays simulations one after another on one server, and measures what they cost."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.valkey: Any = redis.Redis.from_url(url, decode_responses=True)
        self.cpu_us_a_run = 0.0

    async def play(
        self,
        sources: Sequence[Source],
        *,
        policy: Policy = DEFAULT,
        count: int = 2,
        slots: int = SLOTS,
        speed: Speed = SPEED,
        levels: int = 1,
        seed: int = 1,
    ) -> list[Run]:
        pipe = Pipe(self.url, patience_s=30)
        verbs = Verbs(pipe, "simulation", policy)
        simulation = Simulation(verbs, policy, replicas(count, slots, levels), speed, sources, seed=seed)
        began = self._cpu_s()
        runs = await simulation.play()
        self.cpu_us_a_run = (self._cpu_s() - began) * 1e6 / len(runs)
        await pipe.close()
        if wrong := leaks(self.valkey):
            raise SystemExit(f"the counters are wrong: {wrong}")
        return runs

    def _cpu_s(self) -> float:
        """Of this process and the server."""
        used: dict[str, float] = self.valkey.info("cpu")
        return time.process_time() + used["used_cpu_user"] + used["used_cpu_sys"]


async def overload(stage: Stage) -> dict[str, Figure]:
    """The worst of what the seeds give."""
    found = [await overload_once(stage, seed) for seed in SEEDS]
    return {name: worst([figures[name] for figures in found]) for name in found[0]}


def worst(figures: Sequence[Figure]) -> Figure:
    choose = min if figures[0].at_least else max
    return choose(figures, key=lambda figure: figure.value)


async def overload_once(stage: Stage, seed: int) -> dict[str, Figure]:
    once = await stage.play(people(CAPACITY, 0.0, DROP_S), seed=seed)
    load = people(10 * CAPACITY, 0.0, DROP_S) + people(0.5 * CAPACITY, DROP_S, END_S)
    runs = await stage.play(load, seed=seed)
    inside = list(served(runs, WARM_S, DROP_S))
    refused = [run for run in runs if run.refused and run.asked < DROP_S]
    weights = {tier: DEFAULT.tiers[tier] / sum(DEFAULT.tiers.values()) for tier in Tier}
    shares = tier_shares(inside)
    after = [run for run in runs if run.asked >= DROP_S]
    last_refusal = max((run.asked for run in after if run.refused), default=DROP_S)
    last_long_wait = max((run.asked for run in after if run.waited_s > SPEED.mean_s), default=DROP_S)
    broken = [run for run in runs if run.refused == "waited_too_long" and run.asked >= WARM_S]
    errors = [error for run in inside if run.asked >= WARM_S for error in estimate_errors([run])]
    ratio = goodput(runs, WARM_S, DROP_S) / goodput(once, WARM_S, DROP_S)
    return {
        "overload_goodput_ratio": Figure(ratio, "ratio", 0.90, at_least=True),
        "overload_refusal_p99_ms": Figure(percentile([r.decided_in_s * 1000 for r in refused], 0.99), "ms", 100),
        "overload_tier_share_error": Figure(max(abs(shares[t] / weights[t] - 1) for t in Tier), "ratio", 0.10),
        "overload_jain": Figure(least_jain(runs, inside), "index", 0.95, at_least=True),
        "overload_recovery_s": Figure(last_refusal - DROP_S, "s", 10),
        "overload_short_waits_again_s": Figure(last_long_wait - DROP_S, "s"),
        "overload_accepted_in_vain": Figure(len(broken) / max(1, len(inside)), "ratio"),
        "wait_estimate_error_median": Figure(median(errors), "ratio", 0.30),
        "wait_estimate_error_p90": Figure(percentile(errors, 0.9), "ratio"),
    }


async def neighbour(stage: Stage) -> dict[str, Figure]:
    """What the others lose by one user who asks a hundred times as much, though no budget holds it back."""
    unlimited = replace(DEFAULT, users=dict.fromkeys(Tier, Budget()))
    ordinary = people(0.8 * CAPACITY, 0.0, DROP_S)
    greedy = ordinary[0]
    others = [source for source in ordinary if source is not greedy]
    alone = await stage.play(others, policy=unlimited)
    beside = await stage.play([*others, replace(greedy, per_s=greedy.per_s * 100)], policy=unlimited)
    tokens = [
        sum(
            run.used
            for run in runs
            if run.ended is not None and run.source is not greedy and run.ask.user != greedy.user
        )
        for runs in (alone, beside)
    ]
    return {"overload_neighbour_loss": Figure(max(0.0, 1 - tokens[1] / tokens[0]), "ratio", 0.05)}


async def scale(stage: Stage, seconds: float) -> dict[str, Figure]:
    """The cost of a decision as replicas are added, at the same number of runs; then all of them at the full rate."""
    policy = replace(DEFAULT, users=dict.fromkeys(Tier, Budget()), max_waiting=20_000, ladder=(999.0,) * 4)
    play = partial(stage.play, policy=policy, slots=SCALE_SLOTS, speed=SCALE_SPEED)
    runs: list[Run] = []
    found: dict[str, Figure] = {}
    for count, levels in ((10, 3), (100, 1), (100, 3), (100, 9), (1_000, 3), (SCALE_REPLICAS, 3)):
        per_s = count * SCALE_SLOTS / SCALE_SPEED.mean_s
        runs = await play(people(0.9 * per_s, 0.0, 5_000 / per_s), count=count, levels=levels)
        of = f"{count}_replicas_{levels}_models"
        found[f"simulated_cpu_us_per_run_{of}"] = Figure(stage.cpu_us_a_run, "us")
        found[f"simulated_routing_us_{of}"] = Figure(median_us(run.routed_in_s for run in runs), "us")
        found[f"simulated_admission_us_{of}"] = Figure(median_us(run.decided_in_s for run in runs), "us")
    found |= {f"simulated_share_of_level_{n}": Figure(share, "ratio") for n, share in levels_chosen(runs).items()}
    load = people(1.1 * SCALE_PER_S, 0.0, seconds, a_tier=200)
    runs = await play(load, count=SCALE_REPLICAS)
    inside = list(served(runs, seconds / 2, seconds))
    busy = sum(r.granted is not None and r.ended is not None and r.granted <= seconds < r.ended for r in runs)
    return found | {
        "simulated_arrivals_per_s": Figure(len(runs) / seconds, "runs/s"),
        "simulated_slots_busy": Figure(busy / (SCALE_REPLICAS * SCALE_SLOTS), "ratio"),
        "simulated_jain": Figure(least_jain(runs, inside), "index"),
        "simulated_cpu_us_per_run": Figure(stage.cpu_us_a_run, "us"),
    }


async def figures(url: str, quick: bool) -> dict[str, Figure]:
    stage = Stage(url)
    found = await overload(stage) | await neighbour(stage)
    return found if quick else found | await scale(stage, 0.7)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, default=OUTPUT)
    parser.add_argument("--quick", action="store_true", help="without the run at scale")
    args = parser.parse_args()
    services = session()
    try:
        found = uvloop.run(figures(services.valkey.url(), args.quick))
    finally:
        services.stop()
    rows = {name: figure.row() for name, figure in found.items()}
    for name, row in rows.items():
        goal = "" if row["goal"] is None else f"goal {row['goal']:g}{'' if row['ok'] else '  MISSED'}"
        print(f"{name:<42}{row['value']:>12} {row['unit']:<8}{goal}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
