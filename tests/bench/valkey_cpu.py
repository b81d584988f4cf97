"""CPU a call to Valkey costs on an event loop: our pipelined connection beside redis-py's asynchronous client.

    python -m tests.bench.valkey_cpu [--calls 5000] [--json build/bench/valkey_cpu.json]

A call is one small script, as the streams make them; one or several are made at once, over and over.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from infra.local.layout import REPOSITORY
from tests.services import session

OUTPUT = REPOSITORY / "build" / "bench" / "valkey_cpu.json"
SCRIPT = "return redis.call('INCR', 'n')"
GOALS = {1: 0.7, 16: 0.3}
"""The most of redis-py's cost that pays for keeping a connection of our own, by how many calls are made at once."""


async def measure(call: Callable[[], Awaitable[object]], calls: int, together: int) -> float:
    """Microseconds of CPU a call."""
    await call()
    began = time.process_time()
    for _ in range(calls // together):
        await asyncio.gather(*(call() for _ in range(together)))
    return (time.process_time() - began) * 1e6 / (calls // together * together)


async def run(url: str, calls: int) -> dict[str, float]:
    import redis.asyncio

    from inference.pipe import Pipe, Script

    pool = redis.asyncio.BlockingConnectionPool.from_url(url, max_connections=16)
    client, pipe, script = redis.asyncio.Redis.from_pool(pool), Pipe(url), Script(SCRIPT)
    registered = client.register_script(SCRIPT)
    found = {}
    for count in GOALS:
        found[f"redis_py_us_{count}_at_once"] = await measure(registered, calls, count)
        found[f"pipe_us_{count}_at_once"] = await measure(lambda: pipe.run(script), calls, count)
    await client.aclose()
    await pipe.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5_000)
    parser.add_argument("--json", type=Path, default=OUTPUT)
    args = parser.parse_args()
    services = session()
    try:
        found = uvloop.run(run(services.valkey.url(), args.calls))
    finally:
        services.stop()
    rows: dict[str, dict[str, object]] = {}
    for name, value in found.items():
        rows[name] = {"value": round(value, 1), "unit": "us", "goal": None, "ok": True}
        if name.startswith("pipe"):
            ratio, goal = value / found[name.replace("pipe", "redis_py")], GOALS[int(name.split("_")[2])]
            label = name.replace("_us_", "_to_redis_py_")
            rows[label] = {"value": round(ratio, 2), "unit": "ratio", "goal": goal, "ok": ratio <= goal}
    for name, row in rows.items():
        print(f"{name:<36}{row['value']:>8} {row['unit']}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
