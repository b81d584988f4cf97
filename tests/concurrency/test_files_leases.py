"""Many workers at one file: each stage and page is done by one of them, and a dead one is followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Event
from typing import TypeVar
from uuid import UUID

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from apps.files import tasks
from apps.files.models import File, FileStage, Page, PageState, StageName, StageState
from apps.files.pipeline import leases, progress
from apps.files.pipeline import sweep as sweeping
from apps.files.pipeline.leases import LeaseLost
from tests.factories import documents
from tests.factories.files import Caller, drain, hurry, object_store

T = TypeVar("T")
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with object_store(tmp_path) as base:
        yield Caller(base)


def at_once(count: int, work: Callable[[int], T]) -> list[T]:
    barrier = Barrier(count)

    def one(number: int) -> T:
        try:
            barrier.wait(10)
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_one_of_many_workers_gets_a_stage(caller: Caller) -> None:
    file_id = UUID(caller.upload("a.txt", b"text")["id"])
    for _ in range(5):
        claims = at_once(8, lambda _: leases.claim(file_id, StageName.VERIFY))
        assert sum(claim is not None for claim in claims) == 1
        hurry(file_id)


def test_pages_for_recognition_are_shared_out(caller: Caller) -> None:
    file = File.objects.get(id=caller.upload("a.pdf", documents.short_pdf(1))["id"])
    Page.objects.bulk_create(
        Page(file=file, organization_id=file.organization_id, number=number, state=PageState.OCR)
        for number in range(1, 21)
    )
    numbers = at_once(8, lambda _: [claim.number for _ in range(4) if (claim := leases.claim_page(file.id))])
    taken = [number for some in numbers for number in some]
    assert len(taken) == len(set(taken)), "no page twice"
    while claim := leases.claim_page(file.id):  # those that were passed over because their row was locked just then
        taken.append(claim.number)
    assert sorted(taken) == list(range(1, 21))


def test_the_same_content_verified_at_once_is_read_by_one(caller: Caller) -> None:
    body = documents.short_pdf(1)
    ids = [caller.upload(f"{n}.pdf", body)["id"] for n in range(6)]
    at_once(6, lambda number: tasks.verify(ids[number]))
    firsts = File.objects.filter(same_as_id=None).values_list("id", flat=True)
    assert len(firsts) == 1
    assert set(File.objects.exclude(same_as_id=None).values_list("same_as_id", flat=True)) == set(firsts)
    drain(firsts[0])
    for file_id in ids:
        hurry(UUID(file_id))
        drain(UUID(file_id))
    assert set(File.objects.values_list("state", flat=True)) == {"ready"}


def test_a_worker_whose_lease_ran_out_is_fenced_out(caller: Caller) -> None:
    file_id = UUID(caller.upload("a.txt", b"text")["id"])
    slow = leases.claim(file_id, StageName.VERIFY)
    assert slow is not None
    hurry(file_id)
    fast = leases.claim(file_id, StageName.VERIFY)
    assert fast is not None
    assert (fast.attempt, fast.failures) == (2, 1)
    for write in (lambda: leases.retry(slow), lambda: leases.postpone(slow, 1), lambda: progress.fail(slow, "x", "x.")):
        with pytest.raises(LeaseLost):
            write()
    stage = FileStage.objects.get()
    assert (stage.state, stage.attempt) == (StageState.RUNNING, 2)
    with leases.fence(fast):
        leases.finish(fast)


def test_a_lease_is_renewed_while_its_holder_works(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT_S", 0.05)
    file_id = UUID(caller.upload("a.txt", b"text")["id"])
    held = leases.claim(file_id, StageName.VERIFY)
    assert held is not None
    FileStage.objects.update(lease_until=timezone.now() + timedelta(seconds=1))
    with leases.kept(held) as lost:
        assert not lost.wait(0.5)
        stage = FileStage.objects.get()
        assert stage.lease_until is not None
        assert stage.lease_until > timezone.now() + leases.LEASE / 2
        FileStage.objects.update(attempt=9)
        assert lost.wait(5), "losing it is noticed"


def test_a_file_that_kills_its_workers_is_given_up(caller: Caller) -> None:
    file_id = UUID(caller.upload("a.txt", b"text")["id"])
    for _ in range(leases.MAX_FAILURES):
        assert leases.claim(file_id, StageName.VERIFY) is not None
        hurry(file_id)  # and is never heard of again
    tasks.verify(str(file_id))
    file = caller.file(str(file_id))
    assert (file["state"], file["error"]["code"]) == ("failed", "crashed")


def test_a_page_that_kills_its_workers_fails_and_the_others_stay(caller: Caller) -> None:
    file_id = UUID(caller.upload("a.pdf", documents.mixed_pdf(2, scanned=[2], facts=[]))["id"])
    tasks.verify(str(file_id))
    tasks.parse(str(file_id))
    for _ in range(leases.MAX_PAGE_FAILURES + 1):
        assert leases.claim_page(file_id) is not None
        Page.objects.filter(state=PageState.OCR).update(lease_until=timezone.now() - leases.LEASE)
    tasks.ocr(str(file_id))
    file = caller.file(str(file_id))
    assert (file["state"], file["pages_ready"], file["pages_failed"]) == ("partial", 1, [2])
    assert caller.get(f"/{file_id}/pages/2").json()["error"]["code"] == "crashed"


def test_a_row_that_a_frozen_worker_holds_does_not_stop_the_sweep(caller: Caller) -> None:
    held, other = (UUID(caller.upload(f"{name}.txt", b"text")["id"]) for name in "ab")
    FileStage.objects.update(hinted_at=None, due_at=timezone.now())
    locked, swept = Barrier(2), Barrier(2)

    def work(number: int) -> dict[str, int] | None:
        if number == 0:
            with transaction.atomic():
                FileStage.objects.select_for_update().get(file_id=held)
                locked.wait(10)
                swept.wait(20)
            return None
        locked.wait(10)
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 3000")
        done = sweeping.sweep()
        swept.wait(20)
        return done

    _, done = at_once(2, work)
    assert done is not None
    assert done["stages"] == 1
    hinted = dict(FileStage.objects.values_list("file_id", "hinted_at"))
    assert hinted[held] is None
    assert hinted[other] is not None


@pytest.mark.parametrize("stage", [StageName.PARSE, StageName.EMBED])
def test_a_worker_that_dies_when_a_stage_ends_leaves_it_to_the_next(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, stage: StageName
) -> None:
    file_id = UUID(caller.upload("a.pdf", documents.short_pdf(2))["id"])
    with monkeypatch.context() as patch:
        conclude = progress.conclude

        def dies(held: leases.Claim) -> None:
            conclude(held)
            if held.name == stage:
                raise Killed

        patch.setattr(progress, "conclude", dies)
        with pytest.raises(Killed):
            drain(file_id)
    held = FileStage.objects.get(name=stage)
    assert held.state == StageState.RUNNING, "what was not decided is not ended either"
    hurry(file_id)
    drain(file_id)
    assert File.objects.values_list("state", "searchable").get() == ("ready", "hybrid")


class Killed(BaseException):
    pass


def test_a_file_is_deleted_while_a_worker_adds_a_page(caller: Caller) -> None:
    file = File.objects.get(id=caller.upload("a.pdf", documents.short_pdf(2))["id"])
    tasks.verify(str(file.id))
    held = leases.claim(file.id, StageName.PARSE)
    assert held is not None
    locked = Event()

    def add_page(number: int) -> None:
        if number == 0:
            with leases.fence(held):
                locked.set()
                time.sleep(0.3)  # meanwhile the other thread asks for the rows
                Page.objects.create(file=file, organization_id=file.organization_id, number=1)
        else:
            assert locked.wait(10)
            assert caller.delete(f"/{file.id}").status_code == 204

    at_once(2, add_page)
    assert File.objects.values_list("state", flat=True).get() == "deleted"
    with pytest.raises(LeaseLost), leases.fence(held):
        pass
