"""One pass over a file's bytes: hash, test signature, true type against the announced kind, archive bounds, clamd."""

from __future__ import annotations

import hashlib
import re
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
    "zip": "an archive (ZIP, TAR, GZ, BZ2 or XZ)",
    "text": "a text file",
    "markdown": "a Markdown file",
    "code": "a text file",
    "image": "a picture (PNG, JPEG, TIFF, WebP, HEIC, GIF or BMP)",
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
_FOLDERS: dict[Kind, str] = {"docx": "word/", "pptx": "ppt/", "sheet": "xl/"}
"""Where Office keeps a document, whatever the program that wrote it called its main part."""
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"GIF87a", b"GIF89a")
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")
_UNTOLD = frozenset({"unknown", "undefined"})
_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
_PRINTABLE_SHARE = 0.97
_FEWEST = 8
_EAST_ASIAN = re.compile("[\\s -~\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff5e]")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")
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
    if _is_picture(head) or (named == "image" and head.startswith(b"BM")):
        return "image"
    if named == "zip" and (head.startswith(_PACKED) or head[257:].startswith(b"ustar")):
        return "zip"
    if b"%PDF-" in head and found.group != "executable" and named not in ("eml", "zip"):
        return "pdf"
    if named == "sheet" and head.startswith(b"\x09") and found.label in ("xls", "unknown"):
        return "sheet"
    if head.lstrip().startswith(b"{\\rtf"):
        return "rtf"
    return "text" if (found.is_text or found.label in _UNTOLD) and _could_be_text(head) else None


def _package_kind(names: frozenset[str], named: Kind) -> Kind:
    known = next((kind for marks, kind in _PACKAGES if marks <= names), None)
    parts = names & {"content.xml", "encrypted-package"}
    if known is None and "mimetype" in names and parts and named in _OPEN_DOCUMENTS:
        return named
    if known is None and "[Content_Types].xml" in names and named in _FOLDERS:
        return named if any(name.startswith(_FOLDERS[named]) for name in names) else "zip"
    if named == "epub" and "META-INF/container.xml" in names:
        return named  # without the mark that it should begin with
    return known or "zip"


def _is_picture(head: bytes) -> bool:
    webp = head.startswith(b"RIFF") and head[8:12] == b"WEBP"
    return head.startswith(_PICTURES) or webp or (head[4:8] == b"ftyp" and head[8:12] in _HEIC)


def _could_be_text(head: bytes) -> bool:
    """Whether bytes that are of no known format can be text in some encoding: hardly any control characters, or every
    second (fourth) byte out of a small range, as the high bytes of UTF-16 and UTF-32 are."""
    if head.startswith(_WIDE_MARKS):
        return True
    if len(head.translate(None, _CONTROLS)) >= _PRINTABLE_SHARE * len(head):
        return True
    return (
        _ideographs(head)
        or any(_from_few(head[at::2]) and not _from_few(head[1 - at :: 2]) for at in (0, 1))
        or (_from_few(head[0::4]) != _from_few(head[3::4]) and _from_few(head[1::4]) and _from_few(head[2::4]))
    )


def _ideographs(head: bytes) -> bool:
    """Whether these are the characters of Chinese, Japanese or Korean in UTF-16, which noise has half as often."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = head[: len(head) // 2 * 2].decode(encoding, "replace")
        if len(text) >= _FEWEST and len(_EAST_ASIAN.findall(text)) >= _PRINTABLE_SHARE * len(text):
            return True
    return False


def _from_few(part: bytes) -> bool:
    """Whether nearly all bytes are one of two low values."""
    usual = sorted((part.count(value) for value in set(part) if value < 0x60), reverse=True)
    return sum(usual[:2]) >= 0.7 * len(part)


def _describe(found: ContentTypeInfo) -> str:
    return f"{found.description} ({found.mime_type})"
