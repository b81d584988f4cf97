"""Keeping processes running: readiness, restarts, orderly stops, leftovers. Real processes, no real pieces."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from infra.local import keeper as keeper_module
from infra.local import processes
from infra.local.keeper import Keeper, Piece
from infra.local.layout import REPOSITORY
from infra.local.logs import LARGEST, LogHub, RotatingLog
from infra.local.processes import MARK, Identity, identify, marked


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LogHub]:
    made = LogHub(tmp_path, muted=True)
    yield made
    made.close()


def piece(script: str, tmp_path: Path, **options: object) -> Piece:
    environment = {"PATH": os.environ["PATH"], MARK: f"test-{tmp_path.name}-{os.getpid()}"}
    return Piece("thing", ("/bin/sh", "-c", script), environment, tmp_path, **options)  # type: ignore[arg-type]


Keep = Callable[..., Keeper]


@pytest.fixture
async def keep(tmp_path: Path, hub: LogHub) -> AsyncIterator[Keep]:
    """Makes keepers of shell scripts; whatever a failed test left running is stopped."""
    made: list[Keeper] = []

    def make(script: str, **options: object) -> Keeper:
        made.append(Keeper(piece(script, tmp_path, **options), hub, lambda: None))
        return made[-1]

    yield make
    for keeper in made:
        if keeper.state not in ("waiting", "stopped"):
            await keeper.stop(hurry=True)


async def until(true: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


async def test_it_is_ready_when_its_probe_says_so(tmp_path: Path, keep: Keep) -> None:
    states: list[str] = []
    kept = keep("sleep 0.3; touch ready; exec sleep 60", probe=(tmp_path / "ready").exists)
    kept.start()
    assert not await kept.wait_ready(0.1)
    assert await kept.wait_ready(5)
    states.append(kept.state)
    await kept.stop()
    states.append(kept.state)
    assert states == ["ready", "stopped"]


async def test_it_is_ready_when_it_prints_the_words(keep: Keep) -> None:
    kept = keep("sleep 0.2; echo I am ready to serve; exec sleep 60", ready_words=b"ready to")
    kept.start()
    assert not await kept.wait_ready(0.1)
    assert await kept.wait_ready(5)
    await kept.stop()


async def test_one_that_ends_is_started_again_with_growing_pauses(tmp_path: Path, keep: Keep) -> None:
    kept = keep("echo once >> starts; exit 7")
    kept.start()
    await until(lambda: kept.restarts >= 2)
    await kept.stop()
    starts = (tmp_path / "starts").read_text().count("once")
    await asyncio.sleep(0.8)
    assert (tmp_path / "starts").read_text().count("once") == starts
    log = (tmp_path / "thing.log").read_text()
    assert "ended with exit code 7; starting it again in 0.5 s" in log
    assert "ended with exit code 7; starting it again in 1.0 s" in log


async def test_one_that_was_killed_is_back_within_a_second(keep: Keep) -> None:
    kept = keep("exec sleep 60")
    kept.start()
    await until(lambda: kept.state == "ready")
    assert kept.identity
    first = kept.identity
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: kept.identity != first and kept.state == "ready")
    assert kept.restarts == 1
    await kept.stop()


async def test_one_that_ignores_the_request_to_stop_is_killed_with_its_children(tmp_path: Path, keep: Keep) -> None:
    script = "trap '' TERM; (trap '' TERM; exec sleep 61) & echo $! > child; touch ready; while :; do sleep 0.1; done"
    kept = keep(script, probe=(tmp_path / "ready").exists, stop_within=0.3)
    kept.start()
    assert await kept.wait_ready(5)
    child = identify(int((tmp_path / "child").read_text()))
    assert child.alive
    await kept.stop()
    await until(lambda: not child.alive)
    assert "was killed" in (tmp_path / "thing.log").read_text()


async def test_a_program_that_is_missing_is_reported_and_tried_again(tmp_path: Path, hub: LogHub) -> None:
    kept = Keeper(
        Piece("thing", ("no-such-program",), {"PATH": os.environ["PATH"]}, tmp_path),
        hub,
        lambda: None,
    )
    kept.start()
    await until(lambda: kept.restarts >= 1)
    await kept.stop()
    assert "cannot start no-such-program" in (tmp_path / "thing.log").read_text()


async def test_a_stop_during_a_pause_does_not_wait_for_its_end(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper_module, "FIRST_PAUSE", 60.0)
    kept = keep("exit 1")
    kept.start()
    await until(lambda: kept.state == "failing")
    began = time.monotonic()
    await kept.stop()
    assert time.monotonic() - began < 2


async def test_very_long_lines_are_cut_and_lines_stay_whole(tmp_path: Path, keep: Keep) -> None:
    kept = keep("head -c 100000 /dev/zero | tr '\\0' x; echo; echo 'a line'; exec sleep 60")
    kept.start()
    log = tmp_path / "thing.log"
    await until(lambda: log.exists() and "\na line\n" in log.read_text())
    await kept.stop()
    assert max(map(len, log.read_text().splitlines())) <= 16_384


def test_logs_rotate_and_old_ones_go(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "thing.log")
    for _ in range(6):
        log.write(b"x" * (LARGEST + 1))
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "thing.log",
        "thing.log.1",
        "thing.log.2",
        "thing.log.3",
    ]


def test_an_identity_is_not_that_of_a_later_process_with_the_same_id() -> None:
    me = identify(os.getpid())
    assert me.alive
    assert not Identity(me.pid, "1").alive
    ending = subprocess.Popen(["sleep", "0.2"])
    identity = identify(ending.pid)
    assert identity.alive
    # Ended, but nobody has asked for its status: the id is still taken.
    os.waitid(os.P_PID, ending.pid, os.WEXITED | os.WNOWAIT)
    assert not identity.alive
    assert not identify(ending.pid).alive
    ending.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends children with their parent")
def test_nothing_outlives_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    """A parent that starts a process and is killed with SIGKILL takes the process along."""
    mark = f"orphans-{os.getpid()}"
    script = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from infra.local import processes\n"
        f"env = {{'PATH': os.environ['PATH'], '{MARK}': '{mark}'}}\n"
        f"processes.spawn(['sleep', '67'], env=env, cwd=Path('{tmp_path}'), output=2)\n"
        "time.sleep(1)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY)
    deadline = time.monotonic() + 5
    while not marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked(mark)
    assert parent.wait(10) == -signal.SIGKILL
    deadline = time.monotonic() + 5
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert marked(mark) == []


def test_leftovers_are_found_by_their_mark_and_ended(tmp_path: Path) -> None:
    mark = f"leftovers-{os.getpid()}"
    stubborn = subprocess.Popen(
        ["/bin/sh", "-c", "trap '' TERM; touch ready; while :; do sleep 0.1; done"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], MARK: mark},
    )
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    found = marked(mark)
    assert stubborn.pid in {process.pid for process in found}
    killed = processes.end_all([identify(stubborn.pid)], patience=0.5)
    assert [process.pid for process in killed] == [stubborn.pid]
    assert stubborn.wait(5) == -signal.SIGKILL
