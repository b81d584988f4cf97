"""The simulator plays real scripts: its runs obey them, and the same load gives the same story."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from django.conf import settings

from inference import simulate
from inference.admission import Tier
from inference.admission.policy import DEFAULT
from inference.admission.verbs import Verbs
from inference.pipe import Pipe
from inference.simulate import (
    Run,
    Simulation,
    goodput,
    jain,
    least_jain,
    levels_chosen,
    percentile,
    served,
    tier_shares,
)
from inference.simulated_load import Speed, people, replicas
from tests.factories.admission import an_ask, connect, leaks

SPEED = Speed(token_s=0.01)
CAPACITY = 2 * 4 / SPEED.mean_s


@pytest.fixture
async def pipe() -> AsyncIterator[Pipe]:
    made = Pipe(settings.REDIS_URL)
    yield made
    await made.close()


async def play(pipe: Pipe, load: float, seed: int = 1, *, count: int = 2, levels: int = 1) -> list[Run]:
    sources = people(load * CAPACITY, 0.0, 60.0, a_tier=5)
    served_by = replicas(count, 4, levels)
    return await Simulation(Verbs(pipe, "simulation", DEFAULT), DEFAULT, served_by, SPEED, sources, seed=seed).play()


def story(runs: list[Run]) -> list[tuple[object, ...]]:
    return [(run.ask.ticket, run.level, run.refused, run.granted, run.ended, run.estimate_s) for run in runs]


async def test_every_run_ends_once_within_what_the_replicas_have(pipe: Pipe) -> None:
    runs = await play(pipe, 4.0)
    assert leaks(connect(settings.REDIS_URL)) == []
    assert all((run.ended is None) == bool(run.refused) for run in runs)
    ended = [run for run in runs if run.ended is not None]
    busy = most = 0
    for _, change in sorted([(run.ended, -1) for run in ended] + [(run.granted, 1) for run in ended]):
        busy += change
        most = max(most, busy)
    assert most == 8
    assert {run.refused for run in runs} >= {"", "wait_too_long"}
    assert goodput(runs, 20, 60) > 0.8 * CAPACITY * (sum(SPEED.prompt) + sum(SPEED.answer)) / 2


async def test_the_same_seed_tells_the_same_story(pipe: Pipe) -> None:
    first = story(await play(pipe, 2.0))
    assert story(await play(pipe, 2.0)) == first
    assert story(await play(pipe, 2.0, seed=2)) != first


async def test_questions_are_routed_and_what_is_chosen_has_its_own_line(pipe: Pipe) -> None:
    runs = await play(pipe, 2.0, count=3, levels=3)
    assert {run.ask.model for run in runs} == {f"level-{level}" for level in levels_chosen(runs)}
    assert levels_chosen(runs) == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3}, abs=0.1)
    by_text = {run.text: run.level for run in runs if run.asked < 2}
    assert len(by_text) > 5
    assert {level for text, level in by_text.items() if text.startswith("Tell me")} == {3}
    assert all(run.routed_in_s > 0 for run in runs)
    assert leaks(connect(settings.REDIS_URL)) == []


async def test_shares_follow_the_weights_in_an_overload(pipe: Pipe) -> None:
    runs = await play(pipe, 6.0)
    inside = list(served(runs, 20, 60))
    shares = tier_shares(inside)
    for tier, weight in DEFAULT.tiers.items():
        assert shares[Tier(tier)] == pytest.approx(weight / 7, abs=0.05)
    assert least_jain(runs, inside) > 0.8


def test_the_measures() -> None:
    source = people(1.0, 0.0, 1.0)[0]
    runs = [Run(source, an_ask(str(n), user=f"u{n}"), 100, 1.0, 0.0, granted=1.0, ended=2.0) for n in range(4)]
    assert goodput(runs, 2.0, 4.0) == 200
    assert goodput(runs, 2.1, 4.0) == 0
    assert jain(runs, ["u0", "u1", "u2", "u3"]) == 1
    assert jain(runs[:1], ["u0", "u1", "u2", "u3"]) == 0.25
    assert tier_shares([replace_tier(runs[0]), *runs[1:]])[Tier.PLUS] == 0.25
    assert [percentile([3, 1, 2], share) for share in (0.0, 0.5, 0.99)] == [1, 2, 3]


def replace_tier(run: Run) -> Run:
    return Run(run.source, replace(run.ask, tier=Tier.PLUS), run.used, run.lasts_s, run.asked)


async def test_a_database_with_something_in_it_is_left_alone(pipe: Pipe) -> None:
    await pipe.call("SET", "precious", 1)
    with pytest.raises(SystemExit, match="not empty"):
        await simulate.report(settings.REDIS_URL, 2, 4, 1, 1.0, 5.0)
    assert await pipe.call("GET", "precious") == b"1"


def test_the_command_prints_what_came_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["simulate", "--redis-url", settings.REDIS_URL, "--seconds", "9", "--load", "3", "--levels", "2"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert simulate.main() == 0
    said = capsys.readouterr().out
    assert "3 times what 2 replicas with 8 slots can do" in said
    assert "Jain's index" in said
    assert re.search(r"routing \d+ us, admission \d+ us", said)
    assert re.search(r"levels chosen +1: 0\.\d+, 2: 0\.\d+", said)
