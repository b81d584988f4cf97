"""Reading that is stopped by its owner, in every stage; what was read stays, and the rest can be read later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from apps.files import extraction, tasks
from apps.files.extraction import PageRecord
from apps.files.models import File, FileStage, Page, Passage
from apps.files.pipeline import cancellation
from apps.files.selectors import seconds_left
from tests.factories import documents
from tests.factories.files import Caller, drain, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with object_store(tmp_path / "objects") as base:
        yield Caller(base)


def stop_after(monkeypatch: pytest.MonkeyPatch, caller: Caller, file_id: str, pages: int) -> None:
    """Cancel over the API once the worker has read that many pages."""
    real = extraction.run

    def run(*arguments: object, on_page: object, **more: object) -> object:
        def each(record: PageRecord) -> None:
            if record.number == pages + 1:
                assert caller.post(f"/{file_id}/cancel").status_code == 200
            on_page(record)  # type: ignore[operator]

        return real(*arguments, on_page=each, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(extraction, "run", run)


def test_a_file_that_is_read_halfway_stays_usable_so_far(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    file_id = caller.upload("a.pdf", documents.short_pdf(6))["id"]
    stop_after(monkeypatch, caller, file_id, 2)
    drain(UUID(file_id))

    file = caller.file(file_id)
    assert (file["state"], file["pages_ready"], file["pages_failed"]) == ("partial", 2, [3, 4, 5, 6])
    assert file["error"] == {"code": "cancelled", "message": "Reading was stopped: pages 3, 4, 5, 6 were not read."}
    assert file["seconds_left"] is None
    pages = caller.get(f"/{file_id}/pages").json()["results"]
    assert [page["state"] for page in pages] == ["ready"] * 2 + ["failed"] * 4
    assert pages[2]["error"]["code"] == "cancelled"
    assert set(Passage.objects.filter(file_id=file_id).values_list("page_number", flat=True)) == {1, 2}

    monkeypatch.undo()
    kept = set(Page.objects.filter(state="ready").values_list("id", flat=True))
    assert caller.post(f"/{file_id}/retry").json()["state"] == "processing"
    drain(UUID(file_id))
    file = caller.file(file_id)
    assert (file["state"], file["pages_ready"], file["error"]) == ("ready", 6, None)
    assert kept < set(Page.objects.values_list("id", flat=True)), "only what had not been read was read"


def test_before_anything_was_read(caller: Caller) -> None:
    file_id = caller.upload("a.pdf", documents.short_pdf(2))["id"]
    answer = caller.post(f"/{file_id}/cancel").json()
    assert (answer["state"], answer["stage"], answer["error"]["code"]) == ("failed", None, "cancelled")
    tasks.verify(file_id)
    assert caller.file(file_id)["state"] == "failed"
    assert not Page.objects.exists()
    assert caller.post(f"/{file_id}/retry").json()["state"] == "processing"
    drain(UUID(file_id))
    assert caller.file(file_id)["state"] == "ready"


def test_pages_that_wait_for_recognition_are_not_waited_for(caller: Caller) -> None:
    file_id = caller.upload("a.pdf", documents.mixed_pdf(3, scanned=[2], facts=[]))["id"]
    tasks.verify(file_id)
    tasks.parse(file_id)
    answer = caller.post(f"/{file_id}/cancel").json()
    assert (answer["state"], answer["pages_ready"], answer["pages_failed"]) == ("partial", 2, [2])
    assert answer["error"]["message"] == "Reading was stopped: page 2 was not read."
    tasks.ocr(file_id)
    assert caller.file(file_id)["state"] == "partial"


@pytest.mark.parametrize("state", ["ready", "failed", "uploading"])
def test_nothing_to_stop(caller: Caller, state: str) -> None:
    if state == "uploading":
        file_id = caller.start("a.txt", 10)["file"]["id"]
    else:
        file_id = caller.ingest("a.txt", b"Some words. " * 9 if state == "ready" else b"\xff" * 99)["id"]
    assert caller.file(file_id)["state"] == state
    answer = caller.post(f"/{file_id}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_only_its_owner_may_stop_it(caller: Caller) -> None:
    file_id = caller.upload("a.txt", documents.text())["id"]
    stranger = Caller()
    for action in ("cancel", "retry"):
        for id in (file_id, "0190a5a0-0000-7000-8000-000000000000"):
            assert stranger.post(f"/{id}/{action}").status_code == 404
    assert caller.file(file_id)["state"] == "processing"


def test_a_stopped_file_is_no_source_for_the_same_content(caller: Caller) -> None:
    body = documents.short_pdf(3)
    first, second = caller.upload("a.pdf", body)["id"], caller.upload("b.pdf", body)["id"]
    tasks.verify(first)
    tasks.verify(second)
    assert File.objects.get(id=second).same_as_id == UUID(first)
    tasks.parse(first)
    Page.objects.filter(file_id=first, number=3).delete()
    File.objects.filter(id=first).update(state="processing")
    FileStage.objects.filter(file_id=first, name="parse").update(state="running")
    assert cancellation.stop(UUID(first))
    drain(UUID(second))
    third = caller.ingest("c.pdf", body)
    assert caller.file(first)["error"]["code"] == "cancelled"
    assert (caller.file(second)["pages_ready"], third["pages_ready"]) == (3, 3)


# Time left


def test_the_time_left_is_told_from_the_last_pages(caller: Caller) -> None:
    file_id = caller.upload("a.pdf", documents.short_pdf(8))["id"]
    tasks.verify(file_id)
    tasks.parse(file_id)
    file = File.objects.get(id=file_id)
    Page.objects.filter(number__gt=4).delete()
    File.objects.update(state="processing", page_count=8)
    assert caller.file(file_id)["seconds_left"] is not None
    Page.objects.filter(number=4).update(state="ocr", indexed_at=None)
    assert caller.file(file_id)["seconds_left"] is None, "nobody knows how long recognition takes here"
    Page.objects.filter(number__gt=1, number__lt=4).delete()
    assert seconds_left([file]) == {}


def test_twice_as_much_to_do_takes_twice_as_long(caller: Caller) -> None:
    file_id = caller.ingest("a.pdf", documents.short_pdf(5))["id"]
    file = File.objects.get(id=file_id)
    file.state = "processing"
    assert seconds_left([file]) == {file.id: 0}
    left = []
    for count in (1_005, 2_005):
        file.page_count = count
        File.objects.update(page_count=count)
        left.append(seconds_left([file])[file.id])
    assert left[1] == pytest.approx(2 * left[0], rel=0.3)
