"""Pictures: headers that promise more pixels than there are, and coders fed with garbage."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator

from PIL import Image

from tests.bench.poison.types import Poison, named
from tests.factories import documents, formats, pictured

SIDE = 100_000


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, *chunks: bytes, body: bytes = b"") -> bytes:
    head = _chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
    data = _chunk(b"IDAT", body or zlib.compress(bytes(4_000)))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(chunks) + data + _chunk(b"IEND", b"")


def png_text_bomb() -> bytes:
    return png(9, 9, _chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(200 << 20), 9)))


def png_profile_bomb() -> bytes:
    return png(9, 9, _chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(200 << 20), 9)))


def jpeg(width: int, height: int) -> bytes:
    """A JPEG of a few pixels that says it has others."""
    whole = bytearray(_saved("JPEG"))
    at = whole.index(b"\xff\xc0")
    struct.pack_into(">2H", whole, at + 5, height, width)
    return bytes(whole)


def jpeg_scans(count: int) -> bytes:
    """A progressive JPEG that paints its pixels again and again."""
    buffer = io.BytesIO()
    Image.effect_noise((3_000, 3_000), 90).save(buffer, "JPEG", progressive=True)
    whole = buffer.getvalue()
    last = whole.rindex(b"\xff\xda")
    return whole[:last] + whole[last:-2] * count + b"\xff\xd9"


def tiff(width: int, height: int, *, following: int = 0, count: int = 1) -> bytes:
    """One directory of a TIFF; the next one is at `following`, which may be itself."""
    tags = ((256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1),
            (278, 4, height), (279, 4, width * height & 0xFFFFFFFF))  # fmt: skip
    entries = b"".join(struct.pack("<HHII", tag, kind, count, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + struct.pack("<I", following)


def _saved(form: str, size: tuple[int, int] = (64, 64)) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(buffer, form)
    return buffer.getvalue()


def webp(width: int, height: int) -> bytes:
    """An extended WebP whose canvas is of that size, with a small picture in it."""
    inner = _saved("WEBP")[12:]
    canvas = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + canvas + inner
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _box(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data) + 8) + name + data


def heic(width: int, height: int) -> bytes:
    """The boxes of a HEIC picture with nothing behind them."""
    size = _box(b"ispe", struct.pack(">III", 0, width, height))
    links = _box(b"ipma", struct.pack(">II", 0, 1) + struct.pack(">HBB", 1, 1, 1))
    properties = _box(b"iprp", _box(b"ipco", size) + links)
    entry = _box(b"infe", struct.pack(">IHH4s", 2 << 24, 1, 0, b"hvc1") + b"\0")
    items = _box(b"iinf", struct.pack(">IH", 0, 1) + entry)
    primary = _box(b"pitm", struct.pack(">IH", 0, 1))
    place = _box(b"iloc", struct.pack(">IHHHHHII", 0, 0x4400, 1, 1, 0, 1, 0, 99))
    meta = _box(b"meta", struct.pack(">I", 0) + primary + items + place + properties)
    return _box(b"ftyp", b"heic\0\0\0\0mif1heic") + meta + bytes(99)


def nested_boxes(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = _box(b"meta", bytes(4) + inner)
    return _box(b"ftyp", b"heic\0\0\0\0mif1heic") + inner


def poisons() -> Iterator[Poison]:
    yield from named(
        "png",
        pixel_bomb=lambda: png(SIDE, SIDE),
        pixel_bomb_one_bit=documents.pixel_bomb,
        pixel_strip=lambda: png(40_000_000, 1),
        most_pixels=lambda: png(7_000, 7_000, body=zlib.compress(bytes(7_000 * 21_001), 9)),
        text_bomb=png_text_bomb,
        profile_bomb=png_profile_bomb,
        data_bomb=lambda: png(9, 9, body=zlib.compress(bytes(200 << 20), 9)),
        chunk_without_end=lambda: png(9, 9)[:33] + b"\xff\xff\xff\xffIDAT" + bytes(99),
        many_chunks=lambda: png(9, 9, _chunk(b"tEXt", b"a\0b") * 500_000),
        nothing_but_noise=lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 400,
    )
    yield from named(
        "jpg",
        pixel_bomb=lambda: jpeg(65_500, 65_500),
        pixel_strip=lambda: jpeg(65_500, 1),
        endless_scans=lambda: jpeg_scans(60),
        markers_only=lambda: b"\xff\xd8" + b"\xff\xe1\0\2" * 500_000,
        cut=lambda: _saved("JPEG", (900, 900))[:4_000],
    )
    yield from named(
        "tiff",
        pixel_bomb=lambda: tiff(SIDE, SIDE),
        looping_pages=lambda: tiff(64, 64, following=8),
        lying_counts=lambda: tiff(64, 64, count=0xFFFFFFFF),
        many_pages=lambda: formats.tiff([Image.new("L", (8, 8))] * 2_100),
        offset_beyond=lambda: b"MM\0*\xff\xff\xff\xf0" + bytes(64),
    )
    yield from named(
        "webp",
        pixel_bomb=lambda: webp(1 << 24, 1 << 24),
        most_pixels=lambda: webp(16_000, 16_000),
        lying_size=lambda: b"RIFF\xff\xff\xff\xffWEBPVP8 \xff\xff\xff\xff" + bytes(99),
    )
    yield from named(
        "heic",
        pixel_bomb=lambda: heic(SIDE, SIDE),
        small_and_empty=lambda: heic(64, 64),
        nested_boxes=lambda: nested_boxes(50_000),
        box_of_no_size=lambda: _box(b"ftyp", b"heic\0\0\0\0mif1heic") + bytes(4_000),
    )


def _slides(pictures: Iterable[bytes]) -> bytes:
    """A presentation with one of the pictures on each slide."""
    return pictured.presentation([(f"slide {number}", [data]) for number, data in enumerate(pictures, start=1)])


def inside() -> Iterator[Poison]:
    """Documents around such pictures."""
    harm: tuple[Callable[[], bytes], ...] = (
        documents.pixel_bomb,
        png_text_bomb,
        lambda: png(9, 9, body=zlib.compress(bytes(200 << 20), 9)),
        lambda: png(7_000, 7_000, body=b"no pixels"),
        lambda: jpeg(65_500, 700),
        lambda: _saved("JPEG", (900, 900))[:4_000],
        lambda: tiff(400, 400, following=8),
        lambda: webp(1 << 24, 1 << 24),
        lambda: heic(640, 640),
    )
    yield from named(
        "pptx",
        pictures_that_harm=lambda: _slides(make() for make in harm),
        more_pictures_than_allowed=lambda: _slides(png(300, 101 + number, body=b"-") for number in range(1_500)),
        one_picture_everywhere=lambda: _slides([_saved("PNG", (300, 300))] * 1_500),
    )
    yield from named("docx", pictures_cut_short=lambda: pictured.word([_saved("JPEG", (400, 400)), "text"])[:-900])
    yield from named(
        "html",
        pictures_of_nothing=lambda: b"<p>text</p>" + b'<img src="data:image/png;base64,AAAA">' * 200_000,
        picture_without_end=lambda: b'<p>text</p><img src="data:image/png;base64,' + b"A" * (9 << 20),
    )
    yield from named("eml", pictures_attached=lambda: formats.mail("x", "y", attachments={
        f"{number}.png": make() for number, make in enumerate(harm)
    }))  # fmt: skip
