"""Bounds of ZIP containers (DOCX), checked before anything opens one.

The end record is read by hand first: `zipfile` builds an object an entry, so a directory with millions of
entries would cost gigabytes before any limit could be looked at.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from apps.files.types import FileFault

MAX_ENTRIES = 5_000
MAX_UNPACKED = 300 << 20
MAX_RATIO = 200
_RATIO_FLOOR = 32 << 20  # small documents of repeated text compress well and harm nobody
_END = b"PK\x05\x06"
_END_SPAN = 22 + 65_535
_CHUNK = 256 << 10


def entry_names(path: Path, look: Callable[[bytes], None]) -> frozenset[str]:
    """Unpack every entry within the bounds, showing each chunk to `look`, and return the names.

    Raises FileFault `bomb` past a bound, `damaged` when it is no readable archive, `encrypted` for a locked entry.
    """
    _check_end(path)
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check_directory(entries, path.stat().st_size)
            left = MAX_UNPACKED
            for entry in entries:
                left -= _unpack(archive, entry, left, look)
            return frozenset(entry.filename for entry in entries)
    except OSError as error:
        if error.errno is not None:
            raise  # of the disk; what bzip2 cannot unpack has no number
        raise FileFault("damaged") from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        NotImplementedError,
        struct.error,
        ValueError,
    ) as error:
        raise FileFault("damaged") from error


def _check_end(path: Path) -> None:
    with path.open("rb") as file:
        size = path.stat().st_size
        file.seek(max(0, size - _END_SPAN))
        tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        raise FileFault("damaged")
    entries, directory = struct.unpack_from("<HI", tail, at + 10)
    if entries > MAX_ENTRIES or directory == 0xFFFFFFFF:
        raise FileFault("bomb")


def _check_directory(entries: list[zipfile.ZipInfo], packed: int) -> None:
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED:
        raise FileFault("bomb")
    if unpacked > _RATIO_FLOOR and unpacked > MAX_RATIO * packed:
        raise FileFault("bomb")
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:  # entries that share bytes: the trick of non-recursive bombs
            raise FileFault("bomb")
        end = entry.header_offset + entry.compress_size
        if entry.flag_bits & 0x1:
            raise FileFault("encrypted")


def _unpack(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    limit: int,
    look: Callable[[bytes], None],
) -> int:
    total = 0
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK):
            total += len(chunk)
            if total > limit:
                raise FileFault("bomb")
            look(chunk)
    look(b"\0")  # entries do not continue one another
    return total
