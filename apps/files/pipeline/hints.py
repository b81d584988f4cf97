"""Messages that say "look at this file". Named here so that no service needs to import a task."""

from __future__ import annotations

from uuid import UUID

from celery import current_app

from apps.core.jobs import enqueue
from apps.files.models import StageName

PURGE = "purge"
QUEUES: dict[str, str] = {
    StageName.VERIFY: "ingest",
    StageName.PARSE: "ingest",
    StageName.INDEX: "ingest",
    StageName.OCR: "ocr",
    StageName.EMBED: "embed",
    PURGE: "default",
}


def hint(name: str, file_id: UUID, *, countdown: float | None = None) -> None:
    """Send the message once the current transaction commits."""
    enqueue(current_app.signature(f"files.{name}", queue=QUEUES[name]), str(file_id), countdown=countdown)
