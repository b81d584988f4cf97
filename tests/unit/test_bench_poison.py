"""The judge of the poison bench: red when a worker dies, a bound is off, a file has no end, a neighbour suffers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import pytest

from apps.files.types import kind_of
from tests.bench.poison.corpus import corpus
from tests.bench.poison.judge import Outcome, figures, table
from tests.bench.poison.mutants import SEEDS, mutants
from tests.bench.poison.watch import Watch, children

GOOD = (Outcome("a.pdf", "ready", "", 1.0), Outcome("b.pdf", "failed", "damaged", 2.0))
_WORKER = (
    "import subprocess, sys; [subprocess.Popen([sys.executable, '-c', sys.argv[1]]) for _ in '12'][0].wait(); input()"
)


def missed(*outcomes: Outcome, deaths: int = 0, peak_bytes: int = 1 << 29, failures: int = 0) -> set[str]:
    found = figures(outcomes or GOOD, deaths=deaths, peak_bytes=peak_bytes, neighbours=9, failures=failures)
    return {name for name, entry in found.items() if not entry["ok"]}


def test_the_judge_is_green_when_nothing_happened() -> None:
    assert missed() == set()


@pytest.mark.parametrize(
    ("red", "harm"),
    [
        ("poison_worker_deaths", lambda: missed(deaths=1)),
        ("poison_rss_gib", lambda: missed(peak_bytes=(1 << 30) + (1 << 21))),
        ("poison_neighbour_failures", lambda: missed(failures=1)),
        ("poison_terminal_p100_s", lambda: missed(*GOOD, Outcome("c.pdf", "failed", "timed_out", 131.0))),
        ("poison_unfinished", lambda: missed(*GOOD, Outcome("c.pdf", "unfinished", "", 1.0))),
    ],
)
def test_the_judge_is_red(red: str, harm: Callable[[], set[str]]) -> None:
    assert harm() == {red}


@pytest.fixture
def worker() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """A process with a pool of two that do as they are told."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-c", _WORKER, code], stdin=subprocess.PIPE))
        until(lambda: len(children(started[0].pid)) == 2)
        return started[0]

    yield start
    for process in started:
        for pid in children(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def looked(watch: Watch) -> Watch:
    watch.look()
    return watch


def test_a_death_in_the_pool_is_seen(worker: Callable[[str], subprocess.Popen[bytes]]) -> None:
    process = worker("input() if 0 else __import__('time').sleep(60)")
    watch = Watch([process.pid])
    watch.look()
    assert watch.deaths == 0
    os.kill(children(process.pid)[0], signal.SIGKILL)
    until(lambda: looked(watch).deaths == 1)


def test_memory_without_a_bound_is_seen(worker: Callable[[str], subprocess.Popen[bytes]]) -> None:
    process = worker("x = b'x' * (200 << 20); del x; __import__('time').sleep(60)")
    watch = Watch([process.pid])
    until(lambda: looked(watch).peak_bytes > 190 << 20)


def test_there_are_enough_hostile_files_of_every_kind() -> None:
    poisons = corpus()
    assert len(poisons) >= 120
    names = [poison.name for poison in poisons]
    assert len(set(names)) == len(names)
    kinds = {kind_of(name) for name in names}
    assert None not in kinds
    assert {kind_of(f"x.{ending}") for ending in SEEDS} <= kinds | {"odp"}


def test_mutants_are_the_same_each_time_and_differ_from_one_another() -> None:
    first, second = ([poison.make() for poison in mutants(230)] for _ in "12")
    assert first == second
    assert len(set(first)) > 200
    assert {PurePosixPath(poison.name).suffix[1:] for poison in mutants(230)} == set(SEEDS)


def test_the_table_counts_ends_by_ending() -> None:
    assert table(GOOD).splitlines() == ["  .pdf   ready 1, damaged 1", "  all    ready 1, damaged 1"]
