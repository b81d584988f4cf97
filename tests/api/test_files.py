"""Uploading, listing and deleting files over HTTP: limits, resumption, repetition, and who may see what."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from apps.core.valkey import valkey
from apps.files import services
from apps.files.models import File, FileStage, FileState, UploadPart
from apps.files.pipeline import sweep
from apps.files.storage import storage
from apps.files.tasks import purge
from tests.factories.accounts import make_colleague
from tests.factories.files import Caller, object_store

pytestmark = pytest.mark.django_db(transaction=True)
MIB = 1 << 20


@pytest.fixture
def base(tmp_path: Path) -> Iterator[str]:
    with object_store(tmp_path) as address:
        yield address


@pytest.fixture
def caller(base: str) -> Caller:
    return Caller(base)


def code(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.content
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["detail"].endswith("."), "a sentence for a person"
    return str(body["code"])


# Uploading


def test_an_upload_goes_in_parts_and_is_handed_to_the_pipeline(caller: Caller, settings: Any) -> None:
    settings.FILE_PART_BYTES = MIB
    body = os.urandom(2 * MIB + 5)
    started = caller.start("Report.PDF", len(body))
    file, upload = started["file"], started["upload"]
    assert file == {
        "id": file["id"],
        "name": "Report.PDF",
        "size": len(body),
        "content_type": "application/pdf",
        "kind": "pdf",
        "state": "uploading",
        "stage": "upload",
        "page_count": None,
        "pages_ready": 0,
        "pages_failed": [],
        "searchable": "none",
        "error": None,
        "scanner": None,
        "notices": [],
        "seconds_left": None,
        "created_at": file["created_at"],
    }
    assert upload["part_size"] == MIB
    assert [part["size"] for part in upload["parts"]] == [MIB, MIB, 5]
    assert upload["received"] == []

    sent = caller.send_all(upload, body)
    done = caller.post(f"/{file['id']}/complete", {"parts": sent}).json()

    assert (done["state"], done["stage"]) == ("processing", "verify")
    assert b"".join(storage().read(File.objects.get().object_key)) == body
    assert valkey().llen("ingest") == 1
    assert FileStage.objects.get().name == "verify"
    assert list(UploadPart.objects.order_by("number").values_list("etag", flat=True)) == [
        part["etag"].strip('"') for part in sent
    ]


def test_an_upload_is_resumed_where_it_stopped(caller: Caller, settings: Any) -> None:
    settings.FILE_PART_BYTES = MIB
    body = os.urandom(3 * MIB)
    started = caller.start("notes.txt", len(body))
    first = caller.send(started["upload"]["parts"][0], body[:MIB])

    resumed = caller.get(f"/{started['file']['id']}/upload").json()

    assert resumed["received"] == [{"number": 1, "etag": first["etag"].strip('"'), "size": MIB}]
    sent = [
        first,
        *(caller.send(part, body[(n - 1) * MIB : n * MIB]) for part in resumed["parts"][1:] if (n := part["number"])),
    ]
    assert caller.post(f"/{started['file']['id']}/complete", {"parts": sent}).status_code == 200
    assert b"".join(storage().read(File.objects.get().object_key)) == body
    assert code(caller.get(f"/{started['file']['id']}/upload"), 409) == "conflict"


def test_completing_twice_is_completing_once(caller: Caller) -> None:
    started = caller.start("a.txt", 5)
    body = {"parts": caller.send_all(started["upload"], b"hello")}
    path = f"/{started['file']['id']}/complete"
    first, again = caller.post(path, body), caller.post(path, body)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["id"] == again.json()["id"]
    assert valkey().llen("ingest") == 1


def test_completing_from_many_sides_at_once_starts_one_pipeline(caller: Caller) -> None:
    started = caller.start("a.txt", 5)
    parts = [(part["number"], part["etag"]) for part in caller.send_all(started["upload"], b"hello")]
    barrier = threading.Barrier(6)

    def complete(_: int) -> str:
        try:
            barrier.wait(10)
            return services.complete_upload(caller.actor, started["file"]["id"], parts=parts).state
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        states = list(pool.map(complete, range(6)))

    assert states == ["processing"] * 6
    assert valkey().llen("ingest") == 1
    assert b"".join(storage().read(File.objects.get().object_key)) == b"hello"


def test_a_completion_that_died_half_way_is_finished_by_the_next(caller: Caller) -> None:
    started = caller.start("a.txt", 5)
    sent = caller.send_all(started["upload"], b"hello")
    file = File.objects.get()
    storage().complete(file.object_key, file.upload_ref, storage().list_parts(file.object_key, file.upload_ref))

    answer = caller.post(f"/{file.id}/complete", {"parts": sent})

    assert answer.status_code == 200
    assert answer.json()["state"] == "processing"


@pytest.mark.parametrize("named", [[], [(1, "0" * 32)], [(1, None), (2, "0" * 32)]])
def test_completing_with_other_parts_than_were_sent_is_refused(caller: Caller, named: list[Any]) -> None:
    started = caller.start("a.txt", 5)
    etag = caller.send_all(started["upload"], b"hello")[0]["etag"]
    parts = [{"number": number, "etag": tag or etag} for number, tag in named]
    assert code(caller.post(f"/{started['file']['id']}/complete", {"parts": parts}), 422) == "invalid"
    assert caller.file(started["file"]["id"])["state"] == "uploading"


def test_completing_before_the_parts_arrived_is_refused(caller: Caller) -> None:
    started = caller.start("a.txt", 5)
    parts = [{"number": 1, "etag": hashlib.md5(b"hello").hexdigest()}]
    assert code(caller.post(f"/{started['file']['id']}/complete", {"parts": parts}), 422) == "invalid"


def test_an_upload_never_finished_expires_and_leaves_nothing(caller: Caller) -> None:
    started = caller.start("a.txt", 5)
    sent = caller.send_all(started["upload"], b"hello")
    File.objects.update(upload_expires_at=timezone.now() - timedelta(seconds=1))

    assert sweep.sweep()["expired"] == 1

    file = caller.file(started["file"]["id"])
    assert (file["state"], file["error"]["code"]) == ("failed", "expired")
    assert storage().list(f"{caller.actor.organization_id}/{file['id']}") == ()
    assert code(caller.post(f"/{file['id']}/complete", {"parts": sent}), 409) == "conflict"
    assert code(caller.post(f"/{file['id']}/retry"), 409) == "conflict"


# Limits


@pytest.mark.parametrize("name", ["setup.exe", "archive.rar", "noending", "film.mp4", ".pdf.exe"])
def test_unsupported_kinds_are_refused_before_signing(caller: Caller, name: str) -> None:
    answer = caller.post("", {"name": name, "size": 10})
    assert code(answer, 415) == "unsupported_file"
    assert "PDF" in answer.json()["detail"]
    assert not File.objects.exists()


def test_empty_and_oversize_files_are_refused_before_signing(caller: Caller, settings: Any) -> None:
    settings.FILE_MAX_BYTES = 3 * MIB
    empty = caller.post("", {"name": "a.txt", "size": 0})
    assert code(empty, 422) == "invalid"
    assert empty.json()["fields"]["size"] == ["The file is empty."]
    large = caller.post("", {"name": "a.txt", "size": 3 * MIB + 1})
    assert code(large, 413) == "too_large"
    assert "3 MiB" in large.json()["detail"]
    assert not File.objects.exists()


@pytest.mark.parametrize(
    "body",
    [{}, {"name": "a.txt"}, {"name": "a.txt", "size": "x"}, {"name": "", "size": 1}, {"name": "a.txt", "size": -1},
     {"name": "\x00/\t/ .txt\\", "size": 1}, {"name": "n" * 300 + ".txt", "size": 1}],
)  # fmt: skip
def test_malformed_requests_say_which_field(caller: Caller, body: dict[str, Any]) -> None:
    answer = caller.post("", body)
    assert code(answer, 422) == "invalid"
    assert set(answer.json()["fields"]) <= {"name", "size"}


def test_a_name_loses_folders_and_control_characters(caller: Caller) -> None:
    assert caller.start("C:\\Users\\ada\\..\\se\x07cret\u202e.md", 5)["file"]["name"] == "secret.md"


def test_a_body_larger_than_its_part_is_stopped_while_it_arrives(caller: Caller, base: str) -> None:
    started = caller.start("a.txt", 10)
    url = base + started["upload"]["parts"][0]["url"]
    answer = httpx.put(url, content=b"x" * 11)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert caller.get(f"/{started['file']['id']}/upload").json()["received"] == []


# Reading


def test_lists_are_newest_first_and_paged(caller: Caller) -> None:
    names = [f"{n}.txt" for n in range(5)]
    for name in names:
        caller.start(name, 1)
    first = caller.get("?limit=3").json()
    rest = caller.get(f"?limit=3&cursor={first['next']}").json()
    assert [file["name"] for file in (*first["results"], *rest["results"])] == names[::-1]
    assert rest["next"] is None
    assert code(caller.get("?cursor=garbage"), 422) == "invalid"


def test_the_content_is_downloaded_from_a_signed_address_under_its_name(caller: Caller, base: str) -> None:
    file = caller.upload("über.txt", b"hello there")
    answer = caller.get(f"/{file['id']}/content")
    assert answer.status_code == 302
    download = httpx.get(base + answer.headers["location"])
    assert download.content == b"hello there"
    assert "%C3%BCber.txt" in download.headers["content-disposition"]
    assert download.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in download.headers["content-security-policy"]
    unfinished = caller.start("b.txt", 1)["file"]
    assert code(caller.get(f"/{unfinished['id']}/content"), 404) == "not_found"


# Who may see what

PATHS = [
    ("GET", "/{id}"), ("DELETE", "/{id}"), ("GET", "/{id}/upload"), ("POST", "/{id}/complete"), ("POST", "/{id}/retry"),
    ("GET", "/{id}/content"), ("GET", "/{id}/pages"), ("GET", "/{id}/pages/1"), ("GET", "/{id}/pages/1/image"),
]  # fmt: skip


def call(caller: Caller, method: str, path: str) -> Any:
    if method == "POST":
        return caller.post(path, {"parts": [{"number": 1, "etag": "x"}]})
    return caller.get(path) if method == "GET" else caller.delete(path)


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_unknown_foreign_and_deleted_files_look_the_same(caller: Caller, base: str, method: str, path: str) -> None:
    foreign = Caller(base).upload("theirs.txt", b"x")["id"]
    colleague = Caller(base, make_colleague(caller.actor)).upload("colleague.txt", b"x")["id"]
    deleted = caller.upload("gone.txt", b"x")["id"]
    assert caller.delete(f"/{deleted}").status_code == 204

    answers = [call(caller, method, path.format(id=id)) for id in (uuid4(), foreign, colleague, deleted)]

    bodies = [answer.json() | {"request_id": ""} for answer in answers]
    assert [code(answer, 404) for answer in answers] == ["not_found"] * 4
    assert all(body == bodies[0] for body in bodies)
    assert File.objects.exclude(state=FileState.DELETED).count() == 2


@pytest.mark.parametrize(("method", "path"), [*PATHS, ("GET", ""), ("POST", "")])
def test_nobody_gets_anything_without_signing_in(method: str, path: str) -> None:
    url = f"/api/files{path.format(id=uuid4())}"
    answer = getattr(Client(), method.lower())(
        url, **({"content_type": "application/json"} if method == "POST" else {})
    )
    assert code(answer, 401) == "not_authenticated"


def test_files_of_others_are_not_listed(caller: Caller, base: str) -> None:
    Caller(base).upload("theirs.txt", b"x")
    Caller(base, make_colleague(caller.actor)).upload("colleague.txt", b"x")
    assert caller.get("").json()["results"] == []


def test_deleting_is_seen_at_once_and_stops_the_upload(caller: Caller, base: str) -> None:
    started = caller.start("a.txt", 5)
    file_id, url = started["file"]["id"], base + started["upload"]["parts"][0]["url"]
    assert caller.delete(f"/{file_id}").status_code == 204
    assert caller.get("").json()["results"] == []
    assert valkey().llen("default") == 1
    purge(file_id)
    assert httpx.put(url, content=b"hello").status_code == 404
    assert urlsplit(url).path.startswith("/storage/u/")
