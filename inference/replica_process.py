"""One vLLM replica on this machine, from its weights to its end: starting, warming, ready, restarted when it fails.

Responsible for: the state machine and its facts as a registry record. Leaves the command to `vllm_command`, the
process to `child`, publishing and the order of shutdown to `supervisor`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from inference.child import Child, start_child
from inference.durations import Durations, seconds_left
from inference.engines.openai_http import OpenAIEngine
from inference.manifest import ModelSpec
from inference.prober import probe, try_out
from inference.protocol import InferenceError, ReplicaInfo, ReplicaState
from inference.registry import Record, stamp
from inference.settings import Settings
from inference.vllm_command import SHUTDOWN_S, build_command, device_of
from inference.weights import Prepared, WeightsError, prepare_weights

log = logging.getLogger(__name__)

START_LIMIT_S = 1800.0
_START_GUESS_S = {"cpu": 75.0, "gpu": 150.0}
_WEIGHTS_GUESS_S = 45.0
_POLL_S = 0.5
_WARM_S = 300.0
# Longer than the time between two looks of a pool at the registry: by then none sends a new answer here.
_ROUTING_STOPS_S = 1.5
_WATCH_S = 2.0
_SICK_LIMIT = 5
_BACKOFF_FIRST_S, _BACKOFF_MOST_S = 1.0, 60.0
_STABLE_S = 120.0
# After so many failed starts in a row nobody is told to wait.
_HOPELESS = 3
_WEIGHTS_RETRY_S = 60.0
_READY_EXTRA = frozenset({"priority"})


class ReplicaGone(Exception):
    """The process ended or fell silent; the message says how."""


class LocalReplica:
    """`on_change` is called when its state or phase changed. `run` ends when cancelled."""

    def __init__(
        self,
        spec: ModelSpec,
        number: int,
        settings: Settings,
        durations: Durations,
        *,
        on_change: Callable[[LocalReplica], None],
    ) -> None:
        self.spec = spec
        self._settings, self._durations, self._on_change = settings, durations, on_change
        self._device = device_of(spec, settings)
        name = f"{spec.id}-{number}@{socket.gethostname()}"
        self._info = ReplicaInfo(
            name,
            spec.id,
            "",
            "vllm",
            ReplicaState.STARTING,
            slots=spec.slots,
            context_length=spec.context_length or 0,
            region=settings.region,
            phase="waiting",
        )
        self._log_file = settings.logs_dir / f"vllm-{spec.id.replace(':', '_')}-{number}.log"
        self._began, self._expected = time.monotonic(), self._expected_start() + self._expected_weights()
        self._engine: OpenAIEngine | None = None
        self._child: Child | None = None
        self._failures = 0

    # ------------------------------------------------ facts

    @property
    def info(self) -> ReplicaInfo:
        return self._info

    def record(self, owner: str) -> Record:
        """As of now: time left is counted anew."""
        info = self._info
        if info.state in (ReplicaState.STARTING, ReplicaState.WARMING) and self._failures < _HOPELESS:
            info = replace(info, eta_s=seconds_left(self._expected, time.monotonic() - self._began))
        return Record(stamp(info), self.spec.card, owner)

    def _expected_start(self) -> float:
        return self._durations.expected(f"start {self.spec.id}", _START_GUESS_S.get(self._device, 120.0))

    def _expected_weights(self) -> float:
        known = self._durations.expected(f"weights {self.spec.id}", -1.0)
        return _WEIGHTS_GUESS_S if known < 0 else 0.0

    def _become(self, state: ReplicaState, phase: str = "", *, error: str | None = None) -> None:
        """The last error stays known until the replica is ready again."""
        error = error or ("" if state is ReplicaState.READY else self._info.error)
        self._info = replace(self._info, state=state, phase=phase, error=error, eta_s=None, running=0, waiting=0)
        log.info("%s: %s%s", self._info.id, phase or state.value, f" ({error})" if error else "")
        self._on_change(self)

    # ------------------------------------------------ life

    async def run(self) -> None:
        """Start, watch, start again, until cancelled; then the process is killed if it still runs."""
        try:
            while True:
                await self._live_once()
                await asyncio.sleep(self._pause())
        finally:
            await self._clean_up()

    async def _live_once(self) -> None:
        began = time.monotonic()
        try:
            prepared = await self._prepare()
            await self._start(prepared)
            await self._warm()
            await self._watch()
        except WeightsError as error:
            self._become(ReplicaState.GONE, "no weights", error=str(error))
            await asyncio.sleep(_WEIGHTS_RETRY_S)
        except (ReplicaGone, InferenceError, OSError) as error:
            if time.monotonic() - began > _STABLE_S and self._info.state is ReplicaState.READY:
                self._failures = 0
            self._failures += 1
            self._become(ReplicaState.STARTING, "restarting", error=str(error))
        finally:
            await self._clean_up()

    def _pause(self) -> float:
        """Exponential, with up to a fifth more, so that replicas that died together do not start together."""
        pause = min(_BACKOFF_MOST_S, _BACKOFF_FIRST_S * 2.0 ** max(0, self._failures - 1))
        return pause * (1 + secrets.randbelow(200) / 1000)

    async def _prepare(self) -> Prepared:
        self._began, self._expected = time.monotonic(), self._expected_start() + self._expected_weights()
        prepared = await prepare_weights(self.spec, self._settings, self._tell_phase)
        took = time.monotonic() - self._began
        if took > 1.0:
            self._durations.remember(f"weights {self.spec.id}", took)
        return prepared

    def _tell_phase(self, phase: str) -> None:
        self._become(ReplicaState.STARTING, phase)

    async def _start(self, prepared: Prepared) -> None:
        self._began, self._expected = time.monotonic(), self._expected_start()
        port = free_port()
        command = build_command(self.spec, prepared.folder, port, self._settings, os.environ)
        self._info = replace(
            self._info,
            url=f"http://{self._settings.replica_host}:{port}",
            weights_digest=prepared.weights_digest,
            tokenizer_digest=prepared.tokenizer_digest,
            tokenizer_path=str(prepared.tokenizer_file) if prepared.tokenizer_file.exists() else "",
            capabilities=_READY_EXTRA,
        )
        self._become(ReplicaState.STARTING, "starting the engine")
        owner = str(self._settings.state_dir)
        self._child = await start_child(command.arguments, command.environment, self._log_file, owner)
        self._engine = OpenAIEngine(self._info)
        await self._until_healthy(self._child, self._engine)

    async def _until_healthy(self, child: Child, engine: OpenAIEngine) -> None:
        """A look at the port costs nothing while nobody listens, so it comes before each question."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline:
            if child.returncode is not None:
                raise ReplicaGone(child.obituary())
            if await _listens(self._info.url):
                health = await engine.health()
                if health.ok:
                    self._info = replace(self._info, capabilities=engine.capabilities, version=health.version)
                    return
            await asyncio.sleep(_POLL_S)
        raise ReplicaGone(f"not ready within {START_LIMIT_S:.0f} s")

    async def _warm(self) -> None:
        """One short answer: the first one pays for lazy set-up, and proves that the replica can answer."""
        assert self._engine is not None
        self._become(ReplicaState.WARMING, "warming up")
        await try_out(self._engine, self.spec.id, within_s=_WARM_S, purpose=self.spec.purpose)
        await self._refresh()
        self._durations.remember(f"start {self.spec.id}", time.monotonic() - self._began)
        self._become(ReplicaState.READY)

    async def _watch(self) -> None:
        assert self._child is not None
        exit_seen = asyncio.create_task(self._child.wait())
        sick = 0
        try:
            while True:
                done, _ = await asyncio.wait({exit_seen}, timeout=_WATCH_S)
                if done:
                    raise ReplicaGone(self._child.obituary())
                sick = 0 if await self._refresh() else sick + 1
                if sick >= _SICK_LIMIT:
                    raise ReplicaGone(f"no answer to {sick} health checks: {self._info.error}")
        finally:
            exit_seen.cancel()
            with suppress(asyncio.CancelledError):
                await exit_seen

    async def _refresh(self) -> bool:
        """Load and health as of now. One missed answer does not take a busy replica out of service."""
        assert self._engine is not None
        seen = await probe(self._engine, self._info)
        if seen.state is ReplicaState.READY:
            self._info = replace(seen, state=self._info.state, phase=self._info.phase)
            return True
        self._info = replace(self._info, error=seen.error)
        return False

    # ------------------------------------------------ end

    async def drain(self, within_s: float) -> None:
        """No new answers: the state is published at once (`on_change`) and pools get the time to read it. Then wait
        for the answers in progress; SIGTERM comes after that."""
        if self._info.state is not ReplicaState.READY or self._engine is None or self._child is None:
            return
        self._become(ReplicaState.DRAINING, "draining")
        await asyncio.sleep(_ROUTING_STOPS_S)
        with suppress(InferenceError):
            for _ in range(int(within_s / _POLL_S)):
                load = await self._engine.load()
                if not load.running + load.waiting:
                    break
                await asyncio.sleep(_POLL_S)

    async def _clean_up(self) -> None:
        engine, self._engine = self._engine, None
        child, self._child = self._child, None
        if engine is not None:
            await engine.close()
        if child is not None:
            await asyncio.shield(child.stop(SHUTDOWN_S + 3))

    def mark_gone(self) -> None:
        self._info = replace(self._info, state=ReplicaState.GONE, phase="stopped", url="", running=0, waiting=0)


def free_port() -> int:
    """A port that was free a moment ago. Another process may take it first; then the start fails and is repeated."""
    with socket.socket() as probe_socket:
        probe_socket.bind(("127.0.0.1", 0))
        return int(probe_socket.getsockname()[1])


async def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except OSError:
        return False
    writer.close()
    return True
