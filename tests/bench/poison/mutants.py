"""Small right files of every kind, and what becomes of them: bytes flipped, cut, spliced, lengths changed."""

from __future__ import annotations

import io
import random
import re
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from PIL import Image

from tests.bench.poison.tables import open_sheet
from tests.bench.poison.types import Poison
from tests.factories import documents, formats, ole


def _picture(form: str) -> bytes:
    buffer = io.BytesIO()
    documents.scan(["Some words in print."], width=240, height=120, noise=False).save(buffer, form)
    return buffer.getvalue()


def _tiff() -> bytes:
    return formats.tiff([Image.new("L", (60, 40), 250)] * 2)


def _pdf() -> bytes:
    """Without the date and the number that each making gives."""
    whole = re.sub(rb"D:\d{14}[^)]*", b"D:20200101000000", documents.short_pdf(2))
    return re.sub(rb"<[0-9a-f]{32}>", b"<%s>" % (b"0" * 32), whole)


def _undated(package: bytes) -> bytes:
    """The same archive, its members of 1980."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _mail() -> bytes:
    whole = formats.mail("subject", "text", html="<p>x</p>", attachments={"a.csv": b"a,b\n1,2\n"})
    return re.sub(rb"={15}\d+==", lambda found: b"boundary", whole)


SEEDS: Mapping[str, Callable[[], bytes]] = {
    "pdf": _pdf,
    "docx": lambda: documents.word(["One paragraph."]),
    "pptx": lambda: formats.presentation([("One", ["two", "three"])] * 2, notes="noted", table=[["a", "b"]]),
    "xlsx": lambda: formats.workbook({"a": [["x", 1.5], ["y", 2]]}),
    "ods": lambda: open_sheet(f"<table:table-row>{_CELL * 3}</table:table-row>" * 4),
    "csv": lambda: b"name;value\n" + b"one;1,5\ntwo;2,5\n" * 20,
    "html": lambda: b"<html><body><h1>One</h1><table><tr><td>a<td>b</table><ul><li>x</ul></body></html>" * 3,
    "eml": _mail,
    "msg": lambda: ole.message({0x0037: "subject", 0x1000: "body " * 900}, {"a.txt": b"text"}),
    "doc": lambda: ole.word([("text\r", b"\0\0")] * 5),
    "ppt": lambda: ole.slides([("one", "two")] * 2),
    "rtf": lambda: rb"{\rtf1{\fonttbl{\f0 x;}}\pard text\par{\footnote y}\trowd\cell\row\u8364 ?}" * 4,
    "epub": lambda: formats.book(["<h1>One</h1><p>two</p>", "<p>three</p>"]),
    "odt": lambda: formats.open_document("<text:h>One</text:h><text:p>two</text:p>"),
    "odp": lambda: formats.open_document("<drawing:page><text:p>two</text:p></drawing:page>", kind="presentation"),
    "zip": lambda: formats.package({"a.txt": "text", "b.html": "<p>x</p>", "c.csv": "a,b\n"}),
    "txt": lambda: documents.text(["Some sentences. And another one."] * 9),
    "md": documents.markdown,
    "json": lambda: b'{"a": [1, 2, {"b": "c"}], "d": null}' * 9,
    "png": partial(_picture, "PNG"),
    "jpg": partial(_picture, "JPEG"),
    "webp": partial(_picture, "WEBP"),
    "tiff": _tiff,
}
_CELL = '<table:table-cell office:value-type="float" office:value="7"/>'
_ZIP = b"PK\3\4"
_INSIDE = 0.7
_EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def _flipped(chance: random.Random, data: bytearray) -> bytearray:
    for _ in range(chance.randint(1, max(2, len(data) // 100))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return data


def _cut(chance: random.Random, data: bytearray) -> bytearray:
    return data[: chance.randint(1, len(data))]


def _spliced(chance: random.Random, data: bytearray) -> bytearray:
    """A stretch of the file once more, somewhere else."""
    start, at = chance.randrange(len(data)), chance.randrange(len(data))
    return data[:at] + data[start : start + chance.randint(1, 4_000)] * chance.randint(1, 9) + data[at:]


def _missing(chance: random.Random, data: bytearray) -> bytearray:
    at = chance.randrange(len(data))
    del data[at : at + chance.randint(1, max(1, len(data) // 4))]
    return data or bytearray(b"x")


def _measured(chance: random.Random, data: bytearray) -> bytearray:
    """Numbers put where lengths, counts and offsets may stand."""
    for _ in range(chance.randint(1, 6)):
        form = chance.choice(("<H", ">H", "<I", ">I"))
        size = struct.calcsize(form)
        if len(data) > size:
            value = chance.choice(_EDGES) & ((1 << 8 * size) - 1)
            struct.pack_into(form, data, chance.randrange(len(data) - size), value)
    return data


CHANGES = (_flipped, _cut, _spliced, _missing, _measured)


def mutant(ending: str, whole: bytes, number: int) -> bytes:
    """The same bytes for the same number."""
    chance = random.Random(f"{ending} {number}")
    change = partial(CHANGES[number % len(CHANGES)], chance)
    if whole.startswith(_ZIP) and chance.random() < _INSIDE:
        return _member_changed(whole, chance, change)
    return bytes(change(bytearray(whole)))


def _member_changed(whole: bytes, chance: random.Random, change: Callable[[bytearray], bytearray]) -> bytes:
    """The archive with one member changed, and its checksum right: without that nobody would read any further."""
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = chance.choice([name for name, data in members.items() if data])
    return _undated(formats.package({**members, name: bytes(change(bytearray(members[name])))}))


def _whole(data: bytes) -> bytes:
    return _undated(data) if data.startswith(_ZIP) else data


def mutants(count: int) -> Iterator[Poison]:
    """`count` of them, over all kinds in turn."""
    wholes = {ending: _whole(make()) for ending, make in SEEDS.items()}
    endings = list(wholes)
    for number in range(count):
        ending, nth = endings[number % len(endings)], number // len(endings)
        yield Poison(f"mutant-{nth}.{ending}", partial(mutant, ending, wholes[ending], nth))
