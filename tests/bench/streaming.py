"""What a streamed token costs, what a first token waits, and what an open stream holds.

    python -m tests.bench.streaming [--seconds 25] [--workers 64] [--idle 1000] [--only v1,native]

Real processes: one web, one runner, one Valkey, one scripted replica with 10 ms between tokens. The same load goes, in
the same run, to the replica itself and to a bare Channels pass-through. Prints a table, writes
build/bench/streaming.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import uvloop

from infra.local.layout import REPOSITORY
from infra.local.ports import free_port
from tests.bench.load import (
    Chat,
    Meter,
    Native,
    Result,
    Target,
    Wire,
    analyse,
    closed_loop,
    pss_kib,
    quantile,
)
from tests.services import Services, session
from tests.stack import Stack

OURS = ("web-1", "runner-1", "valkey")
GOALS = {
    "stream_cpu_us_per_token_c64": 90.0,
    "stream_ttft_added_ms_p50_c64": 10.0,
    "stream_ttft_added_ms_p99_c64": 40.0,
    "idle_stream_kib": 30.0,
}
OUTPUT = REPOSITORY / "build" / "bench" / "streaming.json"
SILENCE = "n:1 ttft:3600000"
SETTLE_S = 3.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One load on one target. `cpu`: seconds by process; `counted` of them are the target's own."""

    result: Result
    cpu: Mapping[str, float]
    counted: tuple[str, ...]

    def us(self, name: str) -> float:
        return self.cpu.get(name, 0.0) * 1e6 / max(1, self.result.tokens)

    @property
    def us_per_token(self) -> float:
        return sum(map(self.us, self.counted))


class Bench:
    """The processes and the targets in front of them."""

    def __init__(self, stack: Stack, services: Services) -> None:
        self.stack = stack
        self.key = stack.api_key()
        port = free_port()
        uvicorn = ("-m", "uvicorn", "tests.bench.passthrough:application", "--port", str(port), "--no-access-log")
        stack.launch(
            "passthrough",
            (*uvicorn, "--loop", "uvloop", "--http", "httptools", "--lifespan", "off"),
            lambda me: me.printed("Uvicorn running"),
            PASSTHROUGH_UPSTREAM=stack.replica_url(),
        )
        self.pids = {name: stack.pid(name) for name in (*OURS, "replica-1", "passthrough")}
        self.pids["postgres"] = services.postgres_pid
        self.targets: dict[str, tuple[Target, tuple[str, ...]]] = {
            "direct": (Chat(stack.replica_url()), ("replica-1",)),
            "passthrough": (Chat(f"http://127.0.0.1:{port}"), ("passthrough",)),
            "v1": (Chat(stack.url(), self.key), OURS),
            "native": (Native(stack.url(), self.key), OURS),
        }

    async def measure(self, name: str, args: argparse.Namespace) -> Measured:
        target, counted = self.targets[name]
        prompt = f"n:{args.n} itl:{args.itl}"
        await closed_loop(target, workers=8, seconds=0.1, ramp=0.2, prompt=f"n:{args.n} itl:1", name="warm")
        await asyncio.sleep(1)
        meter = Meter(self.pids)
        answers = await closed_loop(
            target,
            workers=args.workers,
            seconds=args.seconds,
            ramp=args.ramp,
            prompt=prompt,
            name=name[0],
            meter=meter,
        )
        return Measured(analyse(target, answers, args.n), meter.used, counted)

    async def idle(self, count: int) -> float:
        """KiB that one open, silent stream of a run holds in the web process.

        The runs are started on another web process, whose garbage would otherwise make room for the streams.
        """
        native = Native(self.stack.url(2), self.key)
        poster = Wire(self.stack.url(2))
        runs = []
        for number in range(count):
            await native.prepare(poster, number)
            runs.append((await native.post(poster, number, f"{SILENCE} seed:{number}"))["run"]["id"])
        await asyncio.sleep(SETTLE_S)
        before = pss_kib(self.pids["web-1"])
        wires = [Wire(self.stack.url(), timeout=3_600) for _ in runs]
        streams = []
        for wire, run in zip(wires, runs, strict=True):
            streams.append(asyncio.create_task(wire.request("GET", f"/api/runs/{run}/events", native.headers)))
            await asyncio.sleep(0.003)
        await self._until_open(wires)
        await asyncio.sleep(SETTLE_S)
        grown = (pss_kib(self.pids["web-1"]) - before) / count
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        poster.close()
        return grown

    @staticmethod
    async def _until_open(wires: list[Wire]) -> None:
        waiting = len(wires)
        for _ in range(600):
            waiting = sum(1 for wire in wires if not wire.pieces)
            if not waiting and all(wire.status == 200 for wire in wires):
                return
            await asyncio.sleep(0.1)
        raise SystemExit(f"{waiting} of {len(wires)} silent streams did not open")


