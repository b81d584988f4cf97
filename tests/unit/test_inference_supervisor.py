"""The supervisor's care for its replicas, with a scripted server in the engine's place."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from inference.durations import Durations, seconds_left
from inference.engines.openai_http import OpenAIEngine
from inference.engines.script import expected_text
from inference.manifest import PathWeights, parse_manifest
from inference.protocol import ChatMessage, GenerationRequest, ReplicaState
from inference.registry import Record, read_records, read_rules
from inference.routing.types import Rule
from inference.settings import Settings, read_settings
from inference.weights import Prepared, WeightsError, prepare_weights
from tests.contracts.engine_subjects import parent_of
from tests.services import Services

REPOSITORY = Path(__file__).resolve().parents[2]

# Takes the engine's command line, and serves the script instead. A grandchild shows whether whole groups are ended.
STUB = """\
#!{python}
import os, subprocess, sys
if "convert_gguf.py" in " ".join(sys.argv):
    exec(open({converter!r}).read())
    sys.exit()
if os.path.exists({broken!r}):
    sys.exit("ValueError: this model cannot be loaded")
port = sys.argv[sys.argv.index("--port") + 1]
subprocess.Popen(["sleep", "600"])
sys.path.insert(0, {repository!r})
sys.argv = ["fake_server", "--port", port, "--slots", "8", "--model", "m"]
import runpy
runpy.run_module("inference.engines.fake_server", run_name="__main__")
"""
CONVERTER = """\
import json, pathlib, sys
print(json.dumps({"phase": "converting weights"}), flush=True)
source, target = map(pathlib.Path, sys.argv[2:4])
if source.read_bytes() == b"unconvertible":
    sys.exit("KeyError: no tensors")
