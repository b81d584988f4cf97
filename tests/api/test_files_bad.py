"""Files that cannot or must not be read: each ends in a clear, final state, and the next file is unharmed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from apps.files.models import Page, Passage
from apps.files.storage import storage
from apps.files.types import MAX_PAGES
from tests.factories import documents, formats
from tests.factories.files import Caller, drain, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with object_store(tmp_path) as base:
        yield Caller(base)


BAD: list[tuple[str, str, Callable[[], bytes], str, str]] = [
    ("truncated", "a.pdf", documents.truncated_pdf, "damaged", "damaged"),
    ("truncated docx", "a.docx", lambda: documents.word()[:9_000], "damaged", "damaged"),
    ("no document", "a.docx", lambda: documents.archive({"notes.txt": b"hello"}), "mislabelled", "Word document"),
    ("blank text", "a.txt", lambda: b" \n\t\n ", "empty", "nothing to read"),
    ("pdf named text", "a.txt", lambda: documents.short_pdf(1), "mislabelled", "is a PDF"),
    ("text named pdf", "a.pdf", documents.text, "mislabelled", "is a text file"),
    ("png named pdf", "a.pdf", lambda: documents.png(["x"]), "mislabelled", "PNG, JPEG"),
    ("program named pdf", "a.pdf", lambda: b"MZ" + bytes(2_000) + b"%PDF-1.7", "mislabelled", "not a PDF"),
    ("noise named png", "a.png", lambda: bytes(range(256)) * 40, "mislabelled", "not a picture"),
    ("zip bomb", "a.docx", lambda: documents.bomb_word(310 << 20), "bomb", "unpacks"),
    ("overlapping zip bomb", "a.docx", documents.overlapping_archive, "bomb", "unpacks"),
    ("pixel bomb", "a.png", documents.pixel_bomb, "too_large", "too large"),
    ("test virus", "a.txt", documents.eicar, "infected", "malware"),
    ("test virus in a document", "a.docx", documents.infected_word, "infected", "malware"),
]


@pytest.mark.parametrize(
    ("name", "make", "expected", "word"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_files_fail_with_a_reason(
    caller: Caller, name: str, make: Callable[[], bytes], expected: str, word: str
) -> None:
    file = caller.ingest(name, make())
    assert (file["state"], file["stage"], file["searchable"]) == ("failed", None, "none")
    assert file["error"]["code"] == expected
    assert word in file["error"]["message"]
    assert file["error"]["message"].endswith(".")
    assert not Passage.objects.exists()
    assert caller.ingest("next.txt", b"The next file is read as ever.")["state"] == "ready"


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.pdf", documents.too_many_pages_pdf(21)), ("a.log", b"served from the store in some time\n" * 4_000)],
)
def test_of_too_many_pages_the_first_are_published_and_it_is_said(
    caller: Caller, settings: Any, name: str, data: bytes
) -> None:
    settings.FILE_MAX_PAGES = 20
    file = caller.ingest(name, data)
    assert (file["state"], file["page_count"], file["pages_ready"]) == ("ready", 20, 20)
    assert [notice["code"] for notice in file["notices"]] == ["cut_short"]
    assert f"{MAX_PAGES:,} pages" in file["notices"][0]["message"]
    assert Page.objects.count() == 20


def test_pictures_of_too_many_pages_are_refused_before_they_are_read(caller: Caller, settings: Any) -> None:
    settings.FILE_MAX_PAGES = 20
    file = caller.ingest("a.tiff", formats.tiff([Image.new("L", (8, 8))] * 21))
    assert (file["state"], file["error"]["code"]) == ("failed", "too_many_pages")
    assert not Page.objects.exists()


def test_an_object_that_changed_size_or_went_away_is_noticed_after_signing(caller: Caller) -> None:
    changes: list[tuple[Callable[[str], None], str]] = [
        (lambda key: storage().put(key, b"other", content_type="text/plain"), "size_mismatch"),
        (lambda key: storage().delete_prefix(key), "missing"),
    ]
    for change, expected in changes:
        file = caller.upload("a.txt", b"announced size")
        change(f"{caller.actor.organization_id}/{file['id']}/original")
        drain(UUID(file["id"]))
        failed = caller.file(file["id"])
        assert (failed["state"], failed["error"]["code"]) == ("failed", expected)


def test_a_flagged_file_is_not_handed_out_again(caller: Caller) -> None:
    file = caller.ingest("a.txt", documents.eicar())
    assert caller.get(f"/{file['id']}/content").status_code == 404


def test_a_failed_file_can_be_retried_and_deleted(caller: Caller) -> None:
    file = caller.ingest("a.pdf", documents.truncated_pdf())
    assert caller.post(f"/{file['id']}/retry").json()["state"] == "processing"
    assert caller.delete(f"/{file['id']}").status_code == 204
