"""Webs and runners killed in mid-stream: nothing acknowledged is lost, nothing comes twice, readers wait a moment."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from infra.local.layout import REPOSITORY
from tests.faults import killing
from tests.faults.killing import Report
from tests.stack import Program, Stack

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]
FULL = os.environ.get("PARLEY_FAULTS") == "full"
KILLS, SLEEPS = (50, 6) if FULL else (5, 1)
RESUME_GOAL_S = 3.0
OUTPUT = REPOSITORY / "build" / "bench" / "kill.json"


def figures(report: Report) -> dict[str, dict[str, object]]:
    values = {
        "kill_lost": (len(report.lost), "", 0),
        "kill_duplicated": (len(report.duplicated), "", 0),
        "kill_resume_p95_s": (round(report.resume_p95, 2), "s", RESUME_GOAL_S),
    }
    return {
        name: {"value": value, "unit": unit, "goal": goal, "ok": value <= goal}
        for name, (value, unit, goal) in values.items()
    }


def test_kills_of_webs_and_runners_under_twenty_streams(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(webs=2, runners=2, settings="tests.live_settings", slots=256)
    report = killing.run(stack, killing.plan(KILLS, SLEEPS))
    print(f"\n{report}")
    found = figures(report)
    if FULL:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    assert report.kills == KILLS
    assert report.problems == []
    assert report.lost == []
    assert report.duplicated == []
    assert len(report.resumed) >= KILLS, "the kills did hit readers"
    assert report.notes["reconstructed"] >= 1
    assert not FULL or report.resume_p95 <= RESUME_GOAL_S, f"{report}"


def test_the_check_goes_red_without_fencing(start_stack: Callable[..., Stack]) -> None:
    stack = start_stack(webs=2, runners=0, settings="tests.live_settings", slots=256)
    for number in (1, 2):
        stack.launch(f"runner-{number}", ("-m", "tests.faults.unfenced"), is_ready)
    report = killing.run(stack, killing.Plan(("sleep", "sleep"), streams=8))
    print(f"\n{report}")
    assert report.duplicated, f"two runners wrote one answer and nobody noticed\n{report}"


def is_ready(runner: Program) -> bool:
    return runner.printed("runner.ready")
