"""Ten times the load that two replicas can carry, on real processes: what is answered, and how fast the rest knows.

    python -m tests.bench.overload [--seconds 30]

One web, one runner and two scripted replicas with 4 places each; questions arrive at `/v1` by chance, open loop, at
once what the replicas can carry, then ten times as many, then half. The load generator runs on the same cores. What
admission decides among tiers and users is measured by simulation (`tests.bench.inference`). Writes
build/bench/overload.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import orjson
import uvloop

from inference.engines.script import expected_text
from tests.bench.load import Chat, Failed, Pieces, Wire, data_of, now, quantile
from tests.bench.reports import report
from tests.services import session
from tests.stack import Stack

SLOTS, REPLICAS = 4, 2
TOKENS, ITL_MS = 40, 25
CAPACITY = REPLICAS * SLOTS / (TOKENS * ITL_MS / 1000)
"""Answers a second that the replicas can write."""
REFUSED = (429, 503)


@dataclass(slots=True)
class Asked:
    """One question. Times of the load generator's clock, in seconds; `why` it was refused or failed."""

    at: float
    status: int = 0
    ended: float = 0.0
    whole: bool = False
    why: str = ""


async def ask(target: Chat, number: int) -> Asked:
    seed, wire = f"o{number}", Wire(target.base)
    message = {"role": "user", "content": f"n:{TOKENS} itl:{ITL_MS} seed:{seed}"}
    body = {"model": "fake", "messages": [message], "stream": True, "max_tokens": TOKENS}
    asked = Asked(now())
    try:
        asked.status, pieces, asked.at = await wire.request("POST", "/v1/chat/completions", target.headers, body)
        asked.ended = now()
        if asked.status == 200:
            asked.whole = text_of(target, pieces) == expected_text(TOKENS, seed)
        else:
            asked.why = reason_of(pieces)
    except (Failed, OSError, TimeoutError) as error:
        asked.ended, asked.why = now(), f"{type(error).__name__}: {error}"[:100]
    finally:
        wire.close()
    return asked


def text_of(target: Chat, pieces: Pieces) -> str:
    return "".join(target.delta(orjson.loads(data)) for _, data in data_of(pieces) if data != b"[DONE]")


def reason_of(pieces: Pieces) -> str:
    return str(orjson.loads(b"".join(data for _, data in pieces))["error"]["code"])


async def arrive(target: Chat, per_s: float, seconds: float, chance: random.Random) -> list[Asked]:
    """Questions at random times, whether earlier ones are answered or not; all of them, when the last has ended."""
    tasks: list[asyncio.Task[Asked]] = []
    at, until = now(), now() + seconds
    while (at := at + chance.expovariate(per_s)) < until:
        await asyncio.sleep(max(0.0, at - now()))
        tasks.append(asyncio.create_task(ask(target, chance.getrandbits(40))))
    return list(await asyncio.gather(*tasks))


def rate(asked: Sequence[Asked], since: float, until: float) -> float:
    """Whole answers a second that ended between two moments."""
    return sum(one.whole and since <= one.ended < until for one in asked) / (until - since)


@dataclass(slots=True)
class Phase:
    """What came of one rate of arrivals, from its beginning until the next began."""

    began: float
    ended: float
    asked: list[Asked]

    @property
    def refused(self) -> list[Asked]:
        return [one for one in self.asked if one.status in REFUSED]

    @property
    def broken(self) -> list[Asked]:
        return [one for one in self.asked if not one.whole and one.status not in REFUSED]


async def play(target: Chat, seconds: float) -> dict[str, Phase]:
    """The three phases. The one after the overload begins while its line is still full."""
    chance = random.Random(7)
    await arrive(target, CAPACITY / 2, 3.0, chance)
    once = await _phase(target, 1.0, seconds, chance)
    began = now()
    overload = asyncio.create_task(arrive(target, 10 * CAPACITY, seconds, chance))
    await asyncio.sleep(seconds)
    dropped = now()
    after = await _phase(target, 0.5, 15.0, chance)
    return {"once": once, "overload": Phase(began, dropped, await overload), "after": after}


async def _phase(target: Chat, times: float, seconds: float, chance: random.Random) -> Phase:
    began = now()
    asked = await arrive(target, times * CAPACITY, seconds, chance)
    return Phase(began, began + seconds, asked)


def figures(phases: dict[str, Phase]) -> dict[str, dict[str, object]]:
    once, overload, after = phases["once"], phases["overload"], phases["after"]
    settled = (overload.ended - overload.began) / 4
    carried = rate(overload.asked, overload.began + settled, overload.ended)
    normal = rate(once.asked, once.began + settled, once.ended)
    told = sorted((one.ended - one.at) * 1000 for one in overload.refused)
    last = max((one.at - after.began for one in after.refused), default=0.0)
    broken = sum(len(phase.broken) for phase in phases.values())
    rows = {
        "overload_http_goodput_ratio": (carried / normal, "ratio", 0.90, carried >= 0.90 * normal),
        "overload_http_of_capacity": (carried / CAPACITY, "ratio", None, True),
        "overload_http_refusal_p50_ms": (quantile(told, 0.5), "ms", None, True),
        "overload_http_refusal_p99_ms": (quantile(told, 0.99), "ms", 100, quantile(told, 0.99) <= 100),
        "overload_http_recovery_s": (last, "s", 10, last <= 10),
        "overload_http_broken": (broken, "answers", 0, broken == 0),
        "overload_http_asked_per_s": (len(overload.asked) / (overload.ended - overload.began), "1/s", None, True),
    }
    return {
        name: {"value": round(value, 3), "unit": unit, "goal": goal, "ok": ok}
        for name, (value, unit, goal, ok) in rows.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each of the first two loads")
    seconds = parser.parse_args().seconds
    services = session()
    os.environ.update(services.environment())
    options = ("--slots", str(SLOTS))
    try:
        with Stack(
            services, replicas=REPLICAS, slots=SLOTS, replica_options=options, settings="tests.bench.overload_settings"
        ) as stack:
            phases = uvloop.run(play(Chat(stack.url(), stack.api_key()), seconds))
    finally:
        services.stop()
    for name, phase in phases.items():
        whole = sum(one.whole for one in phase.asked)
        why = Counter(one.why for one in phase.asked if one.why)
        print(f"{name:<10}{len(phase.asked):>6} asked{whole:>6} answered{len(phase.refused):>6} refused  {dict(why)}")
    rows = figures(phases)
    for name, row in rows.items():
        goal = "" if row["goal"] is None else f"goal {row['goal']}{'' if row['ok'] else '  MISSED'}"
        print(f"{name:<34}{row['value']:>10} {row['unit']:<8}{goal}")
    report("overload").parent.mkdir(parents=True, exist_ok=True)
    report("overload").write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
