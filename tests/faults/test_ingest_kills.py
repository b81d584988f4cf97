"""Workers killed while documents are read: nothing accepted is lost or doubled, and work is soon taken up again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import settings

from apps.files.models import Passage, Posting
from apps.files.pipeline import sweep
from infra.local.layout import REPOSITORY
from tests.factories import documents
from tests.factories.files import Caller, object_store
from tests.factories.workers import Worker
from tests.faults import ingest_killing
from tests.faults.ingest_killing import Plan, Report

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True), pytest.mark.timeout(3600)]
FULL = os.environ.get("PARLEY_FAULTS") == "full"
# The full form has the lease, the sweep and the patience of the product.
PLAN = (
    Plan(files=500, kills=100, lease_s=30, sweep_s=10, window=24)
    if FULL
    else Plan(files=16, kills=6, lease_s=2, sweep_s=0.5, whole=3)
)
REDELIVERY_GOAL_S = 70.0
OUTPUT = REPOSITORY / "build" / "bench" / "ingest_kills.json"


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """The store is the one that workers use: below the session's state folder."""
    if not FULL:
        monkeypatch.setattr(sweep, "PATIENCE", sweep.PATIENCE / 20)
    with object_store(Path(settings.OBJECTS_DIR)) as base:
        yield Caller(base)


def figures(report: Report) -> dict[str, dict[str, object]]:
    values = {
        "ingest_kill_lost": (len(report.lost), "", 0),
        "ingest_kill_doubled": (len(report.doubled), "", 0),
        "ingest_redelivery_s": (round(report.redelivery_s, 1), "s", REDELIVERY_GOAL_S),
    }
    return {
        name: {"value": value, "unit": unit, "goal": goal, "ok": value <= goal}
        for name, (value, unit, goal) in values.items()
    }


def started(folder: Path, number: int, *, lease_s: float, app: str = "apps.config.celery:app") -> Worker:
    return Worker(folder / f"worker{number}.log", lease_s=lease_s, app=app)


def test_kills_of_workers_lose_and_double_nothing(caller: Caller, tmp_path: Path) -> None:
    report, sent = ingest_killing.run(caller, PLAN, partial(started, tmp_path, lease_s=PLAN.lease_s))
    ingest_killing.check(sent, report)
    print(f"\n{report}")
    if FULL:
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        OUTPUT.write_text(json.dumps(figures(report), indent=1) + "\n")
    assert (report.kills, len(sent)) == (PLAN.kills, PLAN.files)
    assert report.waits, "the kills did hit work"
    assert report.lost == []
    assert report.doubled == []
    assert not FULL or report.redelivery_s <= REDELIVERY_GOAL_S


def test_the_check_goes_red_when_nobody_takes_over(caller: Caller, tmp_path: Path) -> None:
    plan = Plan(files=6, kills=4, lease_s=2, sweep_s=0.5, patience_s=20)
    start = partial(started, tmp_path, lease_s=2, app="tests.faults.no_takeover:app")
    report, sent = ingest_killing.run(caller, plan, start)
    ingest_killing.check(sent, report)
    print(f"\n{report}")
    assert report.lost, "what a killed worker held was never taken up, and nobody noticed"


def test_the_check_goes_red_over_what_is_there_twice(caller: Caller) -> None:
    file_id = caller.ingest("a.pdf", documents.short_pdf(ingest_killing.PAGES))["id"]

    def doubled() -> list[str]:
        report = Report()
        ingest_killing.check([file_id], report)
        assert report.lost == []
        return report.doubled

    assert doubled() == []
    posting = Posting.objects.filter(file_id=file_id).values().first()
    assert posting is not None
    again = Posting(**{**posting, "lexeme": "again"})
    again.save(force_insert=True)
    assert doubled() == [f"{file_id}: postings that do not add up"]
    Posting.objects.filter(file_id=file_id, lexeme="again").delete()
    passage = Passage.objects.filter(file_id=file_id).first()
    assert passage is not None
    passage.id, passage.ordinal = UUID(int=7), 1
    passage.save(force_insert=True)
    assert len(doubled()) == 2
