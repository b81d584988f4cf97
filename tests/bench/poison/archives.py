"""Archives: bombs flat, nested and overlapping, archives that hold themselves, lying directories."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from apps.files.types import ENDINGS
from tests.bench.poison.types import Poison, named
from tests.factories import documents, formats

MIB = 1 << 20
_OFFICE = {"[Content_Types].xml": "<Types/>", "word/document.xml": "<x/>"}


def nested(levels: int, width: int, size: int) -> bytes:
    """An archive of `width` equal archives, `levels` deep, over one entry of `size` zeros."""
    inner = documents.archive({"zeros.txt": bytes(size)})
    for level in range(levels):
        inner = documents.archive({f"{level}-{number}.zip": inner for number in range(width)})
    return inner


def quine() -> bytes:
    """An archive whose only entry's data is the archive itself: stored, and as long as it says."""
    name = b"self.zip"
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 10, 0, 0, 0, 0, 0, 0xFFFF, 0xFFFF, len(name), 0) + name
    entry = struct.pack(
        "<4s6H3I5H2I", b"PK\1\2", 10, 10, 0, 0, 0, 0, 0, 0xFFFF, 0xFFFF, len(name), 0, 0, 0, 0, 0, 0
    )  # fmt: skip
    directory = entry + name
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(directory), len(local), 0)
    return local + directory + end


def deflate_quine() -> bytes:
    """Deflate whose back references go on repeating what they have produced; the entry never says how long it is."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return _entry(b"again.txt", packer.compress(b"abc" * (80 * MIB)) + packer.flush(), size=1)


def _entry(name: bytes, data: bytes, *, size: int, method: int = 8, flags: int = 0) -> bytes:
    """An archive of one entry that says it has `size` bytes."""
    common = struct.pack("<5H3IH", 20, flags, method, 0, 0, 0, len(data), size, len(name))
    local = b"PK\3\4" + common + bytes(2) + name
    directory = b"PK\1\2\x14\0" + common + bytes(16) + name
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(directory), len(local) + len(data), 0)
    return local + data + directory + end


def many_entries(count: int) -> bytes:
    return documents.archive({f"{number}.txt": b"x" for number in range(count)})


def long_names(count: int, size: int) -> bytes:
    return documents.archive({f"{number:05}{'n' * size}.txt": b"x" for number in range(count)})


def climbing() -> bytes:
    return documents.archive(
        {"../../etc/passwd": b"x", "/etc/shadow.txt": b"x", "C:\\boot.ini": b"x", "a\0b.txt": b"x"}
    )


def _end_with(count: int, directory: int) -> bytes:
    return b"PK\3\4" + bytes(26) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, directory, 0, 0)


def poisons() -> Iterator[Poison]:
    yield from named(
        "zip",
        flat_bomb=lambda: documents.archive({"zeros.txt": bytes(400 * MIB)}),
        many_small_bombs=lambda: documents.archive({f"{number}.txt": bytes(8 * MIB) for number in range(60)}),
        nested_bomb=lambda: nested(4, 16, 4 * MIB),
        wide_bomb=lambda: nested(1, 60, 20 * MIB),
        overlapping=documents.overlapping_archive,
        quine=quine,
        deflate_quine=deflate_quine,
        in_itself=lambda: formats.archive_in_itself(200),
        many_entries=lambda: many_entries(20_000),
        long_names=lambda: long_names(4_000, 900),
        climbing_names=climbing,
        lying_count=lambda: _end_with(0xFFFE, 0xFFFFFF),
        lying_zip64=lambda: _end_with(0xFFFF, 0xFFFFFFFF),
        encrypted_entry=lambda: _entry(b"a.txt", b"x" * 40, size=28, flags=1),
        unknown_method=lambda: _entry(b"a.txt", b"x" * 40, size=40, method=99),
        bzip2_garbage=lambda: _entry(b"a.txt", b"BZh9" + b"\x17" * 400, size=1 << 30, method=12),
        lzma_huge_dictionary=lambda: _entry(
            b"a.txt", b"\x10\2\5\0\x5d\xff\xff\xff\xff" + bytes(99), size=1 << 28, method=14
        ),
        only_an_end=lambda: struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0, 0, 0, 0, 0),
        every_kind_inside=_every_kind,
    )
    yield from named(
        "docx",
        bomb=lambda: documents.bomb_word(310 * MIB),
        bomb_of_spaces=lambda: documents.archive({**_bytes(_OFFICE), "word/styles.xml": b" " * (250 * MIB)}),
        overlapping=documents.overlapping_archive,
        without_its_parts=lambda: documents.archive(dict.fromkeys(_OFFICE, b"")),
    )


def _bytes(entries: dict[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in entries.items()}


def _every_kind() -> bytes:
    """Broken files of every kind in one archive."""
    heads = {".pdf": b"%PDF-1.7\n", ".rtf": b"{\\rtf1", ".doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".zip": b"PK\3\4"}
    return documents.archive({f"a{end}": heads.get(end, b"") + bytes(range(256)) * 9 for end in ENDINGS})
