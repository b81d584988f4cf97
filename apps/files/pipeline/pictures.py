"""Pictures inside documents: kept beside the file while they wait, and replaced on their page by what they say.

Recognition takes one at a time, so that a worker that dies loses one, and one that ends its workers is passed over.
"""

from __future__ import annotations

from uuid import UUID

from django.db.models import F, Func, Value

from apps.core.errors import NotFound
from apps.files import extraction
from apps.files.extraction import ExtractionFailed, Limits, Notice, PageRecord, Reason
from apps.files.models import File, FileState, Page, PageState
from apps.files.pipeline.removal import prefix
from apps.files.storage import storage


def _folder(file: File) -> str:
    return f"{prefix(file)}/pictures"


def keep(file: File, key: str, data: bytes) -> None:
    """Keep the bytes until the picture is recognised. Repeatable."""
    path = f"{_folder(file)}/{key}"
    storage().put(path, data, content_type="application/octet-stream")
    if File.objects.filter(id=file.id, state=FileState.DELETED).exists():
        storage().delete_prefix(path)  # the purge may have been here already


def forget(file: File) -> None:
    """Remove those of a file that was read to its end."""
    if File.objects.filter(id=file.id).exclude(state=FileState.PROCESSING).exists():
        storage().delete_prefix(_folder(file))


def waiting(page: Page) -> str | None:
    """The first picture on the page that was not recognised yet."""
    return next((element["picture"] for element in page.elements if "picture" in element), None)


def read(file: File, picture: str, *, limits: Limits, language: str | None) -> PageRecord:
    """What is recognised in a picture, or why nothing can be. `language` is that of the text around it."""
    key, _, number = picture.partition("/")
    try:
        with storage().local(f"{_folder(file)}/{key}") as path:
            return extraction.ocr_page(path, "image", int(number), limits=limits, language=language)
    except ExtractionFailed as failed:
        return PageRecord(number=int(number), error=failed.reason)
    except NotFound:
        return PageRecord(number=int(number), error=Reason.OCR_FAILED)


def put_in_place(page: Page, picture: str, seen: PageRecord) -> None:
    """Replace the picture by its text. The page is ready when it has no other, unless there is nothing else on it and
    one could not be read."""
    elements = PageRecord.elements_of_json(page.elements)
    own = PageRecord(number=page.number, elements=elements, confidence=page.confidence)
    record = extraction.with_picture(own, picture, seen)
    page.elements, page.text, page.confidence = record.elements_json(), record.text, record.confidence
    page.source = record.source or page.source
    if seen.error is not None:
        page.error_code, page.error_message = seen.error.value, seen.error_message
    if waiting(page) is not None:
        page.failures = 0
    elif page.error_code and not page.text:
        page.state = PageState.FAILED
    else:
        page.state, page.error_code, page.error_message = PageState.READY, "", ""


def say_unread(file_id: UUID) -> None:
    """Tell the owner that a picture could not be recognised."""
    said = Notice.PICTURES_UNREAD.value
    File.objects.filter(id=file_id).exclude(notices__contains=[said]).update(
        notices=Func(F("notices"), Value(said), function="array_append")
    )
