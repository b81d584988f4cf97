"""A light load generator for streaming answers, and the meters beside it.

While load runs, arrivals are only kept as (time, bytes); reading them, checking them and the statistics come after,
so that the generator disturbs what it measures as little as it can. An answer counts only when its text is exactly
what the scripted replica was asked to say.
"""

from __future__ import annotations

import asyncio
import gc
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import httptools
import orjson

from inference.engines.script import expected_text
from tests.stack import TICKS

now = time.perf_counter
Pieces = list[tuple[float, bytes]]
_FRAME = re.compile(rb"\r?\n\r?\n")


class Failed(Exception):
    """A request that brought no whole answer."""


class Wire(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection that carries one request at a time."""

    def __init__(self, base: str, *, timeout: float = 120.0) -> None:
        parts = urlsplit(base)
        self.host, self.port, self.timeout = parts.hostname or "127.0.0.1", parts.port or 80, timeout
        self.transport: asyncio.Transport | None = None
        self.pieces: Pieces = []
        self.status, self.watch = 0, cast(Callable[[bytes], None] | None, None)
        self._done: asyncio.Future[None] | None = None
        self._parser: Any = None
        self._at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop has a class of its own

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._settle(Failed("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        self._at = now()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._settle(Failed(str(error)))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.pieces.append((self._at, body))
        if self.watch is not None:
            self.watch(body)

    def on_message_complete(self) -> None:
        self._settle(None)
        if self.transport is not None and not self._parser.should_keep_alive():
            self.close()

    def _settle(self, error: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error) if error else self._done.set_result(None)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
            self.transport = None

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], body: Any = None
    ) -> tuple[int, Pieces, float]:
        """(status, arrivals of the body, time it was sent)."""
        loop = asyncio.get_running_loop()
        if self.transport is None:
            await loop.create_connection(lambda: self, self.host, self.port)
        data = b"" if body is None else orjson.dumps(body)
        fields = {"host": f"{self.host}:{self.port}", "content-type": "application/json", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.pieces, self.status, self._done = [], 0, loop.create_future()
        self._parser = httptools.HttpResponseParser(self)
        assert self.transport is not None
        sent = now()
        self.transport.write(f"{method} {path} HTTP/1.1\r\n{head}content-length: {len(data)}\r\n\r\n".encode() + data)
        try:
            await asyncio.wait_for(self._done, self.timeout)
        except BaseException:
            self.close()
            raise
        return self.status, self.pieces, sent

    async def json(self, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> Any:
        status, pieces, _ = await self.request(method, path, headers, body)
        data = b"".join(piece for _, piece in pieces)
        if status >= 300:
            raise Failed(f"HTTP {status}: {data[:200].decode(errors='replace')}")
        return orjson.loads(data) if data else None


@dataclass(slots=True)
class Answer:
    """One answer as it arrived. `sent` is when the person would have pressed Enter."""

    seed: str
    sent: float = 0.0
    ended: float = 0.0
    pieces: Pieces = field(default_factory=list)
    error: str = ""


class Target(Protocol):
    """An API that streams answers. `ask` fills the answer in; `delta` is the text in one event, if any."""

    base: str

    async def prepare(self, wire: Wire, worker: int) -> None: ...

    async def ask(self, wire: Wire, worker: int, answer: Answer, prompt: str) -> None: ...

    def delta(self, data: Any) -> str: ...


class Chat:
    """OpenAI's streamed chat completions: the replica itself, a pass-through, or our /v1."""

    def __init__(self, base: str, key: str = "") -> None:
        self.base = base
        self.headers = {"authorization": f"Bearer {key}"} if key else {}

    async def prepare(self, wire: Wire, worker: int) -> None:
        return

    async def ask(self, wire: Wire, worker: int, answer: Answer, prompt: str) -> None:
        message = {"role": "user", "content": prompt}
        body = {"model": "fake", "messages": [message], "stream": True, "max_tokens": 1_000}
        status, answer.pieces, answer.sent = await wire.request("POST", "/v1/chat/completions", self.headers, body)
        if status != 200:
            raise Failed(f"HTTP {status}: {answer.pieces[:1]}")

    def delta(self, data: Any) -> str:
        if "error" in data:
            raise Failed(str(data["error"])[:200])
        choices = data.get("choices")
        return (choices[0]["delta"].get("content") or "") if choices else ""


class Native:
    """A conversation: each question follows the last answer, and its run's events are read from the start."""

    def __init__(self, base: str, key: str) -> None:
        self.base, self.headers = base, {"authorization": f"Bearer {key}"}
        self._place: dict[int, tuple[str, str | None]] = {}

    async def prepare(self, wire: Wire, worker: int) -> None:
        made = await wire.json("POST", "/api/conversations", self.headers, {})
        self._place[worker] = made["id"], None

    async def post(self, wire: Wire, worker: int, prompt: str) -> Any:
        conversation, parent = self._place[worker]
        body = {"client_id": str(uuid.uuid4()), "text": prompt, "parent_id": parent}
        posted = await wire.json("POST", f"/api/conversations/{conversation}/messages", self.headers, body)
        self._place[worker] = conversation, posted["answer"]["id"]
        return posted

    async def ask(self, wire: Wire, worker: int, answer: Answer, prompt: str) -> None:
        answer.sent = now()
        run = (await self.post(wire, worker, prompt))["run"]["id"]
        status, answer.pieces, _ = await wire.request("GET", f"/api/runs/{run}/events", self.headers)
        if status != 200:
            raise Failed(f"HTTP {status}: {answer.pieces[:1]}")

    def delta(self, data: Any) -> str:
        if data["type"] == "snapshot":
            raise Failed("a snapshot, in a stream that nothing happened to")
        return data["text"] if data["type"] == "text" else ""


# ---------------------------------------------------------------- load


async def closed_loop(
    target: Target,
    *,
    workers: int,
    seconds: float,
    ramp: float,
    prompt: str,
    name: str,
    meter: Meter | None = None,
) -> list[Answer]:
    """Each worker asks one question after the other. Workers start spread over `ramp` seconds."""
    answers: list[Answer] = []
    wires = [Wire(target.base) for _ in range(workers)]
    for worker, wire in enumerate(wires):
        await target.prepare(wire, worker)
    gc.collect()
    gc.freeze()
    gc.disable()
    if meter:
        meter.start()
    until = now() + ramp + seconds

    async def work(worker: int) -> None:
        await asyncio.sleep(ramp * worker / workers)
        while now() < until:
            answer = Answer(f"{name}{worker}x{len(answers)}")
            answers.append(answer)
            try:
                await target.ask(wires[worker], worker, answer, f"{prompt} seed:{answer.seed}")
            except (Failed, OSError, TimeoutError) as error:
                answer.error = f"{type(error).__name__}: {error}"
                await asyncio.sleep(0.05)
            answer.ended = now()

    try:
        await asyncio.gather(*map(work, range(workers)))
    finally:
        if meter:
            meter.stop()
        gc.enable()
        for wire in wires:
            wire.close()
    return answers


# ---------------------------------------------------------------- afterwards


def data_of(pieces: Pieces) -> Iterator[tuple[float, bytes]]:
    """(time, payload) of each event; the time is that of the read that completed it."""
    rest = b""
    for at, piece in pieces:
        *whole, rest = _FRAME.split(rest + piece)
        for frame in whole:
            for line in frame.splitlines():
                if line.startswith(b"data:"):
                    yield at, line[5:].strip()


@dataclass(slots=True)
class Result:
    """What a load came to. Times in ms; `tokens` are those of correct answers, `events` those that brought text."""

    answers: int
    tokens: int
    events: int
    seconds: float
    ttft: list[float]
    gaps: list[float]
    errors: Counter[str]

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds if self.seconds else 0.0


def analyse(target: Target, answers: Sequence[Answer], n: int) -> Result:
    ttft: list[float] = []
    gaps: list[float] = []
    errors: Counter[str] = Counter()
    good = events = 0
    for answer in answers:
        if answer.error:
            errors[answer.error[:120]] += 1
            continue
        try:
            parts = [(at, text) for at, data in data_of(answer.pieces) if (text := _delta(target, data))]
        except (Failed, ValueError, KeyError) as error:
            errors[f"{type(error).__name__}: {error}"[:120]] += 1
            continue
        if "".join(text for _, text in parts) != expected_text(n, answer.seed):
            errors["not the text that was asked for"] += 1
            continue
        good += 1
        events += len(parts)
        ttft.append((parts[0][0] - answer.sent) * 1000)
        gaps += [(later[0] - earlier[0]) * 1000 for earlier, later in pairwise(parts)]
    span = max(a.ended for a in answers) - min(a.sent for a in answers if a.sent)
    return Result(good, good * n, events, span, sorted(ttft), sorted(gaps), errors)


def _delta(target: Target, data: bytes) -> str:
    return "" if data == b"[DONE]" else target.delta(orjson.loads(data))


def quantile(values: Sequence[float], q: float) -> float:
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * q))] if values else float("nan")


# ---------------------------------------------------------------- meters


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of a process tree so far, ended children included."""
    total = 0
    for each in tree(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def pss_kib(pid: int) -> int:
    """Memory of a process tree, what is shared counted by share."""
    rollups = (Path(f"/proc/{each}/smaps_rollup").read_text() for each in tree(pid))
    return sum(int(line.split()[1]) for rollup in rollups for line in rollup.splitlines() if line.startswith("Pss:"))


class Meter:
    """CPU of named process trees between `start` and `stop`, and of the load generator itself as `load`."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self.pids = dict(pids)
        self.used: dict[str, float] = {}

    def start(self) -> None:
        self.used = self._read()

    def stop(self) -> None:
        self.used = {name: value - self.used[name] for name, value in self._read().items()}

    def _read(self) -> dict[str, float]:
        return {"load": time.process_time(), **{name: cpu_s(pid) for name, pid in self.pids.items()}}
