"""One pass over a file's bytes: hash, test signature, true type against the announced kind, archive bounds, clamd."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from magika import ContentTypeInfo, Magika

from apps.files.scanning import archive, clamd
from apps.files.types import FileFault, Kind

_CHUNK = 1 << 20
_PDF_HEADER_SPAN = 1024  # readers accept junk before the header up to here
# The industry's harmless test string, kept in two halves so that scanners do not flag this file.
_EICAR = rb"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR" + rb"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
_NAMES: dict[Kind, str] = {
    "pdf": "a PDF",
    "docx": "a Word document",
    "pptx": "a PowerPoint presentation",
    "sheet": "a spreadsheet",
    "csv": "a table in text form",
    "html": "a web page",
    "eml": "a mail",
    "msg": "an Outlook message",
    "doc": "a Word document of before 2007",
    "ppt": "a PowerPoint presentation of before 2007",
    "rtf": "an RTF document",
    "epub": "an EPUB book",
    "odt": "an OpenDocument text",
    "odp": "an OpenDocument presentation",
    "zip": "a ZIP archive",
    "text": "a text file",
    "markdown": "a Markdown file",
    "code": "a text file",
    "image": "a picture (PNG, JPEG, TIFF, WebP or HEIC)",
}
_TEXTS: frozenset[Kind] = frozenset({"text", "markdown", "code", "csv", "html", "eml", "rtf"})
_OLES: frozenset[Kind] = frozenset({"doc", "ppt", "msg", "sheet", "docx", "pptx"})
"""What is kept in the container of old Office; encrypted new documents are, too. The child tells them apart."""
_OPEN_DOCUMENTS: frozenset[Kind] = frozenset({"odt", "odp", "sheet"})
_PACKAGES: tuple[tuple[frozenset[str], Kind], ...] = (
    (frozenset({"[Content_Types].xml", "word/document.xml"}), "docx"),
    (frozenset({"[Content_Types].xml", "ppt/presentation.xml"}), "pptx"),
    (frozenset({"[Content_Types].xml", "xl/workbook.xml"}), "sheet"),
    (frozenset({"[Content_Types].xml", "xl/workbook.bin"}), "sheet"),
    (frozenset({"mimetype", "META-INF/container.xml"}), "epub"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*")
_HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"mif1", b"msf1", b"hevc", b"hevx"})


@dataclass(frozen=True, slots=True)
class Inspected:
    """What is known of a file that passed. `scanner` says who looked for malware."""

    sha256: str
    scanner: Literal["clamd", "signatures"]


class _Signatures:
    """Looks for the test string in a stream of chunks, also across their borders."""

    def __init__(self) -> None:
        self._tail = b""

    def look(self, chunk: bytes) -> None:
        window = self._tail + chunk
        if _EICAR in window:
            raise FileFault("infected")
        self._tail = window[1 - len(_EICAR) :]


def inspect(path: Path, kind: Kind, *, clamd_socket: str) -> Inspected:
    """Raises FileFault with the reason when the file must not go on, Retryable when it could not be told."""
    sha256 = _hash(path)
    _check_type(path, kind)
    by_clamd = clamd.scan(path, clamd_socket)
    return Inspected(sha256, "clamd" if by_clamd else "signatures")


def _hash(path: Path) -> str:
    digest, signatures = hashlib.sha256(), _Signatures()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            signatures.look(chunk)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _magika() -> Magika:
    return Magika()


def _check_type(path: Path, kind: Kind) -> None:
    with path.open("rb") as file:
        head = file.read(_PDF_HEADER_SPAN)
    if not head:
        raise FileFault("empty")
    found = _magika().identify_path(path).output
    true = _true_kind(path, head, found, kind)
    if true is None:
        raise FileFault(
            "mislabelled",
            f"This is not {_NAMES[kind]}: its content looks like {_describe(found)}.",
        )
    if true != kind and not {true, kind} <= _TEXTS:
        raise FileFault(
            "mislabelled",
            f"This is named as {_NAMES[kind]} but is {_NAMES[true]}. Rename it.",
        )


def _true_kind(path: Path, head: bytes, found: ContentTypeInfo, named: Kind) -> Kind | None:
    """The kind that the bytes are, whatever the name says; None when it is none that can be read.

    Containers are told by their own marks, because a guess from samples is least sure about them. What these marks
    leave open is as it is named.
    """
    if head.startswith(b"PK\x03\x04"):
        return _package_kind(archive.entry_names(path, _Signatures().look), named)
    if head.startswith(_OLE):
        return named if named in _OLES else "doc"
    if _is_picture(head):
        return "image"
    if b"%PDF-" in head and found.group != "executable" and named not in ("eml", "zip"):
        return "pdf"
    if named == "sheet" and head.startswith(b"\x09") and found.label in ("xls", "unknown"):
        return "sheet"
    if head.lstrip().startswith(b"{\\rtf"):
        return "rtf"
    return "text" if _utf16(head) or (found.is_text and b"\0" not in head) else None


def _package_kind(names: frozenset[str], named: Kind) -> Kind:
    known = next((kind for marks, kind in _PACKAGES if marks <= names), None)
    if known is None and {"mimetype", "content.xml"} <= names and named in _OPEN_DOCUMENTS:
        return named
    return known or "zip"


def _is_picture(head: bytes) -> bool:
    webp = head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    return head.startswith(_PICTURES) or webp or (head[4:8] == b"ftyp" and head[8:12] in _HEIC)


def _utf16(head: bytes) -> bool:
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _describe(found: ContentTypeInfo) -> str:
    return f"{found.description} ({found.mime_type})"
