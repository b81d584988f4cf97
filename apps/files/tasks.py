"""Celery's entry points. Each message only says which file to look at; its rows say what is to be done."""

from __future__ import annotations

from uuid import UUID

import structlog
from celery import shared_task

from apps.files.connectors import sync_due
from apps.files.models import StageName
from apps.files.pipeline import recognition, removal, steps
from apps.files.pipeline import sweep as sweeping
from apps.files.storage import StorageUnavailable
from apps.files.summaries import work
from apps.files.types import Retryable

log = structlog.get_logger(__name__)


@shared_task(name="files.verify")
def verify(file_id: str) -> None:
    steps.run(UUID(file_id), StageName.VERIFY)


@shared_task(name="files.parse")
def parse(file_id: str) -> None:
    steps.run(UUID(file_id), StageName.PARSE)


@shared_task(name="files.index")
def index(file_id: str) -> None:
    steps.run(UUID(file_id), StageName.INDEX)


@shared_task(name="files.embed")
def embed(file_id: str) -> None:
    steps.run(UUID(file_id), StageName.EMBED)


@shared_task(name="files.summary")
def summary(file_id: str) -> None:
    work.run(UUID(file_id))


@shared_task(name="files.ocr")
def ocr(file_id: str) -> None:
    recognition.recognise(UUID(file_id))


@shared_task(name="files.purge")
def purge(file_id: str) -> None:
    try:
        removal.purge(UUID(file_id))
    except (Retryable, StorageUnavailable) as error:
        log.warning("files.purge_later", file_id=file_id, error=str(error))  # a sweep finds the file again


@shared_task(name="files.sync")
def sync() -> None:
    sync_due()


@shared_task(name="files.sweep")
def sweep() -> None:
    sweeping.sweep()
