"""Pictures of pages for the viewer: rendered once in the sandbox, then kept beside the file's object."""

from __future__ import annotations

from dataclasses import dataclass

from apps.accounts.types import Actor
from apps.core.errors import NotFound
from apps.files import extraction
from apps.files.access import access_file
from apps.files.extraction import ExtractionFailed
from apps.files.models import File, FileState
from apps.files.pipeline.removal import prefix
from apps.files.pipeline.turns import turn
from apps.files.storage import storage
from apps.files.types import DRAWN, as_kind

WIDTHS = (400, 800, 1200, 1600, 2400)
"""Widths that are kept. Others are rounded up, so that nobody can fill the store with one page."""


@dataclass(frozen=True, slots=True)
class Preview:
    """Where a page's picture is kept. Content never changes, so neither does what is under this tag."""

    file: File
    number: int
    width: int

    @property
    def key(self) -> str:
        return f"{prefix(self.file)}/pages/{self.number}/{self.width}.png"

    @property
    def etag(self) -> str:
        return f'"{self.file.id.hex}-{self.number}-{self.width}"'


def access_preview(actor: Actor, file_id: object, number: int, *, width: int) -> Preview:
    """Raises NotFound for a file, page or kind of file that has no picture."""
    file = access_file(actor, file_id)
    if file.kind not in DRAWN or not 1 <= number <= (file.page_count or 0):
        raise NotFound("There is no picture of this page.")
    return Preview(file, number, next((known for known in WIDTHS if known >= width), WIDTHS[-1]))


def picture(preview: Preview) -> bytes:
    """The PNG. Raises NotFound when the page cannot be drawn, Overloaded when too many are being drawn."""
    try:
        return b"".join(storage().read(preview.key))
    except NotFound:
        return _draw(preview)


def _draw(preview: Preview) -> bytes:
    with turn(), storage().local(preview.file.readable_key) as path:
        try:
            png = extraction.render_page(path, as_kind(preview.file.kind), preview.number, preview.width)
        except ExtractionFailed as failed:
            raise NotFound(f"This page cannot be drawn: {failed.message}") from failed
    storage().put(preview.key, png, content_type="image/png")
    if File.objects.filter(id=preview.file.id, state=FileState.DELETED).exists():
        storage().delete_prefix(preview.key)  # deleted while we drew: the purge may have been here already
    return png
