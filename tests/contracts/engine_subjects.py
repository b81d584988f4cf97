"""What the conformance suite is run against: an engine, and how to ask it for a known answer."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml
from redis import Redis

from inference.engines.factory import make_engine
from inference.engines.fake import FakeEngine
from inference.engines.fake_replica import Options
from inference.engines.fake_server import FakeServer, serve
from inference.engines.http import Timeouts
from inference.engines.openai_http import OpenAIEngine
from inference.engines.script import expected_text
from inference.manifest import DEFAULT_MANIFEST
from inference.prober import probe, static_record
from inference.protocol import (
    ChatMessage,
    Delta,
    Engine,
    GenerationRequest,
    ReplicaInfo,
    ReplicaState,
)
from inference.registry import Record, read_records
from infra.local.ports import free_port

REPOSITORY = Path(__file__).resolve().parents[2]
ENGINE_HOME = REPOSITORY / ".parley"
LIVE_MODEL = "smollm2-135m"
READY_WITHIN_S = 1500
# The real router's program: the one that `make test` installs, or another.
VLLM_ROUTER = Path(os.environ.get("PARLEY_VLLM_ROUTER", ENGINE_HOME / "vllm-router" / "bin" / "vllm-router"))
NEEDS_VLLM_ROUTER = pytest.mark.skipif(
    not VLLM_ROUTER.exists(), reason="there is no vllm-router: `make test` brings it"
)


@dataclass
class Answer:
    """A stream read to its end."""

    deltas: list[Delta] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(d.text for d in self.deltas)

    @property
    def token_ids(self) -> tuple[int, ...]:
        return tuple(itertools.chain.from_iterable(d.token_ids for d in self.deltas))

    @property
    def tokens(self) -> int:
        return sum(d.tokens for d in self.deltas)

    @property
    def prompt_token_ids(self) -> tuple[int, ...]:
        return next(d.prompt_token_ids for d in self.deltas if d.prompt_token_ids is not None)

    @property
    def last(self) -> Delta:
        return self.deltas[-1]


@dataclass
class Subject:
    """`question(n, word)` asks for an answer of about `n` tokens that differs by `word`."""

    engine: Engine
    model: str
    question: Callable[[int, str], str]
    scripted: bool
    long: int = 400
    # False: it gives no token ids, counts no cached tokens and cannot continue.
    exact: bool = True
    # False: it does not count a prompt's tokens.
    counts: bool = True

    def request(self, text: str, *, max_tokens: int = 4000, **more: object) -> GenerationRequest:
        request = GenerationRequest(
            f"test-{secrets.token_hex(6)}", self.model, (ChatMessage("user", text),), max_tokens, temperature=0.0
        )
        return replace(request, **more)  # type: ignore[arg-type]

    async def ask(self, request: GenerationRequest) -> Answer:
        stream = self.engine.generate(request)
        try:
            return Answer([delta async for delta in stream])
        finally:
            await stream.aclose()

    async def until_idle(self) -> None:
        for _ in range(100):
            load = await self.engine.load()
            if load.running + load.waiting == 0:
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the engine still runs answers")

    def expected(self, n: int, word: str) -> str | None:
        return expected_text(n, word) if self.scripted else None


def scripted_question(n: int, word: str) -> str:
    return f"seed:{word} n:{n} itl:1"


def live_question(n: int, word: str) -> str:
    return f"Count from 1 to {n}. Write only numbers, separated by commas. My name is {word}."


@asynccontextmanager
async def in_process() -> AsyncIterator[Subject]:
    engine = FakeEngine(slots=8)
    yield Subject(engine, "fake", scripted_question, scripted=True)
    await engine.close()


async def engine_to(server: FakeServer, slots: int = 8, timeouts: Timeouts | None = None) -> OpenAIEngine:
    """An engine that has found out what the server can."""
    info = ReplicaInfo("r", "fake", server.url, "openai", ReplicaState.STARTING, slots=slots)
    engine = OpenAIEngine(info, timeouts=timeouts)
    assert (await probe(engine, info)).state is ReplicaState.READY
    return engine


@asynccontextmanager
async def over_http() -> AsyncIterator[Subject]:
    server = await serve(Options(slots=8, context=32_768))
    engine = await engine_to(server)
    yield Subject(engine, "fake", scripted_question, scripted=True)
    await engine.close()
    await server.close()


@asynccontextmanager
async def behind(kind: str) -> AsyncIterator[Subject]:
    """A server that imitates a router of this kind."""
    server = await serve(Options(slots=8, context=32_768, manner=kind))
    info = static_record("fake", f"{server.url}?kind={kind}&slots=8").replica
    engine = make_engine(info)
    assert (await probe(engine, info)).state is ReplicaState.READY
    exact = kind in ("vllm-router", "llm-d")
    yield Subject(engine, "fake", scripted_question, scripted=True, exact=exact, counts=kind == "vllm-router")
    await engine.close()
    await server.close()


@asynccontextmanager
async def vllm_router(router: ReplicaInfo) -> AsyncIterator[Subject]:
    engine = make_engine(router)
    # As the pool does: what is asked for depends on what the server can.
    await probe(engine, router)
    yield Subject(engine, "fake", scripted_question, scripted=True)
    await engine.close()


@asynccontextmanager
async def routed() -> AsyncIterator[tuple[ReplicaInfo, list[FakeServer]]]:
    """The real vllm-router in front of two scripted servers."""
    servers = [await serve(Options(slots=8, context=32_768)) for _ in range(2)]
    port, folder = free_port(), tempfile.mkdtemp()
    arguments = ("--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(free_port()))
    urls = [server.url for server in servers]
    router = await asyncio.create_subprocess_exec(
        VLLM_ROUTER, *arguments, "--policy", "consistent_hash", "--log-dir", folder, "--worker-urls", *urls,
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    info = static_record("fake", f"http://127.0.0.1:{port}?kind=vllm-router&slots=8").replica
    engine = make_engine(info)
    for _ in range(100):
        if (await probe(engine, info)).state is ReplicaState.READY:
            break
        await asyncio.sleep(0.2)
    await engine.close()
    yield info, servers
    router.terminate()
    await router.wait()
    for server in servers:
        await server.close()


@asynccontextmanager
async def live(supervisor: LiveSupervisor) -> AsyncIterator[Subject]:
    engine = OpenAIEngine(supervisor.until_ready().replica)
    yield Subject(engine, LIVE_MODEL, live_question, scripted=False, long=60)
    await engine.close()


# ---------------------------------------------------------------- the real thing


def exact_manifest(folder: Path) -> Path:
    """The packaged models in float32. In bfloat16 the two likeliest tokens are often equal, and which one is taken
    depends on how much of the prompt came from the prefix cache."""
    manifest = yaml.safe_load(DEFAULT_MANIFEST.read_text())
    models = [model | {"dtype": "float32"} for model in manifest["models"]]
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump(manifest | {"models": models}))
    return path


class LiveSupervisor:
    """`python -m inference.supervisor` with the real engine and one model, the packaged one if no other is named, in a
    state folder of its own."""

    def __init__(self, redis_url: str, folder: Path, *, manifest: Path | None = None, model: str = LIVE_MODEL) -> None:
        self.redis = Redis.from_url(redis_url)
        self.folder, self.model = folder, model
        (ENGINE_HOME / "weights").mkdir(parents=True, exist_ok=True)
        (folder / "weights").symlink_to(ENGINE_HOME / "weights")
        environment = {
            **os.environ,
            "REDIS_URL": redis_url,
            "PARLEY_STATE_DIR": str(folder),
            "PARLEY_VLLM_PYTHON": str(engine_python()),
            "PARLEY_REPLICA_URLS": "",
            "PARLEY_MANIFEST": str(manifest or exact_manifest(folder)),
        }
        self.log = folder / "supervisor.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "inference.supervisor"],
                cwd=REPOSITORY,
                env=environment,
                stdout=output,
                stderr=output,
            )

    def record(self) -> Record | None:
        return next((r for r in read_records(self.redis) if r.card.id == self.model), None)

    def until_ready(self, *, other_than: str = "") -> Record:
        """The record of the ready replica, under another address than `other_than`."""
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            record = self.record()
            if record is not None and record.replica.state is ReplicaState.READY and record.replica.url != other_than:
                return record
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.3)
        raise AssertionError(f"no replica became ready:\n{self.log.read_text()}")

    def until_lost(self) -> Record:
        """The replica's record once its supervisor has told why it is lost. On a machine that stood still the record
        may have expired before that: it is gone then, without a reason yet."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            record = self.record()
            if record is not None and record.replica.state is not ReplicaState.READY and record.replica.error:
                return record
            time.sleep(0.05)
        raise AssertionError(f"the registry does not tell of the loss:\n{self.log.read_text()}")

    def engine_pids(self) -> list[int]:
        """The replica's processes, by the mark in their environment."""
        mark = f"PARLEY_REPLICA_OF={self.folder}".encode()
        return [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/environ") if mark in _read(p)]

    def server_pid(self) -> int:
        """The process that listens: the supervisor's own child."""
        (pid,) = [p for p in self.engine_pids() if parent_of(p) == self.process.pid]
        return pid

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def engine_python() -> Path:
    return ENGINE_HOME / "vllm" / "bin" / "python"
