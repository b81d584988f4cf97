"""Files for tests, made as a client makes them: through the API and signed addresses, read by the real pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import httpx
from django.conf import settings
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.types import Actor
from apps.files import tasks
from apps.files.api.objects import application
from apps.files.models import DeletionReceipt, File, FileStage, Page, StageName, StageState
from apps.files.pipeline import leases
from apps.files.storage import storage
from tests.factories.accounts import make_actor, make_key, make_user
from tests.factories.web import serving

TASKS = {
    StageName.VERIFY: tasks.verify,
    StageName.PARSE: tasks.parse,
    StageName.OCR: tasks.ocr,
    StageName.INDEX: tasks.index,
    StageName.EMBED: tasks.embed,
    StageName.SUMMARY: tasks.summary,
}


@contextmanager
def object_store(folder: Path) -> Iterator[str]:
    """The filesystem store in `folder`, with its signed addresses served; yields the server's address."""
    before = settings.OBJECTS_DIR, settings.S3_ENDPOINT
    settings.OBJECTS_DIR, settings.S3_ENDPOINT = folder, ""
    storage.cache_clear()
    try:
        with serving(application) as base:
            yield base
    finally:
        settings.OBJECTS_DIR, settings.S3_ENDPOINT = before
        storage.cache_clear()


class Caller:
    """A person with an API key who uploads and reads files over HTTP. `base` is where signed addresses are served."""

    def __init__(self, base: str = "", user: User | None = None) -> None:
        self.actor: Actor = make_actor(user or make_user())
        self._client = Client(headers={"Authorization": f"Bearer {make_key(self.actor).key}"})
        self._base = base

    def get(self, path: str, **headers: str) -> Any:
        return self._client.get(f"/api/files{path}", headers=headers)

    def post(self, path: str = "", body: object = None) -> Any:
        return self._client.post(f"/api/files{path}", body or {}, content_type="application/json")

    def delete(self, path: str) -> Any:
        return self._client.delete(f"/api/files{path}")

    def start(self, name: str, size: int) -> dict[str, Any]:
        answer = self.post("", {"name": name, "size": size, "content_type": ""})
        assert answer.status_code == 201, answer.content
        return cast(dict[str, Any], answer.json())

    def send(self, part: dict[str, Any], body: bytes) -> dict[str, Any]:
        answer = httpx.put(self.address(part["url"]), content=body, timeout=30, verify=False)
        assert answer.status_code == 200, answer.text
        return {"number": part["number"], "etag": answer.headers["etag"]}

    def send_all(self, upload: dict[str, Any], body: bytes) -> list[dict[str, Any]]:
        step = upload["part_size"]
        return [self.send(part, body[(part["number"] - 1) * step : part["number"] * step]) for part in upload["parts"]]

    def upload(self, name: str, body: bytes) -> dict[str, Any]:
        """Start, send every part, complete. Returns the file."""
        started = self.start(name, len(body))
        sent = self.send_all(started["upload"], body)
        answer = self.post(f"/{started['file']['id']}/complete", {"parts": sent})
        assert answer.status_code == 200, answer.content
        return cast(dict[str, Any], answer.json())

    def ingest(self, name: str, body: bytes) -> dict[str, Any]:
        """Upload, then be the workers until nothing is left to do. Returns the file."""
        file_id = self.upload(name, body)["id"]
        drain(UUID(file_id))
        return self.file(file_id)

    def file(self, file_id: str) -> dict[str, Any]:
        answer = self.get(f"/{file_id}")
        assert answer.status_code == 200, answer.content
        return cast(dict[str, Any], answer.json())

    def address(self, url: str) -> str:
        return url if url.startswith("http") else self._base + url


def drain(file_id: UUID, *, rounds: int = 20) -> None:
    """Be the workers of one file: do what is due until nothing is."""
    for _ in range(rounds):
        found = list(
            FileStage.objects.filter(leases.due(timezone.now()), file_id=file_id).values_list("name", flat=True)
        )
        if not found or File.objects.get(id=file_id).state == "failed":
            return
        for name in found:
            TASKS[StageName(name)](str(file_id))
    raise AssertionError(f"stages still due after {rounds} rounds")


def hurry(file_id: UUID) -> None:
    """Let waits and leases of the file's stages run out now."""
    past = timezone.now() - leases.LEASE
    FileStage.objects.filter(file_id=file_id, state=StageState.PENDING).update(due_at=past, hinted_at=past)
    FileStage.objects.filter(file_id=file_id, state=StageState.RUNNING).update(lease_until=past, hinted_at=past)


def known_file(file_id: UUID, user: User) -> File:
    """The rows of a text file of one page under an id that the test chose, and of a receipt under the same id."""
    file = File.objects.create(
        id=file_id,
        organization=user.organization,
        owner=user,
        name="notes.txt",
        size=5,
        content_type="text/plain",
        kind="text",
        state="ready",
        page_count=1,
        pages_ready=1,
        object_key=f"{user.organization_id}/{file_id}/original",
    )
    Page.objects.create(file=file, organization_id=user.organization_id, number=1, state="ready", text="words")
    owner = {"organization_id": user.organization_id, "owner_id": user.pk}
    now = timezone.now()
    DeletionReceipt.objects.create(id=file_id, **owner, bytes=5, deleted_at=now, purged_at=now)
    return file