(target / "config.json").write_text("{}")
(target / "tokenizer.json").write_text("{}")
"""


class Bench:
    """A state folder with a scripted engine, and supervisors on it."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.folder, self.redis_url = folder, redis_url
        self.redis = Redis.from_url(redis_url)
        self.broken = folder / "broken"
        self.stub = folder / "engine"
        converter = folder / "converter.py"
        converter.write_text(CONVERTER)
        self.stub.write_text(
            STUB.format(
                python=sys.executable,
                repository=str(REPOSITORY),
                broken=str(self.broken),
                converter=str(converter),
            )
        )
        self.stub.chmod(0o755)
        model = folder / "model"
        model.mkdir()
        (model / "config.json").write_text("{}")
        self.manifest = folder / "manifest.yaml"
        self.write_manifest(f"{{path: {model}}}")
        self.processes: list[subprocess.Popen[bytes]] = []

    def write_manifest(self, weights: str, replicas: int = 1) -> None:
        self.manifest.write_text(
            textwrap.dedent(f"""\
            models:
              - id: m
                name: Model M
                default: true
                weights: {weights}
                context_length: 4096
                replicas: {replicas}
            rules: [{{name: greeting, level: 1, words_at_most: 3}}]
            """)
        )

    def environment(self) -> dict[str, str]:
        return {
            "REDIS_URL": self.redis_url,
            "PARLEY_STATE_DIR": str(self.folder),
            "PARLEY_MANIFEST": str(self.manifest),
            "PARLEY_VLLM_PYTHON": str(self.stub),
            "PARLEY_VLLM": "cpu",
        }

    def settings(self) -> Settings:
        return read_settings(self.environment())

    def start(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "supervisor.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", "inference.supervisor"],
            cwd=REPOSITORY,
            env={"PATH": os.environ["PATH"], **self.environment()},
            stdout=log,
            stderr=log,
        )
        log.close()
        self.processes.append(process)
        return process

    @property
    def log(self) -> str:
        return (self.folder / "supervisor.log").read_text()

    def records(self) -> tuple[Record, ...]:
        return read_records(self.redis)

    def until(self, wanted: Callable[[tuple[Record, ...]], bool], within_s: float = 60) -> tuple[Record, ...]:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            records = self.records()
            if records and wanted(records):
                return records
            time.sleep(0.05)
        raise AssertionError(f"it did not come to that:\n{self.records()}\n{self.log}")

    def until_ready(self, count: int = 1) -> tuple[Record, ...]:
        return self.until(lambda rs: sum(r.replica.state is ReplicaState.READY for r in rs) == count)

    def children(self) -> list[int]:
        """Processes that replicas of this bench consist of."""
        mark = f"PARLEY_REPLICA_OF={self.folder}".encode()
        return [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/environ") if mark in read(p)]

    def server(self) -> int:
        """The replica's process that listens: the supervisor's own child."""
        (pid,) = [p for p in self.children() if parent_of(p) == self.processes[-1].pid]
        return pid

    def until_no_children(self) -> None:
        deadline = time.monotonic() + 20
        while self.children():
            assert time.monotonic() < deadline, self.children()
            time.sleep(0.05)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture
def bench(services: Services, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, services.environment()["REDIS_URL"])
    yield bench
    for process in bench.processes:
        if process.poll() is None:
            process.terminate()
            process.wait(30)
    bench.redis.close()
    assert bench.children() == []


def test_a_replica_starts_warms_up_and_is_published(bench: Bench) -> None:
    channel: Any = bench.redis.pubsub()  # type: ignore[no-untyped-call]
    channel.subscribe("inference:changes")
    process = bench.start()
    first = bench.until(lambda rs: rs[0].replica.phase == "starting the engine")[0]
    assert first.replica.state is ReplicaState.STARTING
    assert first.replica.eta_s is not None
    ready = bench.until_ready()[0]
    info = ready.replica
    assert (info.model, info.kind, info.slots, info.context_length) == ("m", "vllm", 8, 131_072)
    assert {"priority", "token_ids", "cache_salt"} <= info.capabilities
    assert info.url.startswith("http://127.0.0.1:")
    assert info.expires_at > time.time()
    assert "warming up" in bench.log
    assert read_rules(bench.redis) == (Rule("greeting", 1, words_at_most=3),)
    notes = [m["data"] for m in iter(lambda: channel.get_message(timeout=0.2), None) if m["type"] == "message"]
    assert {"model": "m"} in [json.loads(n) for n in notes]
    channel.close()
    process.terminate()
    assert process.wait(30) == 0
    assert bench.records()[0].replica.state is ReplicaState.GONE
    bench.until_no_children()


def test_a_killed_engine_is_started_again_elsewhere(bench: Bench) -> None:
    bench.start()
    before = bench.until_ready()[0].replica
    server = bench.server()
    os.kill(server, signal.SIGKILL)
    lost = bench.until(lambda rs: rs[0].replica.state is not ReplicaState.READY)[0].replica
    assert "SIGKILL" in lost.error
    after = bench.until_ready()[0].replica
    assert after.url != before.url
    assert after.error == ""
    assert server not in bench.children()


def test_an_engine_that_cannot_start_is_tried_again_and_says_why(bench: Bench) -> None:
    bench.broken.touch()
    bench.start()
    failed = bench.until(lambda rs: rs[0].replica.eta_s is None and bool(rs[0].replica.error))[0].replica
    assert "this model cannot be loaded" in failed.error
    assert failed.state is ReplicaState.STARTING
    bench.broken.unlink()
    assert bench.until_ready()[0].replica.error == ""


def test_stopping_waits_for_the_answer_in_progress(bench: Bench) -> None:
    process = bench.start()
    info = bench.until_ready()[0].replica

    async def ask() -> str:
        engine = OpenAIEngine(info)
        request = GenerationRequest("r", "m", (ChatMessage("user", "seed:d n:60 itl:50"),), 100)
        stream = engine.generate(request)
        text = (await anext(stream)).text
        process.terminate()
        await asyncio.to_thread(bench.until, lambda rs: rs[0].replica.state is ReplicaState.DRAINING, 2.5)
        text += "".join([delta.text async for delta in stream])
        await engine.close()
        return text

    assert asyncio.run(ask()) == expected_text(60, "d")
    assert process.wait(30) == 0


def test_an_idle_replica_is_taken_from_routing_before_it_is_ended(bench: Bench) -> None:
    """Pools look at the registry once a second: until then an answer may still come, and must find someone."""
    process = bench.start()
    info = bench.until_ready()[0].replica
    process.terminate()
    bench.until(lambda rs: rs[0].replica.state is ReplicaState.DRAINING, 2.5)
    told_at = time.monotonic()

    async def ask() -> str:
        engine = OpenAIEngine(info)
        request = GenerationRequest("r", "m", (ChatMessage("user", "seed:late n:3"),), 100)
        text = "".join([delta.text async for delta in engine.generate(request)])
        await engine.close()
        return text

    time.sleep(max(0.0, told_at + 1.0 - time.monotonic()))
    assert asyncio.run(ask()) == expected_text(3, "late")
    assert process.wait(30) == 0


def test_a_killed_supervisor_leaves_nothing_behind_for_long(bench: Bench) -> None:
    bench.start()
    before = bench.until_ready()[0].replica
    orphan = subprocess.Popen(["sleep", "600"], env={"PARLEY_REPLICA_OF": str(bench.folder)})
    bench.processes[0].kill()
    bench.processes[0].wait()
    bench.start()
    bench.until(lambda rs: rs[0].replica.state is ReplicaState.READY and rs[0].replica.url != before.url)
    assert orphan.wait(5) == -signal.SIGKILL
    assert len(bench.children()) == 2


def test_replicas_that_left_the_manifest_leave_the_registry(bench: Bench) -> None:
    bench.write_manifest(f"{{path: {bench.folder / 'model'}}}", replicas=2)
    process = bench.start()
    bench.until_ready(2)
    process.terminate()
    process.wait(30)
    bench.write_manifest(f"{{path: {bench.folder / 'model'}}}", replicas=1)
    bench.start()
    bench.until_ready()
    assert len(bench.records()) == 1


def test_a_manifest_that_cannot_be_used_stops_it_with_words(bench: Bench) -> None:
    bench.manifest.write_text("models: [{id: m}]")
    process = bench.start()
    assert process.wait(30) == 2
    assert "m, name" in bench.log


# ---------------------------------------------------------------- weights


def gguf(bench: Bench, content: bytes = b"GGUF", **facts: object) -> tuple[Path, dict[str, object]]:
    file = bench.folder / "w.gguf"
    file.write_bytes(content)
    return file, {"id": "m", "name": "M", "weights": {"path": str(file), **facts}}


async def prepare(bench: Bench, spec: dict[str, object]) -> tuple[Prepared, list[str]]:
    told: list[str] = []
    (model,) = parse_manifest({"models": [spec]}).models
    return await prepare_weights(model, bench.settings(), told.append), told


async def test_weights_are_converted_once(bench: Bench) -> None:
    _, spec = gguf(bench)
    first, told = await prepare(bench, spec)
    assert told == ["checking weights", "converting weights"]
    assert first.tokenizer_file.exists()
    again, told = await prepare(bench, spec)
    assert (again, told) == (first, [])
    assert [p for p in bench.settings().weights_dir.iterdir() if p.suffix == ".part"] == []


async def test_two_at_once_convert_once(bench: Bench) -> None:
    _, spec = gguf(bench)
    (first, one), (second, two) = await asyncio.gather(prepare(bench, spec), prepare(bench, spec))
    assert first == second
    assert sorted([len(one), len(two)]) == [0, 2]


async def test_damaged_weights_are_refused(bench: Bench) -> None:
    _, spec = gguf(bench, b"damaged", sha256="0" * 64)
    with pytest.raises(WeightsError, match="damaged or another version"):
        await prepare(bench, spec)
    assert not any(p.is_dir() for p in bench.settings().weights_dir.iterdir())


async def test_a_conversion_that_fails_leaves_nothing(bench: Bench) -> None:
    _, spec = gguf(bench, b"unconvertible")
    with pytest.raises(WeightsError, match="no tensors"):
        await prepare(bench, spec)
    assert not any(p.is_dir() for p in bench.settings().weights_dir.iterdir())


async def test_weights_that_are_not_there(bench: Bench) -> None:
    for weights, words in (
        ({"path": str(bench.folder / "nothing")}, "does not exist"),
        ({"path": str(bench.manifest)}, "neither a folder nor"),
        ({"path": str(bench.folder)}, "no config.json"),
    ):
        with pytest.raises(WeightsError, match=words):
            await prepare(bench, {"id": "m", "name": "M", "weights": weights})
    bench.stub.unlink()
    _, spec = gguf(bench)
    with pytest.raises(WeightsError, match="not installed"):
        await prepare(bench, spec)


def test_path_weights_take_a_checksum() -> None:
    assert PathWeights(path=Path("/x"), sha256="a" * 64).sha256 == "a" * 64


# ---------------------------------------------------------------- estimates


def test_durations_are_remembered_and_weigh_the_newest(tmp_path: Path) -> None:
    file = tmp_path / "run" / "durations.json"
    known = Durations(file)
    assert known.expected("start m", 75) == 75
    known.remember("start m", 100)
    known.remember("start m", 50)
    assert Durations(file).expected("start m", 75) == 70
    file.write_text("nonsense")
    assert Durations(file).expected("start m", 75) == 75


def test_what_is_late_is_not_said_to_be_done_now() -> None:
    assert seconds_left(60, 10) == 50
    assert seconds_left(60, 59) == 3
    assert seconds_left(60, 200) == 40
