"""Keeps one process running: starts it, waits until it serves, starts it again with growing pauses, stops it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from infra.local.logs import LogHub
from infra.local.processes import Account, Identity, identify, signal_group, wrapped

State = Literal["waiting", "starting", "ready", "failing", "stopping", "stopped"]
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# A process that ran this long is not failing at its start: the next pause is short again.
STEADY_AFTER = 30.0
# Lines of a failed start that are shown with the reason.
LINES_KEPT = 8


@dataclass(frozen=True)
class Piece:
    """One process of Parley: how to start it, how to tell that it serves, how to stop it."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path
    # It serves when the probe says so, or when it prints these words; with neither, once it runs.
    probe: Callable[[], bool] | None = None
    ready_words: bytes = b""
    colour: str = "grey"
    nice: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within: float = 10.0
    account: Account | None = None
    address: str = ""


@dataclass
class Keeper:
    """The running side of a piece. `changed` is called after each change of state."""

    piece: Piece
    hub: LogHub
    changed: Callable[[], None]
    state: State = "waiting"
    identity: Identity | None = None
    restarts: int = 0
    reason: str = ""
    since: float = field(default_factory=time.time)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _process: asyncio.subprocess.Process | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name=self.piece.name)

    async def wait_ready(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ready.wait(), seconds)
        return self.ready.is_set()

    async def stop(self, *, hurry: bool = False) -> None:
        """Ask the process to end; kill its group when it does not within `stop_within` (or at once in a hurry)."""
        self._stopping.set()
        process = self._process
        if process is not None and process.returncode is None:
            self._enter("stopping")
            process.send_signal(self.piece.stop_signal)
            try:
                await asyncio.wait_for(process.wait(), 1.0 if hurry else self.piece.stop_within)
            except TimeoutError:
                self._say(f"did not stop within {self.piece.stop_within:.0f} s and was killed")
            signal_group(process.pid, signal.SIGKILL)
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._task, 3)
        self._enter("stopped")

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                return
            self.ready.clear()
            if time.monotonic() - began > STEADY_AFTER:
                pause = FIRST_PAUSE
            self.reason = f"ended with {_status(code)}"
            self._enter("failing")
            self._say(f"{self.reason}; starting it again in {pause:.1f} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(LONGEST_PAUSE, pause * 2)
            self.restarts += 1

    async def _run_once(self) -> int:
        piece = self.piece
        self._enter("starting")
        command = wrapped(piece.command, on_parent_death=piece.stop_signal, account=piece.account, nice=piece.nice)
        process = self._process = await asyncio.create_subprocess_exec(
            *command,
            env=dict(piece.environment),
            cwd=piece.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            process_group=0,
        )
        self.identity = identify(process.pid)
        self.changed()
        assert process.stdout is not None
        reading = asyncio.create_task(self.hub.follow(piece.name, piece.colour, process.stdout, self._see))
        probing = asyncio.create_task(self._await_probe())
        try:
            code = await process.wait()
        finally:
            probing.cancel()
        # Children of the process may hold its output open; what it said itself has arrived by then.
        await asyncio.wait({reading}, timeout=0.5)
        signal_group(process.pid, signal.SIGKILL)
        await asyncio.wait({reading}, timeout=1)
        reading.cancel()
        return code

    def _see(self, line: bytes) -> None:
        if self.piece.ready_words and self.piece.ready_words in line:
            self._serve()

    async def _await_probe(self) -> None:
        if self.piece.ready_words:
            return
        # Another process cannot set an event of ours, so it is asked again and again.
        while self.piece.probe is not None and not await asyncio.to_thread(self.piece.probe):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        self._serve()

    def _serve(self) -> None:
        self.reason = ""
        self._enter("ready")
        self.ready.set()

    def _enter(self, state: State) -> None:
        if self.state != state:
            self.state = state
            self.since = time.time()
            self.changed()

    def _say(self, text: str) -> None:
        self.hub.note(self.piece.name, text)


def _status(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
