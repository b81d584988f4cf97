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
    "text": "a text file",
    "markdown": "a Markdown file",
    "image": "a PNG or JPEG image",
}


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
    true = _true_kind(path, head, found)
    if true is None:
        raise FileFault(
            "mislabelled",
            f"This is not {_NAMES[kind]}: its content looks like {_describe(found)}.",
        )
    if true != kind and not {true, kind} <= {"text", "markdown"}:
        raise FileFault(
            "mislabelled",
            f"This is named as {_NAMES[kind]} but is {_NAMES[true]}. Rename it.",
        )


def _true_kind(path: Path, head: bytes, found: ContentTypeInfo) -> Kind | None:
    """The kind that the bytes are, whatever the name says; None when it is none that can be read.

    Containers are told by their own marks, because a guess from samples is least sure about them.
    """
    if head.startswith(b"PK\x03\x04"):
        names = archive.entry_names(path, _Signatures().look)
        return "docx" if "word/document.xml" in names and "[Content_Types].xml" in names else None
    if head.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")):
        return "image"
    if b"%PDF-" in head and found.group != "executable":
        return "pdf"
    return "text" if _utf16(head) or (found.is_text and b"\0" not in head) else None


def _utf16(head: bytes) -> bool:
    return head.startswith((b"\xff\xfe", b"\xfe\xff"))


def _describe(found: ContentTypeInfo) -> str:
    return f"{found.description} ({found.mime_type})"