async def run(bench: Bench, args: argparse.Namespace) -> tuple[dict[str, Measured], float | None]:
    measured = {name: await bench.measure(name, args) for name in args.only.split(",")}
    return measured, await bench.idle(args.idle) if args.idle else None


def figures(measured: Mapping[str, Measured], idle: float | None) -> dict[str, float]:
    """Every figure by name. The product's headline is /v1; `_native` is the page's own road."""
    found: dict[str, float] = {}
    suffixes = {"v1": "", "native": "_native", "passthrough": "_passthrough", "direct": "_direct"}
    for name, one in measured.items():
        suffix = suffixes[name]
        found[f"stream_cpu_us_per_token_c64{suffix}"] = one.us_per_token
        for process in one.counted if name in ("v1", "native") else ():
            found[f"stream_cpu_us_per_token_c64{suffix}_{process.partition('-')[0]}"] = one.us(process)
        if name != "direct" and "direct" in measured:
            for label, q in (("p50", 0.5), ("p99", 0.99)):
                added = quantile(one.result.ttft, q) - quantile(measured["direct"].result.ttft, q)
                found[f"stream_ttft_added_ms_{label}_c64{suffix}"] = added
    if idle is not None:
        found["idle_stream_kib"] = idle
    return found


def report(found: Mapping[str, float]) -> dict[str, dict[str, object]]:
    units = {"cpu": "us", "ttft": "ms", "idle": "KiB"}
    rows: dict[str, dict[str, object]] = {}
    for name, value in found.items():
        goal = GOALS.get(name)
        unit = next(unit for part, unit in units.items() if part in name)
        rows[name] = {"value": round(value, 1), "unit": unit, "goal": goal, "ok": goal is None or value <= goal}
    return rows


def print_loads(measured: Mapping[str, Measured]) -> None:
    print(
        f"{'':<12}{'answers':>8}{'tok/s':>8}{'tok/ev':>7}{'ttft p50':>9}{'p99':>8}{'gap p99':>8}  us a token by process"
    )
    for name, one in measured.items():
        result = one.result
        parts = "  ".join(f"{process} {one.us(process):.1f}" for process in one.cpu if one.us(process) >= 0.5)
        print(
            f"{name:<12}{result.answers:>8}{result.rate:>8.0f}{result.tokens / max(1, result.events):>7.2f}"
            f"{quantile(result.ttft, 0.5):>9.1f}{quantile(result.ttft, 0.99):>8.1f}{quantile(result.gaps, 0.99):>8.1f}"
            f"  {parts}"
        )
        for error, count in result.errors.most_common(3):
            print(f"    {count} x {error}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=25.0)
    parser.add_argument("--ramp", type=float, default=2.0)
    parser.add_argument("--n", type=int, default=200, help="tokens an answer")
    parser.add_argument("--itl", type=int, default=10, help="ms between tokens")
    parser.add_argument("--idle", type=int, default=1000, help="silent streams to open; 0 leaves that out")
    parser.add_argument("--only", default="direct,passthrough,v1,native")
    parser.add_argument("--json", type=Path, default=OUTPUT)
    args = parser.parse_args()
    services = session()
    os.environ.update(services.environment())
    try:
        with Stack(services, webs=2, slots=4096, replica_options=("--slots", "4096")) as stack:
            measured, idle = uvloop.run(run(Bench(stack, services), args))
    finally:
        services.stop()
    print_loads(measured)
    rows = report(figures(measured, idle))
    print()
    for name, row in rows.items():
        goal = "" if row["goal"] is None else f"goal {row['goal']}  {'ok' if row['ok'] else 'MISSED'}"
        print(f"{name:<52}{row['value']:>9} {row['unit']:<4}{goal}")
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(rows, indent=1) + "\n")
    failed = [name for name, one in measured.items() if one.result.errors]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
