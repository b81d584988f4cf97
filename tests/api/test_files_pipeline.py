"""From upload to searchable, by the real stages: every kind, page by page, again after failures, once a content."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from apps.accounts.models import User
from apps.core.notify import user_channel
from apps.core.valkey import valkey
from apps.files import extraction, indexing, tasks
from apps.files.extraction import PageRecord, Reason
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.models import File, FileStage, Page, Passage, Posting
from apps.files.pipeline import leases, recognition, sweep
from apps.files.pipeline.progress import NOTE_INTERVAL_S
from apps.files.storage import StorageUnavailable, storage
from tests.factories import documents
from tests.factories.files import Caller, drain, hurry, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    with object_store(tmp_path) as address:
        yield address


@pytest.fixture
def caller(base: str) -> Caller:
    return Caller(base)


def words(file_id: str, page: int) -> str:
    return " ".join(Passage.objects.filter(file_id=file_id, page_number=page).values_list("text", flat=True))


def notes(pubsub: Any) -> list[dict[str, Any]]:
    found = []
    while message := pubsub.get_message(timeout=0.2):
        if message["type"] == "message":
            found.append(orjson.loads(message["data"])["file"])
    return found


# Kinds


def test_a_report_with_scans_is_read_recognised_and_indexed(caller: Caller) -> None:
    file = caller.ingest("expedition.pdf", documents.mixed_pdf())

    assert (file["state"], file["stage"], file["error"]) == ("ready", None, None)
    assert (file["page_count"], file["pages_ready"], file["pages_failed"]) == (12, 12, [])
    assert (file["searchable"], file["scanner"]) == ("hybrid", "signatures")
    for fact in documents.FACTS:
        assert fact.answer in words(file["id"], fact.page), fact
    pages = caller.get(f"/{file['id']}/pages").json()["results"]
    assert [page["number"] for page in pages] == list(range(1, 13))
    assert [page["number"] for page in pages if page["source"] == "ocr"] == list(documents.SCANNED)
    assert all(page["state"] == "ready" and page["width"] > 0 for page in pages)
    page = caller.get(f"/{file['id']}/pages/7").json()
    assert "turquoise" in page["text"]
    assert dict(FileStage.objects.values_list("name", "state")) == dict.fromkeys(
        ("verify", "parse", "ocr", "embed"), "done"
    )


@pytest.mark.parametrize(
    ("name", "body", "kind", "expected"),
    [
        ("notes.docx", documents.word(["The barometer broke on the pass."]), "docx", "barometer"),
        ("notes.txt", documents.text(["The barometer broke on the pass."]), "text", "barometer"),
        ("nul.txt", b"words " * 900 + b"\0 The barometer\0 broke \xed\xa0\x80 again.", "text", "barometer"),
        ("utf16.txt", "The barometer broke — twice.".encode("utf-16"), "text", "barometer"),
        ("journal.md", documents.markdown(), "markdown", "turquoise"),
        ("page.png", documents.png(["The barometer broke on the pass."]), "image", "barometer"),
        ("page.jpeg", documents.jpeg(["The barometer broke on the pass."]), "image", "barometer"),
    ],
)
def test_every_kind_becomes_searchable(caller: Caller, name: str, body: bytes, kind: str, expected: str) -> None:
    file = caller.ingest(name, body)
    assert (file["kind"], file["state"], file["searchable"], file["error"]) == (kind, "ready", "hybrid", None)
    assert expected in " ".join(words(file["id"], page) for page in range(1, file["page_count"] + 1))


def test_page_pictures_are_drawn_once_and_kept(caller: Caller) -> None:
    file = caller.ingest("a.pdf", documents.short_pdf(2))
    path = f"/{file['id']}/pages/2/image"
    first = caller.get(f"{path}?width=790")
    assert first.status_code == 200
    assert first.headers["content-type"] == "image/png"
    assert "immutable" in first.headers["cache-control"]
    kept = f"{caller.actor.organization_id}/{file['id']}/pages/2/800.png"
    assert b"".join(storage().read(kept)) == first.content
    storage().put(kept, b"what was kept", content_type="image/png")
    assert caller.get(f"{path}?width=800").content == b"what was kept"
    assert caller.get(path, **{"If-None-Match": caller.get(path).headers["etag"]}).status_code == 304
    assert caller.get(f"{path}?width=99999999").status_code == 200
    assert caller.get(f"/{file['id']}/pages/3/image").status_code == 404
    text = caller.ingest("a.txt", b"words without a picture")
    assert caller.get(f"/{text['id']}/pages/1/image").status_code == 404
    assert caller.get(f"/{text['id']}/pages/2").status_code == 404


# Progress


def test_pages_are_published_while_later_ones_are_read(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    real = indexing.index_page
    file_id = caller.upload("a.pdf", documents.short_pdf(5))["id"]
    tasks.verify(file_id)

    def watch(page_id: UUID) -> int:
        pages = caller.get(f"/{file_id}/pages").json()["results"]
        file = caller.file(file_id)
        seen.append({"states": [page["state"] for page in pages], "count": file["page_count"], "state": file["state"]})
        return real(page_id)

    monkeypatch.setattr(indexing, "index_page", watch)
    tasks.parse(file_id)

    # Looked at from inside the transaction of each page: it and those before it are there, the others pending.
    assert [entry["states"].count("ready") for entry in seen] == [1, 2, 3, 4, 5]
    assert all(len(entry["states"]) == 5 and entry["count"] == 5 and entry["state"] == "processing" for entry in seen)
    assert Passage.objects.filter(file_id=file_id, page_number=1).exists()


def test_the_owner_is_told_live_and_not_too_often(caller: Caller) -> None:
    with valkey().pubsub() as pubsub:  # type: ignore[no-untyped-call]
        pubsub.subscribe(user_channel(caller.actor.user_id))
        file_id = caller.upload("a.pdf", documents.short_pdf(60))["id"]
        tasks.verify(file_id)
        begun = time.monotonic()
        tasks.parse(file_id)
        lasted = time.monotonic() - begun
        told = notes(pubsub)
    assert told[0]["state"] == "uploading"
    assert told[-1] == caller.file(file_id)
    ready = [note["pages_ready"] for note in told]
    assert ready == sorted(ready)
    progress = [note for note in told if 0 < note["pages_ready"] < 60]
    assert 1 <= len(progress) <= 1 + lasted / NOTE_INTERVAL_S
    assert all(note["searchable"] == "keyword" for note in progress)


def test_a_file_is_ready_by_keywords_while_vectors_are_made(caller: Caller) -> None:
    file_id = caller.upload("a.txt", documents.text())["id"]
    tasks.verify(file_id)
    tasks.parse(file_id)
    file = caller.file(file_id)
    assert (file["state"], file["stage"], file["searchable"]) == ("ready", "embed", "keyword")
    tasks.embed(file_id)
    file = caller.file(file_id)
    assert (file["state"], file["stage"], file["searchable"]) == ("ready", None, "hybrid")


# Twice, lost, broken


def test_messages_delivered_twice_do_nothing_twice(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    file = caller.ingest("a.pdf", documents.short_pdf(3))
    before = list(Page.objects.order_by("number").values_list("id", "indexed_at"))
    passages = set(Passage.objects.values_list("id", flat=True))
    monkeypatch.setattr(extraction, "run", lambda *a, **k: pytest.fail("parsed again"))
    for task in (tasks.verify, tasks.parse, tasks.ocr, tasks.index, tasks.embed, tasks.purge):
        task(file["id"])
    assert list(Page.objects.order_by("number").values_list("id", "indexed_at")) == before
    assert set(Passage.objects.values_list("id", flat=True)) == passages
    assert caller.file(file["id"]) == file


def test_messages_for_files_that_are_not_there_are_ignored(caller: Caller) -> None:
    for task in (tasks.verify, tasks.parse, tasks.ocr, tasks.index, tasks.embed, tasks.purge):
        task("018f0000-0000-7000-8000-000000000000")


def test_a_lost_message_is_sent_again_once(caller: Caller) -> None:
    file_id = caller.upload("a.txt", b"some text")["id"]
    valkey().flushall()
    assert sweep.sweep()["stages"] == 0, "not overdue yet"
    hurry(UUID(file_id))
    assert sweep.sweep()["stages"] == 1
    assert sweep.sweep()["stages"] == 0, "just sent"
    assert valkey().llen("ingest") == 1


def test_a_backlog_is_not_made_longer(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    file_id = caller.upload("a.txt", b"some text")["id"]
    hurry(UUID(file_id))
    monkeypatch.setattr(sweep, "BACKLOG", 0)
    assert sweep.sweep()["stages"] == 0
    assert valkey().llen("ingest") == 1


def test_a_store_that_is_down_is_tried_again_with_growing_waits(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_id = caller.upload("a.txt", documents.text())["id"]
    real, waits = type(storage()).size, []

    def down(*_: object) -> int:
        raise StorageUnavailable

    monkeypatch.setattr(type(storage()), "size", down)
    for failures in range(1, 4):
        tasks.verify(file_id)
        stage = FileStage.objects.get(name="verify")
        assert (stage.state, stage.failures) == ("pending", failures)
        assert stage.due_at is not None
        waits.append((stage.due_at - stage.started_at).total_seconds())  # type: ignore[operator]
        tasks.verify(file_id)
        assert FileStage.objects.get(name="verify").attempt == failures, "not before it is due"
        hurry(UUID(file_id))
    assert waits[0] < waits[2]

    monkeypatch.setattr(type(storage()), "size", real)
    drain(UUID(file_id))
    assert caller.file(file_id)["state"] == "ready"


def test_what_stays_down_fails_in_the_end_and_can_be_retried(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    file_id = caller.upload("a.txt", documents.text())["id"]
    real = type(storage()).size
    monkeypatch.setattr(type(storage()), "size", lambda *_: (_ for _ in ()).throw(StorageUnavailable()))
    for _ in range(leases.MAX_FAILURES):
        hurry(UUID(file_id))
        tasks.verify(file_id)
    file = caller.file(file_id)
    assert (file["state"], file["error"]["code"]) == ("failed", "unavailable")

    monkeypatch.setattr(type(storage()), "size", real)
    assert caller.post(f"/{file_id}/retry").json()["state"] == "processing"
    drain(UUID(file_id))
    assert caller.file(file_id)["state"] == "ready"


def test_only_failed_pages_are_read_again(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        extraction,
        "ocr_page",
        lambda path, kind, number, **more: PageRecord(number=number, error=Reason.OCR_FAILED),
    )
    file = caller.ingest("a.pdf", documents.mixed_pdf(4, scanned=[2], facts=[]))
    assert (file["state"], file["pages_failed"], file["pages_ready"]) == ("partial", [2], 3)
    assert file["error"] == {"code": "pages_failed", "message": "Page 2 could not be read."}
    page = caller.get(f"/{file['id']}/pages/2").json()
    assert (page["state"], page["error"]["code"]) == ("failed", "ocr_failed")
    kept = set(Page.objects.exclude(number=2).values_list("id", flat=True))

    monkeypatch.undo()
    again = caller.post(f"/{file['id']}/retry").json()
    assert (again["state"], again["error"], again["pages_failed"]) == ("processing", None, [])
    drain(UUID(file["id"]))
    file = caller.file(file["id"])
    assert (file["state"], file["pages_failed"], file["pages_ready"], file["searchable"]) == ("ready", [], 4, "hybrid")
    assert set(Page.objects.exclude(number=2).values_list("id", flat=True)) == kept
    assert caller.post(f"/{file['id']}/retry").status_code == 409


# The same content


def test_the_same_content_is_parsed_once_for_an_owner(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    body = documents.short_pdf(4)
    first = caller.ingest("a.pdf", body)
    monkeypatch.setattr(extraction, "run", lambda *a, **k: pytest.fail("parsed again"))
    second = caller.ingest("copy of a.pdf", body)

    assert (second["state"], second["searchable"], second["page_count"]) == ("ready", "hybrid", 4)
    for model in (Page, Passage, Posting):
        rows = model.objects.filter(file_id=first["id"]).count()
        assert model.objects.filter(file_id=second["id"]).count() == rows > 0
    copied = Posting.objects.filter(file_id=second["id"]).values("passage_id")
    assert (
        Passage.objects.filter(file_id=second["id"], id__in=copied).count()
        == Passage.objects.filter(file_id=second["id"]).count()
    )
    assert Passage.objects.filter(embedding=None).count() == 0

    caller.delete(f"/{first['id']}")
    tasks.purge(first["id"])
    assert words(second["id"], 2)
    assert caller.file(second["id"])["state"] == "ready"


def test_the_same_content_waits_for_a_first_one_that_is_being_read(caller: Caller) -> None:
    body = documents.short_pdf(3)
    first, second = caller.upload("a.pdf", body)["id"], caller.upload("b.pdf", body)["id"]
    tasks.verify(first)
    tasks.verify(second)
    tasks.parse(second)
    stage = FileStage.objects.get(file_id=second, name="parse")
    assert (stage.state, stage.failures) == ("pending", 0)
    assert not Page.objects.filter(file_id=second).exists()
    drain(UUID(first))
    hurry(UUID(second))
    drain(UUID(second))
    assert File.objects.get(id=second).same_as_id == UUID(first)
    assert caller.file(second)["state"] == "ready"


def test_a_first_one_that_goes_away_is_not_waited_for(caller: Caller) -> None:
    body = documents.short_pdf(3)
    first, second = caller.upload("a.pdf", body)["id"], caller.upload("b.pdf", body)["id"]
    tasks.verify(first)
    tasks.verify(second)
    caller.delete(f"/{first}")
    drain(UUID(second))
    assert caller.file(second)["state"] == "ready"
    assert Page.objects.filter(file_id=second).count() == 3


def test_the_same_content_of_another_owner_is_parsed_for_them(caller: Caller, base: str) -> None:
    body = documents.short_pdf(2)
    caller.ingest("a.pdf", body)
    other = Caller(base).ingest("a.pdf", body)
    assert File.objects.get(id=other["id"]).same_as_id is None
    assert other["state"] == "ready"
    assert User.objects.count() == 2


def test_without_an_embedder_the_file_stays_searchable_by_keywords(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(_: UUID) -> int:
        raise EmbedderUnavailable("no weights")

    monkeypatch.setattr(indexing, "embed_some", unavailable)
    file_id = caller.upload("a.txt", documents.text())["id"]
    for _ in range(leases.MAX_FAILURES + 2):
        hurry(UUID(file_id))
        drain(UUID(file_id))
    file = caller.file(file_id)
    assert (file["state"], file["stage"], file["searchable"], file["error"]) == ("ready", None, "keyword", None)

    monkeypatch.undo()
    assert caller.post(f"/{file_id}/retry").status_code == 200
    drain(UUID(file_id))
    assert caller.file(file_id)["searchable"] == "hybrid"


def test_a_book_of_scans_lets_others_in_between(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "SLICE_S", 0.0)
    file_id = caller.upload("a.pdf", documents.mixed_pdf(2, scanned=[1, 2], facts=[]))["id"]
    tasks.verify(file_id)
    tasks.parse(file_id)
    assert valkey().llen("ocr") == 2, "one message a page, up to a few"
    for left in (1, 0):
        tasks.ocr(file_id)
        assert Page.objects.filter(state="ocr").count() == left
    assert valkey().llen("ocr") == 4, "each slice sent the message on"
    assert caller.file(file_id)["state"] == "processing"
    tasks.ocr(file_id)
    assert caller.file(file_id)["state"] == "ready"


@pytest.mark.parametrize("stage", ["parse", "ocr"])
def test_an_object_that_vanished_is_said_to_be_missing(caller: Caller, stage: str) -> None:
    file_id = caller.upload("a.pdf", documents.mixed_pdf(2, scanned=[2], facts=[]))["id"]
    tasks.verify(file_id)
    if stage == "ocr":
        tasks.parse(file_id)
    storage().delete_prefix(f"{caller.actor.organization_id}/{file_id}")
    drain(UUID(file_id))
    file = caller.file(file_id)
    assert file["state"] == ("failed" if stage == "parse" else "partial")
    error = file["error"] if stage == "parse" else caller.get(f"/{file_id}/pages/2").json()["error"]
    assert error["code"] == "missing"
