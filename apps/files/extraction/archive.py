"""Archives (ZIP, TAR) and single packed files (GZ, BZ2, XZ): every file inside, read as what it is, under its name."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from apps.files.extraction.content import Content, Package, Scope
from apps.files.extraction.types import Element, ExtractionFailed, Notice, Reason

_LITTER = ("__MACOSX/", ".DS_Store", "Thumbs.db")
_MAX_MEMBERS = 10_000
_TAR_MARK, _TAR_MARK_AT = b"ustar", 257
_DAMAGE = (tarfile.TarError, lzma.LZMAError, zlib.error, OSError, EOFError, ValueError)


def read(file: BinaryIO, scope: Scope) -> Content:
    """Raises ExtractionFailed."""
    head = file.read(_TAR_MARK_AT + len(_TAR_MARK))
    file.seek(0)
    if head.startswith(b"PK"):
        return Content(list(_zipped(file, scope)))
    try:
        if (packed := _unpacking(file, head)) is not None:
            return Content(list(_packed(packed, _name_in(head), scope)))
        return Content(list(_taped(file, scope)))
    except _DAMAGE as error:
        raise ExtractionFailed(Reason.DAMAGED) from error


def _is_litter(name: str) -> bool:
    return name.startswith(_LITTER) or name.endswith(_LITTER) or posixpath.basename(name).startswith("._")


def _zipped(file: BinaryIO, scope: Scope) -> Iterator[list[Element]]:
    package = Package(file, scope)
    for member in package.members:
        name = member.filename
        if not member.is_dir() and not _is_litter(name):
            yield from scope.inside(name, lambda name=name: package.read(name))  # type: ignore[misc]


def _unpacking(file: BinaryIO, head: bytes) -> BinaryIO | None:
    """What a single packed file unpacks to; None for one that is none."""
    if head.startswith(b"\x1f\x8b"):
        return io.BufferedReader(gzip.GzipFile(fileobj=file))
    if head.startswith(b"BZh"):
        return io.BufferedReader(bz2.BZ2File(file))
    return io.BufferedReader(lzma.LZMAFile(file)) if head.startswith(b"\xfd7zXZ\0") else None


def _name_in(head: bytes) -> str:
    """The name that GZ keeps of the file."""
    if head.startswith(b"\x1f\x8b") and len(head) > 10 and head[3] & 0x0C == 0x08:
        return posixpath.basename(head[10:].partition(b"\0")[0].decode("latin-1"))
    return ""


def _packed(file: BinaryIO, name: str, scope: Scope) -> Iterator[list[Element]]:
    begins = file.peek(_TAR_MARK_AT + len(_TAR_MARK)) if isinstance(file, io.BufferedReader) else b""
    if begins[_TAR_MARK_AT:].startswith(_TAR_MARK):
        yield from _taped(file, scope)
        return
    yield from scope.inside(name or "the file inside", lambda: _bounded(file, scope))


def _bounded(file: BinaryIO, scope: Scope) -> bytes:
    """Everything, if it is not too large. Raises ExtractionFailed."""
    data = file.read(scope.spent.unpacked_bytes + 1)
    scope.spend(len(data))
    return data


def _taped(file: BinaryIO, scope: Scope) -> Iterator[list[Element]]:
    """Members in the only order that a stream has. One that breaks off is read as far as it goes."""
    count = 0
    try:
        with tarfile.open(fileobj=file, mode="r|") as tape:
            for member in tape:
                count += 1
                if count > _MAX_MEMBERS:
                    scope.notice(Notice.CUT_SHORT)
                    return
                if member.isreg():
                    scope.spend(member.size)
                    if not _is_litter(member.name):
                        yield from scope.inside(member.name, lambda member=member: _member(tape, member))  # type: ignore[misc]
    except _DAMAGE:
        if not count:
            raise
        scope.notice(Notice.CUT_SHORT)


def _member(tape: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    found = tape.extractfile(member)
    return found.read() if found is not None else b""
