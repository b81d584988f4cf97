"""Workers killed in the middle of reading: the next one goes on, no page is lost, doubled or read again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection

from apps.files import tasks
from apps.files.models import File, FileStage, FileState, Page, Passage, Posting
from apps.files.pipeline import sweep
from tests.factories import documents
from tests.factories.files import Caller, object_store
from tests.factories.workers import Worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(240)]
PAGES = 240


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """The store is the one that workers use: below the session's state folder."""
    monkeypatch.setattr(sweep, "PATIENCE", sweep.PATIENCE / 20)
    with object_store(Path(settings.OBJECTS_DIR)) as base:
        yield Caller(base)


def until(condition: Callable[[], bool], what: str, *, seconds: float = 90.0, sweeping: bool = False) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for: {what}"
        if sweeping:
            tasks.sweep()
        time.sleep(0.02)


def freeze(worker: Worker) -> None:
    """Suspend a worker outside of its transactions: in one it would hold a row until the server ends its session."""
    inside = "SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    for _ in range(200):
        for process in worker.family():
            process.suspend()
        with connection.cursor() as cursor:
            cursor.execute(f"{inside} AND datname = current_database()")
            if cursor.fetchone()[0] == 0:
                return
        for process in worker.family():
            process.resume()
        time.sleep(0.01)
    raise AssertionError("the worker was in a transaction whenever it was looked at")


def has_pages(file_id: str, count: int) -> bool:
    return Page.objects.filter(file_id=file_id).count() >= count


def state(file_id: str) -> str:
    return File.objects.get(id=file_id).state


def assert_whole(file_id: str, pages: int) -> None:
    """Every page once, each with its passages, and every posting belongs to a passage that is there."""
    assert list(Page.objects.filter(file_id=file_id).order_by("number").values_list("number", flat=True)) == list(
        range(1, pages + 1)
    )
    assert set(Page.objects.filter(file_id=file_id).values_list("state", flat=True)) == {"ready"}
    assert Page.objects.filter(file_id=file_id, indexed_at=None).count() == 0
    passages = Passage.objects.filter(file_id=file_id)
    assert set(passages.values_list("page_number", flat=True)) == set(range(1, pages + 1))
    assert passages.filter(ordinal=0).count() == pages
    assert set(Posting.objects.filter(file_id=file_id).values_list("passage_id", flat=True)) == set(
        passages.values_list("id", flat=True)
    )


def test_a_worker_killed_in_mid_parse_loses_and_doubles_no_page(caller: Caller, tmp_path: Path) -> None:
    file_id = caller.upload("a.pdf", documents.short_pdf(PAGES))["id"]
    stored: set[UUID] = set()
    for round_ in (1, 2):
        with Worker(tmp_path / f"worker{round_}.log") as worker:
            enough = len(stored) + 15
            until(partial(has_pages, file_id, enough), f"{enough} pages in round {round_}", sweeping=round_ > 1)
            worker.kill9()
        now = set(Page.objects.filter(file_id=file_id).values_list("id", flat=True))
        assert stored < now, "what a killed worker had stored stays, and is not read again"
        stored = now
    assert len(stored) < PAGES, "killed before the end each time"
    stage = FileStage.objects.get(file_id=file_id, name="parse")
    assert (stage.state, stage.attempt) == ("running", 2)

    with Worker(tmp_path / "last.log"):
        until(lambda: state(file_id) == FileState.READY, "the file to be ready", sweeping=True)
    assert stored <= set(Page.objects.filter(file_id=file_id).values_list("id", flat=True))
    assert_whole(file_id, PAGES)


@pytest.mark.faults
def test_a_killed_pool_process_is_followed_by_the_next(caller: Caller, tmp_path: Path) -> None:
    file_id = caller.upload("a.pdf", documents.mixed_pdf(4, scanned=(2, 3), facts=()))["id"]
    with Worker(tmp_path / "worker.log") as worker:
        until(lambda: Page.objects.filter(file_id=file_id, state="ocr", attempt=1).exists(), "recognition to begin")
        worker.kill_pool()
        until(lambda: state(file_id) == FileState.READY, "the file to be ready", seconds=150, sweeping=True)
    assert_whole(file_id, 4)
    assert sorted(Page.objects.filter(source="ocr").values_list("number", flat=True)) == [2, 3]


@pytest.mark.faults
def test_a_worker_that_was_frozen_and_wakes_up_writes_nothing(caller: Caller, tmp_path: Path) -> None:
    file_id = caller.upload("a.pdf", documents.short_pdf(PAGES))["id"]
    with Worker(tmp_path / "frozen.log") as frozen:
        until(lambda: Page.objects.filter(file_id=file_id).count() >= 5, "the first pages")
        freeze(frozen)
        with Worker(tmp_path / "other.log"):
            until(lambda: state(file_id) == FileState.READY, "another worker to finish", sweeping=True)
            for process in frozen.family():
                process.resume()
            before = set(Page.objects.filter(file_id=file_id).values_list("id", "indexed_at"))
            until(lambda: b"files.lease_lost" in (tmp_path / "frozen.log").read_bytes(), "it to notice")
    assert set(Page.objects.filter(file_id=file_id).values_list("id", "indexed_at")) == before
    assert_whole(file_id, PAGES)
