"""One reader a kind, for documents and for the files inside them."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import BinaryIO

from apps.files.extraction.content import OLE, Content, Scope, opened_ole
from apps.files.extraction.pictures import is_picture
from apps.files.extraction.types import PICTURES_MAX, ExtractionFailed, Reason
from apps.files.types import Kind, kind_of

TNEF = b"\x78\x9f\x3e\x22"
Read = Callable[[BinaryIO, Scope], Content]

_READERS: dict[Kind, tuple[str, str]] = {
    "docx": ("docx", "read"),
    "pptx": ("slides", "read"),
    "sheet": ("sheets", "read"),
    "csv": ("sheets", "read_delimited"),
    "html": ("markup", "read"),
    "eml": ("mail", "read"),
    "msg": ("outlook", "read"),
    "doc": ("legacy.word", "read"),
    "ppt": ("legacy.slides", "read"),
    "rtf": ("rtf", "read"),
    "epub": ("book", "read"),
    "odt": ("opendocument", "read"),
    "odp": ("opendocument", "read"),
    "zip": ("archive", "read"),
    "text": ("plain", "read_text"),
    "markdown": ("plain", "read_markdown"),
    "code": ("plain", "read_code"),
}
_PACKAGES: tuple[tuple[str, Kind], ...] = (
    ("word/document.xml", "docx"),
    ("ppt/presentation.xml", "pptx"),
    ("xl/workbook.", "sheet"),
    ("META-INF/container.xml", "epub"),
)
_STREAMS: tuple[tuple[str, Kind], ...] = (
    ("WordDocument", "doc"),
    ("PowerPoint Document", "ppt"),
    ("Workbook", "sheet"),
    ("Book", "sheet"),
    ("__properties_version1.0", "msg"),
)


def reader_of(kind: Kind) -> Read:
    """Raises ExtractionFailed."""
    if kind not in _READERS:
        raise ExtractionFailed(Reason.UNSUPPORTED)
    module, function = _READERS[kind]
    read: Read = getattr(import_module(f"apps.files.extraction.{module}"), function)
    return read


def read_part(name: str, data: bytes, scope: Scope) -> Content | None:
    """A file inside another, as what its bytes or else its name say; None when it is of no kind that can be read."""
    if data.startswith(OLE) and (packed := _object(data)) is not None:
        return read_part(packed[0] or name, packed[1], scope)
    if data.startswith(b"%PDF-"):
        from apps.files.extraction.pdf import inside

        return inside.read(data, scope)
    if is_picture(data):
        return Content([[place] for place in scope.picture(len(data), lambda: data, most=PICTURES_MAX)])
    if data.startswith(TNEF):
        from apps.files.extraction import tnef

        return tnef.read(data, scope)
    kind = _kind_of(name, data)
    return reader_of(kind)(io.BytesIO(data), scope) if kind in _READERS else None


def _kind_of(name: str, data: bytes) -> Kind | None:
    if data.startswith(OLE):
        return _first(_STREAMS, partial(_has_stream, data))
    if data.startswith(b"PK\x03\x04"):
        inner = _first(_PACKAGES, lambda member: member.encode() in data)
        if inner is not None:
            return inner
    elif data.startswith(b"{\\rtf"):
        return "rtf"
    known = kind_of(name)
    return "zip" if known is None and data.startswith(b"PK\x03\x04") else known


def _first(marks: tuple[tuple[str, Kind], ...], there: Callable[[str], bool]) -> Kind | None:
    return next((kind for mark, kind in marks if there(mark)), None)


def _has_stream(data: bytes, name: str) -> bool:
    with opened_ole(io.BytesIO(data)) as ole:
        return bool(ole.exists(name))


def _object(data: bytes) -> tuple[str, bytes] | None:
    """Name and bytes of what an embedded OLE object wraps."""
    with opened_ole(io.BytesIO(data)) as ole:
        for stream in ("Package", "CONTENTS", "EmbeddedOdf"):
            if ole.exists(stream):
                return "", ole.openstream(stream).read()
        if ole.exists("\x01Ole10Native"):
            return native(ole.openstream("\x01Ole10Native").read())
    return None


def native(data: bytes) -> tuple[str, bytes]:
    """A file as the Windows packager keeps it: size, flags, label, path, temporary path, and the bytes."""
    label, _, rest = data[6:].partition(b"\0")
    _, _, rest = rest.partition(b"\0")
    skip = int.from_bytes(rest[4:8], "little")
    at = 8 + skip
    size = int.from_bytes(rest[at : at + 4], "little")
    return label.decode("latin-1"), rest[at + 4 : at + 4 + size]
