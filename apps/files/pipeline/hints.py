"""Messages that say "look at this file". Named here so that no service needs to import a task."""

from __future__ import annotations

from uuid import UUID

from celery import current_app
from django.conf import settings

from apps.core.jobs import enqueue

PURGE = "purge"


def queue_of(name: str) -> str:
    """The queue that carries messages for this stage, or for `PURGE`."""
    route = settings.CELERY_TASK_ROUTES.get(f"files.{name}", {})
    return str(route.get("queue", settings.CELERY_TASK_DEFAULT_QUEUE))


def hint(name: str, file_id: UUID, *, countdown: float | None = None) -> None:
    """Send the message once the current transaction commits."""
    enqueue(current_app.signature(f"files.{name}"), str(file_id), countdown=countdown)
