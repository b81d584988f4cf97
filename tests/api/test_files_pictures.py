"""Pictures inside documents, from upload to search: recognised in their place, once, never at the text's expense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from apps.files import extraction, tasks
from apps.files.extraction import PageRecord, Reason
from apps.files.models import File, FileStage, Page, Passage
from apps.files.pipeline import leases, pictures, recognition
from apps.files.pipeline.leases import claim_page
from apps.files.storage import storage
from tests.factories import documents, formats, pictured
from tests.factories.files import Caller, drain, hurry, object_store

pytestmark = pytest.mark.django_db(transaction=True)

PUMP = pictured.shot("The spare pump stands in cellar nine.")
VALVE = pictured.shot("The main valve was painted turquoise.")
TRUNCATED = PUMP[: len(PUMP) // 2]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow machine too, a worker keeps the file until it is done."""
    monkeypatch.setattr(recognition, "SLICE_S", 600.0)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    with object_store(tmp_path) as address:
        yield address


@pytest.fixture
def caller(base: str) -> Caller:
    return Caller(base)


def words(file_id: str, page: int) -> str:
    return " ".join(Passage.objects.filter(file_id=file_id, page_number=page).values_list("text", flat=True))


def kept(caller: Caller, file_id: str) -> list[str]:
    return [*storage().list(f"{caller.actor.organization_id}/{file_id}/pictures")]


def parsed(caller: Caller, name: str, data: bytes) -> str:
    """Uploaded and read, not recognised yet."""
    file_id: str = caller.upload(name, data)["id"]
    tasks.verify(file_id)
    tasks.parse(file_id)
    return file_id


def notices(file: dict[str, Any]) -> list[str]:
    return [notice["code"] for notice in file["notices"]]


def test_a_slide_that_is_only_a_screenshot_is_read(caller: Caller) -> None:
    deck = pictured.presentation([("Pumps", []), ("", [PUMP]), ("Valves", [VALVE])])
    file = caller.ingest("deck.pptx", deck)
    assert (file["state"], file["searchable"], file["page_count"], file["pages_ready"]) == ("ready", "hybrid", 3, 3)
    assert (file["notices"], file["error"]) == ([], None)
    assert "cellar nine" in words(file["id"], 2)
    assert "Valves" in words(file["id"], 3)
    assert "turquoise" in words(file["id"], 3)
    pages = Page.objects.filter(file_id=file["id"]).order_by("number")
    assert [page.source for page in pages] == ["digital", "ocr", "ocr"]
    assert [page.confidence is None for page in pages] == [True, False, False]
    elements = pages[2].elements
    assert [element["category"] for element in elements] == ["NarrativeText", "Image"]
    assert not any({"picture", "box", "lines"} & element.keys() for element in elements)
    assert caller.get(f"/{file['id']}/pages/3").json()["text"].startswith("Valves\n\n")
    assert caller.get(f"/{file['id']}/pages/2/image").status_code == 404
    assert kept(caller, file["id"]) == []


def test_a_document_of_scans_is_read_page_by_page(caller: Caller) -> None:
    scans = [[fact.sentence, *documents.sentences(3, fact.page)] for fact in documents.FACTS[:3]]
    file = caller.ingest("scans.docx", pictured.scanned_word(scans))
    assert (file["state"], file["page_count"]) == ("ready", 3)
    for page, fact in enumerate(documents.FACTS[:3], start=1):
        assert fact.answer in words(file["id"], page)


def test_a_scan_in_a_mail_and_a_fax_in_an_archive_are_read(caller: Caller) -> None:
    fax = formats.tiff([documents.scan(["Sent from Lake Umbarra."], noise=False)] * 1)
    inside = formats.mail("Hi", "see below", attachments={"pump.png": PUMP})
    file = caller.ingest("all.zip", formats.package({"mail.eml": inside, "fax.tif": fax}))
    assert (file["state"], notices(file)) == ("ready", [])
    text = " ".join(words(file["id"], page) for page in range(1, file["page_count"] + 1))
    assert "cellar nine" in text
    assert "Umbarra" in text


