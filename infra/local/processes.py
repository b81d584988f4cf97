"""Starting, recognising and ending processes.

A process is recognised by its id and its start time, never by the id alone (ids are used again). Everything we
start leads its own process group, dies with us, and carries a mark in its environment by which leftovers of a
killed supervisor are found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MARK = "PARLEY_MARK"
LAUNCH = Path(__file__).with_name("launch.py")


@dataclass(frozen=True)
class Identity:
    """One process, distinguishable from a later one with the same id."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        return bool(self.started) and start_time(self.pid) == self.started


@dataclass(frozen=True)
class Account:
    """A user to run as."""

    name: str
    uid: int
    gid: int


def start_time(pid: int) -> str:
    """An opaque start time; empty when there is no such process, or only its unclaimed exit status."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except OSError:
        if Path("/proc/self").exists():
            return ""
    asked = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return "" if asked.stdout.strip().startswith("Z") else asked.stdout.strip().partition(" ")[2].strip()


def identify(pid: int) -> Identity:
    return Identity(pid, start_time(pid))


def wrapped(
    argv: Sequence[str | Path], *, on_parent_death: signal.Signals, account: Account | None = None, nice: int = 0
) -> list[str]:
    """The command line that starts `argv` through `launch.py`."""
    user = f"{account.uid}:{account.gid}" if account else "-"
    # The interpreter is started as ourselves and drops root itself: the account may not reach it.
    options = [str(int(on_parent_death)), str(os.getpid()), user, str(nice), "--"]
    return [sys.executable, "-S", "-E", str(LAUNCH), *options, *(str(part) for part in argv)]


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    output: IO[bytes] | int,
    account: Account | None = None,
    on_parent_death: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """Start a process that leads its own group and is told to end when this thread's process dies."""
    return subprocess.Popen(
        wrapped(argv, on_parent_death=on_parent_death, account=account),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        process_group=0,
    )


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the group that `pid` leads; a group that is gone is fine."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def end(child: subprocess.Popen[bytes], first: signal.Signals = signal.SIGTERM, patience: float = 10) -> int:
    """Ask a child to end, then kill what is left of its group. Returns its exit status."""
    if child.poll() is None:
        # Only the leader is asked: it knows in which order its own children must stop.
        child.send_signal(first)
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            signal_group(child.pid, signal.SIGKILL)
    signal_group(child.pid, signal.SIGKILL)
    return child.wait()


def marked(mark: str) -> list[Identity]:
    """Every process, ourselves excepted, whose environment carries the mark. Linux only, else empty."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            found.append(identify(pid))
    return [identity for identity in found if identity.started]


def end_all(processes: Iterable[Identity], patience: float = 8) -> list[Identity]:
    """Ask processes to end, kill those that do not; returns those that had to be killed."""
    left = [process for process in processes if process.alive]
    for process in left:
        # Postgres would wait for its clients on SIGTERM, for ever.
        _send(process, signal.SIGINT if _name(process.pid) == "postgres" else signal.SIGTERM)
    deadline = time.monotonic() + patience
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [process for process in left if process.alive]
    for process in left:
        _send(process, signal.SIGKILL)
    return left


def _send(process: Identity, number: signal.Signals) -> None:
    try:
        if process.alive:
            os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
