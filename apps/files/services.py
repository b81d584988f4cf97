"""Writes of files: uploads from signing to completion, cancelling, retry, deletion.

Storage is never called inside a transaction. What storage holds and what a row says can therefore differ for a
moment; each function is written so that repeating it, or a sweep, brings them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from pathlib import PurePosixPath
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.types import Actor
from apps.core.errors import Conflict, Invalid, NotFound, TooLarge, UnsupportedFile
from apps.core.ids import new_id
from apps.files import extraction
from apps.files.access import access_file
from apps.files.lifecycle import quotas
from apps.files.models import File, FileStage, FileState, Page, PageState, StageName, StageState, UploadPart
from apps.files.pipeline import cancellation, removal
from apps.files.pipeline.hints import PURGE, hint
from apps.files.pipeline.leases import arm, lock_stages
from apps.files.pipeline.progress import note
from apps.files.pipeline.turns import turn
from apps.files.selectors import file_info
from apps.files.storage import BadParts, Download, Part, UploadGone, storage
from apps.files.types import ENDINGS, FAULTS, FileInfo, Kind, as_kind

URL_LIFE = timedelta(minutes=15)
DOWNLOAD_LIFE = timedelta(minutes=5)
UPLOAD_LIFE = timedelta(hours=24)
NAME_MAX = 255


@dataclass(frozen=True, slots=True)
class PartTarget:
    number: int
    url: str
    size: int


@dataclass(frozen=True, slots=True)
class UploadInfo:
    """Where to send the parts of an upload, and which have arrived. Addresses expire; ask again for new ones."""

    part_size: int
    parts: tuple[PartTarget, ...]
    received: tuple[Part, ...]
    expires_at: datetime


# Uploads


def create_upload(actor: Actor, *, name: str, size: int) -> tuple[FileInfo, UploadInfo]:
    """Begin an upload. The type is taken from the name; what the bytes are is found out after they arrived.

    Raises UnsupportedFile, TooLarge, Invalid (name, empty), QuotaExceeded, Conflict (too many unfinished).
    """
    clean, kind, content_type = _checked_name(name)
    _check_size(size)
    file = File(
        id=new_id(),
        organization_id=actor.organization_id,
        owner_id=actor.user_id,
        name=clean,
        size=size,
        content_type=content_type,
        kind=kind,
        upload_expires_at=timezone.now() + UPLOAD_LIFE,
    )
    file.object_key = f"{removal.prefix(file)}/original"
    quotas.check_room(actor, more_files=1, more_bytes=size)
    file.upload_ref = storage().create_upload(file.object_key, content_type=content_type)
    with transaction.atomic():
        quotas.lock_room(actor)
        quotas.check_room(actor, more_files=1, more_bytes=size)
        file.save(force_insert=True)
        UploadPart.objects.bulk_create(_plan(file))
        note(file)
    return file_info(file), _upload_info(file, received=())


def add_file(actor: Actor, *, file_id: UUID, name: str, data: bytes) -> FileInfo:
    """A file whose content is here already, under an id that the caller keeps. A repeat returns the file as it is.

    Raises UnsupportedFile, TooLarge, Invalid, QuotaExceeded.
    """
    clean, kind, content_type = _checked_name(name)
    _check_size(len(data))
    known = File.objects.filter(id=file_id, owner_id=actor.user_id).first()
    if known is not None:
        return file_info(known)
    quotas.check_room(actor, more_files=1, more_bytes=len(data))
    file = File(
        id=file_id,
        organization_id=actor.organization_id,
        owner_id=actor.user_id,
        name=clean,
        size=len(data),
        content_type=content_type,
        kind=kind,
        state=FileState.PROCESSING,
        stage=StageName.VERIFY,
        uploaded_at=timezone.now(),
    )
    file.object_key = f"{removal.prefix(file)}/original"
    storage().put(file.object_key, data, content_type=content_type)
    try:
        with transaction.atomic():
            quotas.lock_room(actor)
            quotas.check_room(actor, more_files=1, more_bytes=len(data))
            file.save(force_insert=True)
            arm(file, StageName.VERIFY)
            note(file)
    except Conflict:
        storage().delete_prefix(removal.prefix(file))
        raise
    return file_info(file)


def drop_unborn(actor: Actor, file_id: UUID) -> None:
    """Remove the content of a file that `add_file` did not come to make; nothing when there was one."""
    if not File.objects.filter(id=file_id, owner_id=actor.user_id).exists():
        storage().delete_prefix(f"{actor.organization_id}/{file_id}")


def resume_upload(actor: Actor, file_id: object) -> UploadInfo:
    """Fresh addresses and what has arrived. Raises NotFound, Conflict when it is not being uploaded any more."""
    file = access_file(actor, file_id)
    _check_uploading(file)
    return _upload_info(file, received=storage().list_parts(file.object_key, file.upload_ref))


def complete_upload(actor: Actor, file_id: object, *, parts: Sequence[tuple[int, str]]) -> FileInfo:
    """Join the parts and hand the file to the pipeline. A repeat of a completed call returns the file as it is.

    `parts` are the numbers and tags the client was given. Raises Invalid when they are not exactly what was
    planned and received, Conflict when the upload ended otherwise, QuotaExceeded when the limits were lowered
    meanwhile: what was sent stays, so the call may be repeated once there is room.
    """
    file = access_file(actor, file_id)
    if file.state != FileState.UPLOADING:
        return _completed_already(file)
    quotas.check_room(actor, more_files=0, more_bytes=0)
    try:
        size = _join(file, parts)
    except (UploadGone, BadParts):
        # An earlier call joined the parts and died before it said so, or a concurrent one is ahead of us.
        found = storage().size(file.object_key)
        if found is None:
            raise
        size = found
    with transaction.atomic():
        quotas.lock_room(actor)
        locked = File.objects.select_for_update().get(id=file.id)
        if locked.state == FileState.UPLOADING:
            _begin_processing(locked, size, dict(parts))
            return file_info(locked)
    if locked.state == FileState.DELETED:
        storage().delete_prefix(removal.prefix(file))
    return file_info(access_file(actor, file_id))


def _completed_already(file: File) -> FileInfo:
    if file.state == FileState.FAILED and file.error_code == "expired":
        raise Conflict(FAULTS["expired"])
    return file_info(file)


def _join(file: File, parts: Sequence[tuple[int, str]]) -> int:
    planned = {part.number: part.size for part in UploadPart.objects.filter(file=file)}
    if sorted(number for number, _ in parts) != sorted(planned):
        raise BadParts("The list of parts is not complete.")
    named = [Part(number, etag.strip('"'), planned[number]) for number, etag in sorted(parts)]
    missing = set(named) - set(storage().list_parts(file.object_key, file.upload_ref))
    if missing:
        numbers = ", ".join(str(part.number) for part in sorted(missing, key=lambda part: part.number))
        raise BadParts(f"Not received, or not as announced: part {numbers}. Send it again.")
    return storage().complete(file.object_key, file.upload_ref, named)


def _begin_processing(file: File, size: int, etags: dict[int, str]) -> None:
    planned = list(UploadPart.objects.filter(file=file))
    for part in planned:
        part.etag = etags[part.number].strip('"')
    UploadPart.objects.bulk_update(planned, ["etag"])
    file.stage, file.upload_expires_at = StageName.VERIFY, None
    file.state, file.uploaded_at = FileState.PROCESSING, timezone.now()
    if size != file.size:
        file.state, file.stage = FileState.FAILED, ""
        file.error_code, file.error_message = "size_mismatch", FAULTS["size_mismatch"]
    file.save(force_update=True)
    if file.state == FileState.PROCESSING:
        arm(file, StageName.VERIFY)
    note(file)


def _upload_info(file: File, *, received: tuple[Part, ...]) -> UploadInfo:
    seconds = int(URL_LIFE.total_seconds())
    targets = tuple(
        PartTarget(
            part.number,
            storage().part_url(file.object_key, file.upload_ref, number=part.number, size=part.size, expires_s=seconds),
            part.size,
        )
        for part in _plan(file)
    )
    return UploadInfo(settings.FILE_PART_BYTES, targets, received, timezone.now() + URL_LIFE)


def _plan(file: File) -> list[UploadPart]:
    step = settings.FILE_PART_BYTES
    return [
        UploadPart(
            file=file,
            organization_id=file.organization_id,
            number=index + 1,
            size=min(step, file.size - index * step),
        )
        for index in range(ceil(file.size / step))
    ]


def _check_uploading(file: File) -> None:
    if file.state != FileState.UPLOADING:
        raise Conflict("This file is not being uploaded any more.")


# Limits


def _checked_name(name: str) -> tuple[str, Kind, str]:
    """The name without folders and control characters, and the kind that its ending stands for."""
    clean = "".join(char for char in name.replace("\\", "/").rpartition("/")[2] if char.isprintable()).strip()
    if not clean or len(clean) > NAME_MAX:
        raise Invalid("The file needs a name of at most 255 characters.", fields={"name": ["Not a usable name."]})
    known = ENDINGS.get(PurePosixPath(clean).suffix.lower())
    if known is None:
        raise UnsupportedFile(
            "Files of this kind cannot be read. PDF, Office and OpenDocument files, mail, books, web pages, pictures, "
            "tables, text, code and ZIP archives can."
        )
    return clean, *known


def _check_size(size: int) -> None:
    if size <= 0:
        raise Invalid("The file is empty.", fields={"size": ["The file is empty."]})
    if size > settings.FILE_MAX_BYTES:
        raise TooLarge(f"Files may have up to {settings.FILE_MAX_BYTES >> 20} MiB. Split this one or make it smaller.")


# Cancelling, retry and deletion


def retry_file(actor: Actor, file_id: object) -> FileInfo:
    """Read again what could not be read: the whole file when it failed, else only its failed pages.

    Raises Conflict when there is nothing to retry, or when the content itself never arrived.
    """
    with transaction.atomic():
        file = access_file(actor, file_id, lock=True)
        if file.error_code in ("expired", "size_mismatch", "missing"):
            raise Conflict("The upload did not finish. Upload the file again.")
        embedding_failed = FileStage.objects.filter(file=file, name=StageName.EMBED, state=StageState.FAILED).exists()
        if file.state in (FileState.FAILED, FileState.PARTIAL):
            _restart(file)
        elif file.state == FileState.READY and embedding_failed:
            arm(file, StageName.EMBED)
        else:
            raise Conflict("There is nothing to retry: no page of this file has failed.")
        note(file)
    return file_info(file)


def cancel_file(actor: Actor, file_id: object) -> FileInfo:
    """Stop reading. What was read stays usable; the pages that were not are named, and can be read later by a retry.

    Raises Conflict when nothing is being read.
    """
    file = access_file(actor, file_id)
    if file.state != FileState.PROCESSING or not cancellation.stop(file.id):
        raise Conflict("Nothing of this file is being read, so there is nothing to stop.")
    return file_info(access_file(actor, file_id))


def unlock_file(actor: Actor, file_id: object, *, password: str) -> FileInfo:
    """Read a protected file on, from a copy that is opened with the password here and now.

    The password goes to the sandboxed child and nowhere else: no row, queue, log or store ever has it. Raises
    ExtractionFailed (`wrong_password` among others), Conflict when the file asks for none, Overloaded.
    """
    file = access_file(actor, file_id)
    _check_locked(file)
    key = f"{removal.prefix(file)}/unlocked"
    with turn(), storage().local(file.object_key) as path:
        data = extraction.unlock(path, as_kind(file.kind), password, max_bytes=2 * settings.FILE_MAX_BYTES)
    if len(data) > settings.FILE_MAX_BYTES:
        raise TooLarge("The file is too large once it is opened. Split it, and upload the parts.")
    storage().put(key, data, content_type=file.content_type)
    try:
        with transaction.atomic():
            file = access_file(actor, file_id, lock=True)
            _check_locked(file)
            file.unlocked_key = key
            _restart(file)
            note(file)
    except NotFound:
        storage().delete_prefix(key)  # deleted meanwhile: the purge may have been here already
        raise
    return file_info(file)


def _check_locked(file: File) -> None:
    if file.state != FileState.NEEDS_PASSWORD:
        raise Conflict("This file does not ask for a password.")


def _restart(file: File) -> None:
    """Pages that were read stay; parsing skips them. A failed file is also verified again."""
    first = StageName.PARSE if file.state == FileState.PARTIAL else StageName.VERIFY
    Page.objects.filter(file=file, state=PageState.FAILED).delete()
    if first == StageName.VERIFY:
        Page.objects.filter(file=file, text="", state=PageState.READY).delete()
        FileStage.objects.filter(file=file).exclude(name=first).delete()
    file.state, file.stage = FileState.PROCESSING, first
    if file.searchable_at is None:
        file.uploaded_at = timezone.now()
    file.error_code = file.error_message = ""
    file.pages_failed = []
    file.save(force_update=True)
    arm(file, first)


def delete_file(actor: Actor, file_id: object) -> None:
    """Delete at once for everybody who could see it; what it left in stores is removed behind that.

    Raises NotFound, also for a file that is deleted already.
    """
    with transaction.atomic():
        lock_stages(access_file(actor, file_id).id)
        file = access_file(actor, file_id, lock=True)
        file.state, file.stage, file.deleted_at = FileState.DELETED, "", timezone.now()
        file.save(force_update=True)
        FileStage.objects.filter(file=file).delete()  # workers lose their leases now
        hint(PURGE, file.id)
        note(file)


def content_url(actor: Actor, file_id: object) -> str:
    """A short-lived address of the original. Raises NotFound, also while it is still being uploaded."""
    file = access_file(actor, file_id)
    if file.state == FileState.UPLOADING or file.error_code in ("expired", "size_mismatch", "missing", "infected"):
        raise NotFound("This file has no content to download.")
    return storage().url(file.object_key, Download(filename=file.name), expires_s=int(DOWNLOAD_LIFE.total_seconds()))
