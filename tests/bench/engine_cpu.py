"""CPU a token costs in the engine, beside a bare reader of the same stream.

    python -m tests.bench.engine_cpu [--streams 64] [--itl 10] [--n 500] [--json build/bench/engine_cpu.json]

Each reader runs in this process against a scripted server in another; the figure is this process's CPU time divided
by the tokens it received. `bare` only counts event bytes; `engine_iter` iterates, `engine_tick` takes from all
streams at one tick, as the runner does.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import httptools
import orjson
import uvloop

from inference.engines.openai_http import OpenAIEngine
from inference.engines.payloads import capabilities_of
from inference.protocol import ChatMessage, GenerationRequest, ReplicaInfo, ReplicaState

GOAL_US = 30.0
TICK_S = 0.025


class Bare(asyncio.Protocol):
    """One request, its events counted and thrown away: the floor that any reader in Python stands on."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.events = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.parser = httptools.HttpResponseParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(self.body)}\r\n\r\n"
        self.transport.write(head.encode() + self.body)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        self.events += data.count(b"data: {")

    def on_message_complete(self) -> None:
        self.done.set_result(None)
        self.transport.close()


async def run_bare(port: int, requests: list[GenerationRequest]) -> int:
    loop = asyncio.get_running_loop()

    async def one(request: GenerationRequest) -> int:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        body = {"model": "fake", "messages": messages, "stream": True, "return_token_ids": True, "max_tokens": 100_000}
        _, reader = await loop.create_connection(lambda: Bare(orjson.dumps(body)), "127.0.0.1", port)
        await reader.done
        return reader.events - 2

    return sum(await asyncio.gather(*map(one, requests)))


def make_engine(port: int) -> OpenAIEngine:
    url = f"http://127.0.0.1:{port}"
    return OpenAIEngine(
        ReplicaInfo("r", "fake", url, "openai", ReplicaState.READY, capabilities=capabilities_of("0.32.0"))
    )


async def run_iter(port: int, requests: list[GenerationRequest]) -> int:
    engine = make_engine(port)

    async def one(request: GenerationRequest) -> int:
        return sum([delta.tokens async for delta in engine.generate(request)])

    total = sum(await asyncio.gather(*map(one, requests)))
    await engine.close()
    return total


async def run_tick(port: int, requests: list[GenerationRequest]) -> int:
    engine = make_engine(port)
    streams = [engine.generate(r) for r in requests]
    firsts = await asyncio.gather(*(anext(s) for s in streams))
    total = sum(d.tokens for d in firsts)
    streams = [s for s, d in zip(streams, firsts, strict=True) if d.finish_reason is None]
    while streams:
        await asyncio.sleep(TICK_S)
        going = []
        for stream in streams:
            delta = stream.take()
            total += delta.tokens if delta else 0
            if delta is None or delta.finish_reason is None:
                going.append(stream)
        streams = going
    await engine.close()
    return total


Reader = Callable[[int, list[GenerationRequest]], Awaitable[int]]
READERS: dict[str, Reader] = {"bare": run_bare, "engine_iter": run_iter, "engine_tick": run_tick}


def make_requests(streams: int, n: int, itl: int, kind: str) -> list[GenerationRequest]:
    return [
        GenerationRequest(f"{kind}-{i}", "fake", (ChatMessage("user", f"seed:s{i} n:{n} itl:{itl}"),), 100_000)
        for i in range(streams)
    ]


async def measure(kind: str, port: int, args: argparse.Namespace) -> float:
    """Microseconds of CPU a token."""
    await READERS[kind](port, make_requests(2, 5, 0, "warm"))
    gc.collect()
    began = time.process_time()
    tokens = await READERS[kind](port, make_requests(args.streams, args.n, args.itl, kind))
    used = time.process_time() - began
    expected = args.streams * args.n
    if tokens != expected:
        raise SystemExit(f"{kind}: {tokens} tokens instead of {expected}")
    return used / tokens * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--itl", type=int, default=10)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    command = [sys.executable, "-m", "inference.engines.fake_server", "--slots", "4096"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            figures = {kind: uvloop.run(measure(kind, port, args)) for kind in READERS}
        finally:
            server.terminate()
    report = {}
    for kind, value in figures.items():
        goal = None if kind == "bare" else GOAL_US
        name = f"{kind}_cpu_us_per_token_c{args.streams}"
        report[name] = {"value": round(value, 1), "unit": "us", "goal": goal, "ok": goal is None or value <= goal}
        sys.stdout.write(f"{name:<40} {value:7.1f} us   goal {goal or '-'}\n")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
