"""Enqueueing of background jobs: only after the transaction that made them true has committed.

A job's message is a hint. What must happen is a row with a state; sweepers find rows whose hint was lost.
"""

from __future__ import annotations

from typing import Any, Protocol

import structlog
from django.db import transaction
from kombu.exceptions import OperationalError

log = structlog.get_logger(__name__)


class Task(Protocol):
    @property
    def name(self) -> str: ...

    def apply_async(self, args: Any = ..., kwargs: Any = ..., **options: Any) -> Any: ...


def enqueue(task: Task, *args: object, countdown: float | None = None, **kwargs: object) -> None:
    """Send `task` once the current transaction commits (at once when there is none).

    A broker that is down loses only the hint: it is logged, and a sweeper picks the row up later.
    """

    def send() -> None:
        try:
            task.apply_async(args=args, kwargs=kwargs, countdown=countdown, retry=False)
        except (OperationalError, OSError) as error:
            log.warning("job.hint_lost", task=task.name, error=type(error).__name__)

    transaction.on_commit(send)
