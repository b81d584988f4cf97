"""Containers of old Office and of Outlook, whose sectors and directories go round; mails without end."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.bench.poison.types import Poison, named
from tests.factories import formats, hostile, ole

_HEAD = 512


def _valid(ending: str) -> bytes:
    if ending == "doc":
        return ole.word([("some text\r", b"\0\0")] * 12)
    if ending == "ppt":
        return ole.slides([("one", "two" * 900)] * 5)
    return ole.message({0x0037: "subject", 0x1000: "body " * 3_000}, {"a.txt": b"text" * 2_000})


def _fat_at(data: bytes) -> int:
    """Where the first sector of the allocation table begins."""
    return int(_HEAD + _HEAD * int(struct.unpack_from("<I", data, 76)[0]))


def _directory_at(data: bytes) -> int:
    return int(_HEAD + _HEAD * int(struct.unpack_from("<I", data, 48)[0]))


def looped_table(data: bytes) -> bytes:
    """Every sector is followed by the first."""
    whole, at = bytearray(data), _fat_at(data)
    for number in range(min(128, (len(whole) - at) // 4)):
        struct.pack_into("<I", whole, at + 4 * number, 0)
    return bytes(whole)


def looped_sector(data: bytes) -> bytes:
    """Each sector is followed by itself."""
    whole, at = bytearray(data), _fat_at(data)
    for number in range(min(128, (len(whole) - at) // 4)):
        struct.pack_into("<I", whole, at + 4 * number, number)
    return bytes(whole)


def looped_directory(data: bytes) -> bytes:
    """Each entry is its own neighbour on both sides, and its own child."""
    whole, at = bytearray(data), _directory_at(data)
    for number in range(4):
        entry = at + 128 * number
        if entry + 128 <= len(whole):
            struct.pack_into("<III", whole, entry + 68, number, number, number)
    return bytes(whole)


def looped_difat(data: bytes) -> bytes:
    """The table of tables goes on in its own sector."""
    whole = bytearray(data)
    struct.pack_into("<II", whole, 68, 0, 0xFFFFFFF0)
    struct.pack_into("<I", whole, _HEAD + 508, 0)
    return bytes(whole)


def lying_sizes(data: bytes) -> bytes:
    whole, at = bytearray(data), _directory_at(data)
    for number in range(4):
        if at + 128 * (number + 1) <= len(whole):
            struct.pack_into("<Q", whole, at + 128 * number + 120, 0x7FFFFFFFFFFFFFFF)
    return bytes(whole)


def odd_sectors(data: bytes) -> bytes:
    """Sectors of 2 ** 31 bytes."""
    whole = bytearray(data)
    struct.pack_into("<HH", whole, 30, 31, 31)
    return bytes(whole)


def many_streams(count: int) -> bytes:
    return ole.container({f"__substg1.0_{number:04X}001F": b"x" for number in range(count)})


def _nested_slides(depth: int) -> bytes:
    """Records of a presentation inside one another."""
    return ole.container({"PowerPoint Document": struct.pack("<HHI", 15, 0x3E8, 0x7FFFFFFF) * depth})


def _in_one_another(depth: int) -> bytes:
    """A mail with itself attached, and again."""
    inner = ole.message({0x0037: "innermost", 0x1000: "body"})
    for _ in range(depth):
        inner = ole.message({0x0037: "around it", 0x1000: "body"}, {"a.msg": inner})
    return inner


def containers() -> Iterator[Poison]:
    changes = {
        "looped-table": looped_table,
        "looped-sector": looped_sector,
        "looped-directory": looped_directory,
        "looped-difat": looped_difat,
        "lying-sizes": lying_sizes,
        "odd-sectors": odd_sectors,
    }
    for ending in ("doc", "ppt", "msg"):
        for name, change in changes.items():
            yield Poison(f"{name}.{ending}", lambda change=change, ending=ending: change(_valid(ending)))  # type: ignore[misc]
    yield from named("doc", empty_parts=lambda: ole.container({"WordDocument": b"\0" * 4_096, "1Table": b""}))
    yield from named("doc", pieces_that_lie=_lying_pieces)
    yield from named("ppt", nested_records=lambda: _nested_slides(50_000))
    yield from named(
        "ppt", long_record=lambda: ole.container({"PowerPoint Document": b"\0\0\xa0\x0f\xff\xff\xff\x7f" * 900})
    )
    yield from named("msg", many_streams=lambda: many_streams(3_000))
    yield from named("msg", in_one_another=lambda: _in_one_another(5))
    yield from named("msg", header_only=lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 5_000)


def _lying_pieces() -> bytes:
    """A Word document whose table of pieces points everywhere."""
    whole = bytearray(_valid("doc"))
    at = whole.find(b"\2\x10\0\0\0")
    whole[at + 5 : at + 21] = b"\xff\xff\xff\x7f" * 4
    return bytes(whole)


def mails() -> Iterator[Poison]:
    yield from named(
        "eml",
        endless_parts=lambda: hostile.endless_parts(200_000),
        parts_in_parts=lambda: hostile.parts_in_parts(20_000),
        forwarded=lambda: formats.forwarded(60),
        boundary_of_nothing=lambda: b"Subject: x\nContent-Type: multipart/mixed; boundary=\"\"\n\n" + b"--\n" * 500_000,
        encoded_words=lambda: b"Subject: " + b"=?utf-8?q?a?= " * 500_000 + b"\n\nx",
        long_header=lambda: b"Subject: " + b"x" * 20_000_000 + b"\n\nbody",
        many_headers=lambda: b"X-A: b\n" * 1_000_000 + b"\nbody",
        folded=lambda: b"Subject: a\n" + b" b\n" * 1_000_000 + b"\nbody",
        base64_of_nothing=lambda: b"Subject: x\nContent-Transfer-Encoding: base64\n\n" + b"=" * 9_000_000,
        quoted=lambda: b"Subject: x\nContent-Transfer-Encoding: quoted-printable\n\n" + b"=3D=\n" * 2_000_000,
        unknown_charset=lambda: b"Subject: x\nContent-Type: text/plain; charset=x-nothing\n\n" + b"\xff" * 99_999,
        rfc2231=lambda: b"Subject: x\nContent-Type: text/plain;" + b" a*0*=x;" * 99_999 + b"\n\nbody",
        addresses=lambda: b"Subject: x\nTo: " + b"(" * 99_999 + b"<a@b>, " * 99_999 + b"\n\nbody",
        bomb_attached=lambda: formats.mail("x", "y", attachments={"a.zip": formats.archive_in_itself(40)}),
        many_attachments=lambda: formats.mail("x", "y", attachments={f"{n}.txt": b"z" for n in range(2_000)}),
    )  # fmt: skip
    yield from named(
        "pptx",
        slide_of_depth=lambda: _slide("<a>" * 200_000),
        many_slides=lambda: formats.presentation([("x", ["y"])] * 2_500),
    )


def _slide(body: str) -> bytes:
    return formats.package(
        {"[Content_Types].xml": "<x/>", "ppt/presentation.xml": "<x/>", "ppt/slides/slide1.xml": body}
    )


def poisons() -> Iterator[Poison]:
    yield from containers()
    yield from mails()