def test_a_scanned_page_of_a_report_in_a_mail_is_read(caller: Caller) -> None:
    report = documents.mixed_pdf(4, scanned=[4], facts=documents.FACTS[:2])
    file = caller.ingest("mail.eml", formats.mail("Hi", "see below", attachments={"report.pdf": report}))
    assert (file["state"], notices(file)) == ("ready", [])
    assert documents.FACTS[1].answer in words(file["id"], file["page_count"])


def test_own_text_is_found_while_pictures_wait(caller: Caller) -> None:
    file_id = parsed(caller, "deck.pptx", pictured.presentation([("Barometers", [PUMP]), ("", [VALVE])]))
    assert words(file_id, 1) == "Barometers"
    assert Page.objects.filter(file_id=file_id, state="ocr").count() == 2
    assert Page.objects.filter(file_id=file_id, indexed_at=None).count() == 1
    assert caller.file(file_id)["state"] == "processing"
    assert len(kept(caller, file_id)) == 2
    drain(UUID(file_id))
    assert Passage.objects.filter(file_id=file_id, page_number=1).count() == 1
    assert "cellar nine" in words(file_id, 1)
    assert caller.file(file_id)["searchable"] == "hybrid"


def test_stopping_keeps_the_text_of_pages_whose_pictures_wait(caller: Caller) -> None:
    file_id = parsed(caller, "deck.pptx", pictured.presentation([("Barometers", [PUMP]), ("", [VALVE])]))
    file = caller.post(f"/{file_id}/cancel").json()
    assert (file["pages_ready"], file["pages_failed"]) == (1, [2])
    assert words(file_id, 1) == "Barometers"
    caller.post(f"/{file_id}/retry")
    drain(UUID(file_id))
    assert "turquoise" in words(file_id, 2)


def test_one_picture_is_recognised_at_a_time(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "SLICE_S", 0.0)
    file_id = parsed(caller, "deck.pptx", pictured.presentation([("", [PUMP, VALVE])]))
    tasks.ocr(file_id)
    page = Page.objects.get()
    assert (page.state, page.lease_until, "nine" in page.text, "turquoise" in page.text) == ("ocr", None, True, False)
    assert words(file_id, 1) == ""
    tasks.ocr(file_id)
    tasks.ocr(file_id)
    assert Page.objects.get().state == "ready"
    assert "turquoise" in words(file_id, 1)


def test_what_says_little_is_not_kept(caller: Caller) -> None:
    deck = pictured.presentation([("Pumps", [pictured.photograph(), pictured.shot("ACME")]), ("", [pictured.shot("")])])
    file = caller.ingest("deck.pptx", deck)
    assert (file["state"], file["pages_ready"], notices(file)) == ("ready", 2, [])
    assert [(page.source, page.text) for page in Page.objects.order_by("number")] == [
        ("digital", "Pumps"),
        ("digital", ""),
    ]


