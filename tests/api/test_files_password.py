"""Protected files: they ask for a password, a wrong one changes nothing, the right one is kept nowhere."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from django.db import connection

from apps.core.valkey import valkey
from apps.files.models import File
from apps.files.pipeline.removal import STORES, prefix
from apps.files.storage import storage
from tests.factories import documents, formats, locked
from tests.factories.files import Caller, drain, object_store

pytestmark = pytest.mark.django_db(transaction=True)
SESAME = "open sesame"


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with object_store(tmp_path) as base:
        yield Caller(base)


def locked_sheet() -> bytes:
    return locked.office(
        formats.workbook(
            {"Figures": [["Site", "Depth"], ["North", 4.2], *([text] for text in documents.sentences(300, 1))]}
        )
    )


@pytest.mark.parametrize(
    ("name", "make", "password", "text"),
    [
        ("a.pdf", documents.encrypted_pdf, SESAME, "River survey"),
        ("a.xlsx", locked_sheet, locked.PASSWORD, "North | 4.2"),
        ("a.docx", lambda: locked.office(documents.word(["Deep water."])), locked.PASSWORD, "Deep water."),
    ],
)
def test_a_protected_file_is_read_with_its_password(
    caller: Caller, name: str, make: Callable[[], bytes], password: str, text: str
) -> None:
    file = caller.ingest(name, make())
    assert (file["state"], file["stage"], file["error"]["code"]) == ("needs_password", None, "encrypted")
    refused = caller.post(f"/{file['id']}/password", {"password": "guess"})
    assert (refused.status_code, refused.json()["reason"]) == (422, "wrong_password")
    assert "password" in refused.json()["detail"]
    assert caller.file(file["id"])["state"] == "needs_password"
    taken = caller.post(f"/{file['id']}/password", {"password": password})
    assert (taken.status_code, taken.json()["state"]) == (200, "processing")
    drain(UUID(file["id"]))
    assert caller.file(file["id"])["state"] == "ready"
    assert text in caller.get(f"/{file['id']}/pages/1").json()["text"]


def test_pages_of_a_file_that_was_opened_can_be_seen(caller: Caller) -> None:
    file = caller.ingest("a.pdf", documents.encrypted_pdf())
    assert caller.get(f"/{file['id']}/pages/1/image").status_code == 404
    caller.post(f"/{file['id']}/password", {"password": SESAME})
    drain(UUID(file["id"]))
    assert caller.get(f"/{file['id']}/pages/1/image").status_code == 200


def test_the_password_is_kept_nowhere(caller: Caller, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = locked.PASSWORD
    file = caller.ingest("a.xlsx", locked_sheet())
    caller.post(f"/{file['id']}/password", {"password": secret})
    drain(UUID(file["id"]))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT row_to_json(f)::text FROM files_file f UNION ALL SELECT row_to_json(s)::text FROM files_stage s"
        )
        rows = "".join(row for (row,) in cursor.fetchall())
    store = valkey()
    kept = b"".join(store.dump(key) or b"" for key in store.scan_iter())
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for form in (secret, json.dumps(secret)[1:-1]):
        assert form not in rows + caplog.text
        assert form.encode() not in kept + stored


def test_no_password_is_taken_that_was_not_asked_for(caller: Caller) -> None:
    file = caller.ingest("a.txt", b"plain text")
    assert caller.post(f"/{file['id']}/password", {"password": "x"}).status_code == 409
    assert caller.post(f"/{file['id']}/password", {}).status_code == 422


def test_of_others_nobody_opens_anything(caller: Caller) -> None:
    file = caller.ingest("a.pdf", documents.encrypted_pdf())
    assert Caller().post(f"/{file['id']}/password", {"password": SESAME}).status_code == 404


def test_what_cannot_be_opened_with_a_password_says_so(caller: Caller) -> None:
    manifest = (
        '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        '<m:file-entry m:full-path="content.xml"><m:encryption-data/></m:file-entry></m:manifest>'
    )
    data = formats.package({"mimetype": "x", "content.xml": "noise", "META-INF/manifest.xml": manifest})
    file = caller.ingest("a.odt", data)
    assert (file["state"], file["error"]["code"]) == ("needs_password", "encrypted")
    answer = caller.post(f"/{file['id']}/password", {"password": SESAME})
    assert (answer.status_code, answer.json()["reason"]) == (422, "locked")
    assert "Remove it and upload the file again" in answer.json()["detail"]


def test_deleting_takes_the_opened_copy_along(caller: Caller) -> None:
    file = caller.ingest("a.pdf", documents.encrypted_pdf())
    caller.post(f"/{file['id']}/password", {"password": SESAME})
    row = File.objects.get(id=file["id"])
    assert f"{prefix(row)}/unlocked" in storage().list(prefix(row))
    for store in STORES:
        store.remove(row)
    assert not storage().list(prefix(row))


def test_what_was_left_out_is_said(caller: Caller) -> None:
    file = caller.ingest("a.zip", formats.archive_in_itself(9))
    assert file["state"] == "ready"
    assert [notice["code"] for notice in file["notices"]] == ["depth_limited"]
