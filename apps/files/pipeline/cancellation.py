"""Stopping the reading of a file at its owner's wish. Workers notice at their next page, and can write nothing more."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.files.models import File, FileStage, FileState, Page, PageState, StageName, StageState
from apps.files.pipeline.progress import CANCELLED, advance, fail_missing_pages, note, set_failed
from apps.files.types import FAULTS

_READING = (StageName.VERIFY, StageName.PARSE, StageName.OCR)
_PAGE_MESSAGE = "Reading was stopped before this page was read."


def stop(file_id: UUID) -> bool:
    """Stop the stages that read; False when there are none. What is read already is still indexed and embedded.

    The stages are ended in a statement of their own: workers hold their stage's row while they wait for the file's.
    """
    stopped = FileStage.objects.filter(
        file_id=file_id, name__in=_READING, state__in=(StageState.PENDING, StageState.RUNNING)
    ).update(
        state=StageState.FAILED,
        finished_at=timezone.now(),
        lease_until=None,
        due_at=None,
        error_code=CANCELLED,
        error_message=FAULTS[CANCELLED],
    )
    if stopped:
        _settle(file_id)
        advance(file_id)
    return bool(stopped)


def _settle(file_id: UUID) -> None:
    """Every page ends as what it is now: one that waits for recognition keeps the text it has of its own."""
    with transaction.atomic():
        # Not the lock that would keep workers from adding passages while they hold rows that are wanted here.
        file = File.objects.select_for_update(no_key=True).filter(id=file_id, state=FileState.PROCESSING).first()
        if file is None:
            return
        waiting = Page.objects.filter(file=file, state=PageState.OCR)
        waiting.exclude(text="").update(state=PageState.READY, lease_until=None)
        waiting.filter(text="").update(
            state=PageState.FAILED, lease_until=None, error_code=CANCELLED, error_message=_PAGE_MESSAGE
        )
        if Page.objects.filter(file=file).exists():
            fail_missing_pages(file, CANCELLED, _PAGE_MESSAGE)
        else:
            set_failed(file, CANCELLED, FAULTS[CANCELLED])
            file.save(force_update=True)
            note(file)
