"""A child process that cannot outlive us, in a group of its own, with its output in a file.

Responsible for: starting it, ending the whole group, and sweeping up groups that a killed supervisor left behind.
Leaves to its caller what the child is and when it is well.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
_MARK = "PARLEY_REPLICA_OF"
_LOG_TAIL = 4000


class Child:
    """`owner` marks the process tree in its environment, so that leftovers are known for ours."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    async def wait(self) -> int:
        """The exit status; whatever else was in its group is gone then too."""
        status = await self._process.wait()
        self._signal(signal.SIGKILL)
        return status

    def terminate(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    async def stop(self, grace_s: float) -> None:
        """Ask, wait, then force."""
        self.terminate()
        try:
            async with asyncio.timeout(grace_s):
                await self._process.wait()
        except TimeoutError:
            pass
        self.kill()
        await self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def obituary(self) -> str:
        """How it ended, and the log's line that most likely says why."""
        status, words = self.returncode or 0, self._last_words()
        if status < 0:
            how = f"it was ended by {signal.Signals(-status).name}"
            hint = " (out of memory?)" if status == -signal.SIGKILL else ""
        else:
            how, hint = f"it ended with status {status}", ""
        return f"{how}{hint}" + (f": {words}" if words else "")

    def _last_words(self) -> str:
        try:
            with self._log.open("rb") as handle:
                handle.seek(max(0, self._log.stat().st_size - _LOG_TAIL))
                lines = handle.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        errors = [line for line in lines if "Error" in line or "error:" in line]
        return errors[-1].strip()[:300] if errors else ""


async def start_child(command: Sequence[str], environment: dict[str, str], log: Path, owner: str) -> Child:
    """OSError when it cannot be started. The log is begun anew, the former one kept beside it."""
    with _new_log(log) as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**environment, _MARK: owner},
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
    return Child(process, log)


def _new_log(log: Path) -> BinaryIO:
    log.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        log.replace(log.with_suffix(".old.log"))
    return log.open("wb")


_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_parent() -> None:
    """Runs in the child. SIGTERM rather than SIGKILL lets it end its own children."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def kill_leftovers(owner: str) -> int:
    """Kill processes that an earlier supervisor of `owner` started and that still run; how many."""
    needle = f"\0{_MARK}={owner}\0".encode()
    killed = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            found = needle in b"\0" + (entry / "environ").read_bytes() + b"\0"
        except OSError:
            continue
        if found and int(entry.name) != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(entry.name), signal.SIGKILL)
                killed += 1
    return killed