def test_a_logo_on_many_slides_is_recognised_once(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = extraction.ocr_page

    def counted(*args: Any, **more: Any) -> PageRecord:
        calls.append(args)
        return real(*args, **more)

    monkeypatch.setattr(extraction, "ocr_page", counted)
    file = caller.ingest("deck.pptx", pictured.presentation([(f"slide {number}", [PUMP]) for number in range(8)]))
    assert len(calls) == 1
    assert [("nine" in words(file["id"], page)) for page in range(1, 9)] == [True] + [False] * 7


def test_a_truncated_picture_costs_no_text_and_is_told(caller: Caller) -> None:
    file = caller.ingest("deck.pptx", pictured.presentation([("Pumps", [TRUNCATED, VALVE]), ("Valves", [])]))
    assert (file["state"], file["error"], notices(file)) == ("ready", None, ["pictures_unread"])
    assert "Pumps" in words(file["id"], 1)
    assert "turquoise" in words(file["id"], 1)
    assert not Page.objects.exclude(error_code="").exists()


def test_a_page_of_nothing_but_a_truncated_picture_has_failed(caller: Caller) -> None:
    file = caller.ingest("deck.pptx", pictured.presentation([("Pumps", []), ("", [TRUNCATED])]))
    assert (file["state"], file["pages_failed"], notices(file)) == ("partial", [2], ["pictures_unread"])
    assert caller.get(f"/{file['id']}/pages/2").json()["error"]["code"] == "damaged"
    again = caller.post(f"/{file['id']}/retry").json()
    assert (again["state"], again["pages_failed"]) == ("processing", [])
    drain(UUID(file["id"]))
    assert caller.file(file["id"])["pages_failed"] == [2]


def test_a_failed_page_is_read_again_with_its_pictures(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        extraction, "ocr_page", lambda path, kind, number, **more: PageRecord(number=number, error=Reason.OCR_FAILED)
    )
    file = caller.ingest("deck.pptx", pictured.presentation([("Pumps", []), ("", [PUMP, VALVE])]))
    assert (file["state"], file["pages_failed"], kept(caller, file["id"])) == ("partial", [2], [])
    monkeypatch.undo()
    caller.post(f"/{file['id']}/retry")
    drain(UUID(file["id"]))
    file = caller.file(file["id"])
    assert (file["state"], file["pages_failed"], notices(file)) == ("ready", [], [])
    assert "nine" in words(file["id"], 2)
    assert "turquoise" in words(file["id"], 2)


def test_a_picture_that_ends_its_workers_is_passed_over(caller: Caller) -> None:
    file_id = parsed(caller, "deck.pptx", pictured.presentation([("", [PUMP, VALVE])]))
    for failures in range(leases.MAX_PAGE_FAILURES):
        held = claim_page(UUID(file_id))
        assert held is not None
        assert held.failures == failures
        Page.objects.update(lease_until=timezone.now() - leases.LEASE)
        FileStage.objects.filter(name="ocr").update(lease_until=None, state="pending")
    hurry(UUID(file_id))
    drain(UUID(file_id))
    file = caller.file(file_id)
    assert (file["state"], notices(file)) == ("ready", ["pictures_unread"])
    assert "nine" not in words(file_id, 1)
    assert "turquoise" in words(file_id, 1)
    assert Page.objects.get().failures <= 1


def test_a_picture_that_vanished_from_the_store_costs_no_text(caller: Caller) -> None:
    file_id = parsed(caller, "deck.pptx", pictured.presentation([("Pumps", [PUMP])]))
    for key in kept(caller, file_id):
        storage().delete_prefix(key)
    drain(UUID(file_id))
    file = caller.file(file_id)
    assert (file["state"], notices(file), words(file_id, 1)) == ("ready", ["pictures_unread"], "Pumps")


def test_reading_again_after_a_kill_keeps_pages_and_pictures(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    file_id: str = caller.upload("deck.pptx", pictured.presentation([("", [PUMP]), ("", [VALVE])]))["id"]
    tasks.verify(file_id)
    real = pictures.keep

    def killed(file: File, key: str, data: bytes) -> None:
        if data == VALVE:
            raise SystemExit
        real(file, key, data)

    monkeypatch.setattr(pictures, "keep", killed)
    with pytest.raises(SystemExit):
        tasks.parse(file_id)
    assert Page.objects.filter(file_id=file_id).count() == 1
    monkeypatch.undo()
    hurry(UUID(file_id))
    drain(UUID(file_id))
    assert caller.file(file_id)["state"] == "ready"
    assert "nine" in words(file_id, 1)
    assert "turquoise" in words(file_id, 2)


def test_a_deleted_file_leaves_no_pictures(caller: Caller) -> None:
    file_id = parsed(caller, "deck.pptx", pictured.presentation([("Pumps", [PUMP])]))
    assert len(kept(caller, file_id)) == 1
    caller.delete(f"/{file_id}")
    tasks.purge(file_id)
    assert kept(caller, file_id) == []


def test_a_picture_that_is_all_there_is_and_says_nothing(caller: Caller) -> None:
    file = caller.ingest("deck.pptx", pictured.presentation([("", [pictured.shot("")])]))
    assert (file["state"], file["error"]["code"]) == ("failed", "empty")
