"""OLE containers made by code: what old Office and Outlook keep their documents in ([MS-CFB], version 3)."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import pairwise

_SECTOR, _MINI, _CUTOFF = 512, 64, 4096
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_STORAGE, _STREAM, _ROOT = 1, 2, 5


class _Chains:
    """Sectors with the table of which follows which."""

    def __init__(self, size: int) -> None:
        self.size, self.data, self.next = size, bytearray(), list[int]()

    def add(self, data: bytes) -> int:
        first, count = len(self.next), -(-len(data) // self.size)
        self.data += data.ljust(count * self.size, b"\0")
        self.next += [first + index + 1 for index in range(count)]
        self.next[-1] = _END
        return first


def container(streams: Mapping[str, bytes]) -> bytes:
    """A container of these streams; a path like "storage/stream" puts one into a storage."""
    names = sorted({"/".join(path.split("/")[:depth]) for path in streams for depth in range(1, path.count("/") + 2)})
    minis, sectors = _Chains(_MINI), _Chains(_SECTOR)
    starts: dict[str, int] = {}
    for path, data in streams.items():
        starts[path] = (minis if len(data) < _CUTOFF else sectors).add(data) if data else _END
    root_start = sectors.add(bytes(minis.data)) if minis.data else _END
    links = {name: ([_FREE], [_FREE]) for name in ["", *names]}  # right neighbour, first child
    numbers = {name: number for number, name in enumerate(["", *names])}
    for parent in ["", *names]:
        children = [name for name in names if name.rpartition("/")[0] == parent]
        for first, second in pairwise(children):
            links[first][0][0] = numbers[second]
        links[parent][1][0] = numbers[children[0]] if children else _FREE
    entries = [_entry("Root Entry", _ROOT, _FREE, links[""][1][0], root_start, len(minis.data))]
    for name in names:
        stored = name in streams
        entries.append(
            _entry(name.rpartition("/")[2], _STREAM if stored else _STORAGE, links[name][0][0], links[name][1][0],
                   starts.get(name, 0), len(streams.get(name, b"")))
        )  # fmt: skip
    directory = sectors.add(b"".join(entries))
    mini_fat = sectors.add(struct.pack(f"<{len(minis.next)}I", *minis.next)) if minis.next else _END
    mini_sectors = -(-len(minis.next) * 4 // _SECTOR)
    fat_sectors = 1
    while fat_sectors * 128 < len(sectors.next) + fat_sectors:
        fat_sectors += 1
    fat_start = len(sectors.next)
    table = [*sectors.next, *[_FAT] * fat_sectors]
    table += [_FREE] * (fat_sectors * 128 - len(table))
    head = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6, 0, fat_sectors, directory,
        0, _CUTOFF, mini_fat, mini_sectors, _END, 0,
    ) + struct.pack("<109I", *range(fat_start, fat_start + fat_sectors), *[_FREE] * (109 - fat_sectors))  # fmt: skip
    return head + bytes(sectors.data) + struct.pack(f"<{len(table)}I", *table)


def _entry(name: str, kind: int, right: int, child: int, start: int, size: int) -> bytes:
    encoded = (name + "\0").encode("utf-16-le")
    return struct.pack(
        "<64sHBBIII16xI16xIQ", encoded, len(encoded), kind, 1, _FREE, right, child, 0, start, size
    )  # fmt: skip


def message(properties: Mapping[int, str], attachments: Mapping[str, bytes] | None = None) -> bytes:
    """An Outlook message with these texts by their property's number, and these attachments."""
    streams = {"__properties_version1.0": bytes(32)}
    for code, text in properties.items():
        streams[f"__substg1.0_{code:04X}001F"] = text.encode("utf-16-le")
    for number, (name, data) in enumerate((attachments or {}).items()):
        folder = f"__attach_version1.0_#{number:08X}"
        streams[f"{folder}/__properties_version1.0"] = bytes(8)
        streams[f"{folder}/__substg1.0_3707001F"] = name.encode("utf-16-le")
        streams[f"{folder}/__substg1.0_37010102"] = data
    return container(streams)


def word(paragraphs: list[tuple[str, bytes]], *, flags: int = 0) -> bytes:
    """A Word document of before 2007: each paragraph ends with its mark and has properties (style, modifiers)."""
    text = "".join(paragraph for paragraph, _ in paragraphs)
    body = text.encode("utf-16-le")
    text_at, page_at = 2048, 2048 + -(-len(body) // 512) * 512
    page, bottom, offsets, positions = bytearray(512), 510, [], [text_at]
    for paragraph, properties in paragraphs:
        padded = properties + b"\0" * (1 - len(properties) % 2)
        bottom -= 1 + len(padded)
        bottom -= bottom % 2
        page[bottom : bottom + 1 + len(padded)] = bytes(((len(padded) + 1) // 2,)) + padded
        offsets.append(bottom // 2)
        positions.append(positions[-1] + 2 * len(paragraph))
    struct.pack_into(f"<{len(positions)}I", page, 0, *positions)
    for number, offset in enumerate(offsets):
        page[4 * len(positions) + 13 * number] = offset
    page[511] = len(paragraphs)
    piece = struct.pack("<IIHIH", 0, len(text), 0, text_at, 0)
    clx = b"\2" + struct.pack("<I", len(piece)) + piece
    bins = struct.pack("<III", text_at, text_at + len(body), page_at // 512)
    fib = bytearray(2048)
    struct.pack_into("<HH6xH", fib, 0, 0xA5EC, 193, flags | 0x0200)
    struct.pack_into("<H", fib, 32, 14)
    struct.pack_into("<H", fib, 62, 22)
    struct.pack_into("<8i", fib, 76, len(text), 0, 0, 0, 0, 0, 0, 0)
    pairs = 64 + 4 * 22 + 2
    struct.pack_into("<II", fib, pairs + 8 * 33, 0, len(clx))
    struct.pack_into("<II", fib, pairs + 8 * 13, len(clx), len(bins))
    main = bytes(fib) + body.ljust(page_at - text_at, b"\0") + bytes(page)
    return container({"WordDocument": main, "1Table": clx + bins})


def _record(kind: int, data: bytes, version: int = 0, instance: int = 0) -> bytes:
    return struct.pack("<HHI", instance << 4 | version, kind, len(data)) + data


def slides(texts: list[tuple[str, str]]) -> bytes:
    """A presentation of before 2007; each slide has a title and a body."""
    listed = b"".join(
        _record(0x03F3, bytes(20))
        + _record(0x0F9F, struct.pack("<I", 0)) + _record(0x0FA0, title.encode("utf-16-le"))
        + _record(0x0F9F, struct.pack("<I", 1)) + _record(0x0FA8, body.encode("latin-1"))
        for title, body in texts
    )  # fmt: skip
    document = _record(0x03E8, _record(0x0FF0, listed, version=15), version=15)
    return container({"PowerPoint Document": document + _record(0x03EE, b"", version=15) * len(texts)})
