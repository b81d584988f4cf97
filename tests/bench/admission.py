"""CPU that a run's admission costs: this process's and Valkey's, for routing it to a model, asking, the grant and the
release.

    python -m tests.bench.admission [--runs 4000] [--json build/bench/admission.json]

`admission_cpu_us_per_run` finds a free place at once and has the goal; `..._per_waiting_run` is one of 60 that wait for
three models, with forecasts, and is told of its grant. Both at 10 and at 1,000 replicas, divided among the models, of
which all but a few slots are taken. The router decides by the question, with the scorer that comes with the install.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import redis
import uvloop

from inference.admission import Admission, Budget, Policy, Tier
from inference.client import AUTO
from inference.protocol import ReplicaInfo
from inference.registry import ModelCard, Record
from inference.routing.candidates import candidates_of
from inference.routing.router import route
from inference.routing.scorer import load_scorer
from inference.routing.types import Question, RoutingPolicy
from inference.simulated_load import questions
from infra.local.layout import REPOSITORY
from tests.factories.admission import a_replica, an_ask, leaks
from tests.services import session

OUTPUT = REPOSITORY / "build" / "bench" / "admission.json"
GOAL_US = 300.0
SIZES = (10, 1_000)
SLOTS = 8
TOGETHER = 16
IN_LINE = 60
MODELS = ("small", "middle", "large")
ROUTING = RoutingPolicy()
POLICY = Policy(users=dict.fromkeys(Tier, Budget()), ladder=(999.0,) * 4)


class Meter:
    """Seconds of CPU of this process and of the server since the last look."""

    def __init__(self, valkey: Any) -> None:
        self.valkey, self.last = valkey, 0.0
        self.read()

    def read(self) -> float:
        used: dict[str, float] = self.valkey.info("cpu")
        total = time.process_time() + used["used_cpu_user"] + used["used_cpu_sys"]
        since, self.last = total - self.last, total
        return since


class Routing:
    """What the router goes by: the models, as the registry would tell of these replicas, and questions."""

    def __init__(self, replicas: Sequence[ReplicaInfo]) -> None:
        cards = {name: ModelCard(name, name, level=level) for level, name in enumerate(MODELS, 1)}
        self.candidates = candidates_of(Record(replica, cards[replica.model]) for replica in replicas)
        self.scorer, self.texts = load_scorer(), questions(1)

    def model(self) -> str:
        """For the next question."""
        question = Question(next(self.texts), 0, 60, AUTO, organization="org")
        return route(question, self.candidates, policy=ROUTING, scorer=self.scorer).model


async def run(admission: Admission, routing: Routing, name: str, count: int) -> None:
    """Choose a model, ask, hold for one turn of the loop, leave; over and over."""
    for n in range(count):
        async with admission.acquire(an_ask(f"{name}-{n}", user=name, model=routing.model())):
            await asyncio.sleep(0)


@asynccontextmanager
async def taken(admission: Admission, places: Mapping[str, int]) -> AsyncIterator[None]:
    """So many places of each model held by others."""
    over = asyncio.Event()

    async def hold(name: str, model: str) -> None:
        async with admission.acquire(an_ask(name, model=model)):
            await over.wait()

    names = [(f"held-{model}-{n}", model) for model, most in places.items() for n in range(most)]
    holders = [asyncio.create_task(hold(*name)) for name in names]
    for model, most in places.items():
        while (await admission.capacity(model)).running < most:  # noqa: ASYNC110 - the count is in Valkey
            await asyncio.sleep(0.05)
    yield
    over.set()
    await asyncio.gather(*holders)


async def measure(url: str, valkey: Any, replicas: int, *, free: int, runs: int, together: int) -> float:
    """Microseconds of CPU a run, with `together` runs at a time for `free` places of each model."""
    valkey.flushall()
    admission = Admission(url, owner="bench", policy=POLICY)
    served = [a_replica(f"r{n:04}", MODELS[n % len(MODELS)], slots=SLOTS, kv=100_000) for n in range(replicas)]
    admission.set_replicas(served)
    await admission.start()
    routing = Routing(served)
    slots = Counter(replica.model for replica in served for _ in range(SLOTS))
    async with taken(admission, {model: most - free for model, most in slots.items()}):
        await asyncio.gather(*(run(admission, routing, f"warm{n}", 5) for n in range(together)))
        meter = Meter(valkey)
        await asyncio.gather(*(run(admission, routing, f"user{n}", runs // together) for n in range(together)))
        await asyncio.gather(*admission._releasing)
        used = meter.read()
        if wrong := leaks(valkey):
            raise SystemExit(f"the counters are wrong: {wrong}")
    await admission.stop()
    return used * 1e6 / (runs // together * together)


async def figures(url: str, runs: int) -> dict[str, dict[str, object]]:
    valkey: Any = redis.Redis.from_url(url, decode_responses=True)
    rows: dict[str, dict[str, object]] = {}
    for name, free, together, goal in (
        ("run", TOGETHER, TOGETHER, GOAL_US),
        ("waiting_run", 2, 2 * len(MODELS) + IN_LINE, None),
    ):
        found = [await measure(url, valkey, n, free=free, runs=runs, together=together) for n in SIZES]
        for size, value in zip(SIZES, found, strict=True):
            suffix = "" if size == SIZES[-1] else f"_{size}_replicas"
            rows[f"admission_cpu_us_per_{name}{suffix}"] = row(value, "us", goal, 1)
        logarithmic = math.log(SIZES[-1]) / math.log(SIZES[0])
        rows[f"admission_cpu_growth_{name}"] = row(found[-1] / found[0], "ratio", round(logarithmic, 2), 2)
    return rows


def row(value: float, unit: str, goal: float | None, digits: int) -> dict[str, object]:
    return {"value": round(value, digits), "unit": unit, "goal": goal, "ok": goal is None or value <= goal}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--json", type=Path, default=OUTPUT)
    args = parser.parse_args()
    services = session()
    try:
        rows = uvloop.run(figures(services.valkey.url(), args.runs))
    finally:
        services.stop()
    for name, figure in rows.items():
        print(f"{name:<46}{figure['value']:>8} {figure['unit']:<6} goal {figure['goal'] or '-'}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
