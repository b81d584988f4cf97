"""Bombs, loops, entities and nesting in the kinds without pages of their own: a clear answer, soon."""

from __future__ import annotations

import io
import random
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from apps.files.extraction import Document, ExtractionFailed, Limits, Reason, run
from apps.files.extraction.types import Kind, Notice
from apps.files.scanning import inspect
from apps.files.types import FileFault
from tests.bench.poison import pictures
from tests.factories import documents, formats, hostile, ole

LIMITS = Limits(wall_s=30, page_s=4, cpu_s=30, memory_bytes=768 << 20, max_pages=200)
PATIENCE_S = 40


def outcome(folder: Path, data: bytes, kind: Kind, *, scanned: bool = True) -> str | tuple[Document, str]:
    """The reason why it is refused, or the document with its text."""
    path, texts = folder / "object", list[str]()
    path.write_bytes(data)
    started = time.monotonic()
    try:
        if scanned:
            inspect(path, kind, clamd_socket="/nonexistent/clamd.ctl")
        document = run(path, kind, limits=LIMITS, on_page=lambda page: texts.append(page.text))
    except (ExtractionFailed, FileFault) as failed:
        return str(failed.reason)
    finally:
        assert time.monotonic() - started < PATIENCE_S
    return document, "\n".join(texts)


REFUSALS = {str(reason.value) for reason in Reason} | {"bomb"}


def webp_of(side: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (side, side)).save(buffer, "WEBP")
    return buffer.getvalue()


def broken_off_sheet(after: str) -> bytes:
    """A spreadsheet of one cell whose content ends where it should not."""
    row = '<table:table-row><table:table-cell office:value-type="float" office:value="7"/></table:table-row>'
    whole = formats.open_document(f'<table:table table:name="a">{row}{row}</table:table>', kind="spreadsheet")
    with zipfile.ZipFile(io.BytesIO(whole)) as package:
        parts = {name: package.read(name).decode() for name in package.namelist()}
    content = parts["content.xml"]
    parts["META-INF/manifest.xml"] = "<manifest/>"
    return formats.package(parts | {"content.xml": content[: content.index(after)]})


def slide(body: str) -> bytes:
    return formats.package(
        {"[Content_Types].xml": "<x/>", "ppt/presentation.xml": "<x/>", "ppt/slides/slide1.xml": body}
    )


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("html", lambda: b"<div>" * 200_000 + b"x"),
        ("html", lambda: b"<table><tr><td>" * 5_000 + b"x"),
        ("html", lambda: b"<p " + b"a=b " * 300_000 + b">x</p>"),
        ("eml", lambda: hostile.endless_parts(20_000)),
        ("eml", lambda: hostile.parts_in_parts(3_000)),
        ("eml", lambda: b"Subject: " + b"=?utf-8?q?a?= " * 300_000 + b"\n\nx"),
        ("rtf", lambda: b"{\\rtf1" + b"{" * 1_000_000),
        ("rtf", lambda: b"{\\rtf1 " + b"\\intbl x\\cell " * 200_000 + b"\\row}"),
        ("csv", lambda: b'"' + b"a\n" * 2_000_000),
        ("csv", lambda: b"a," * 2_000_000),
        ("odt", lambda: formats.open_document("<text:section>" * 100_000)),
        ("pptx", lambda: slide("<a>" * 100_000)),
        ("doc", lambda: ole.container({"WordDocument": b"\0" * 4_096, "1Table": b""})),
        ("ppt", lambda: ole.container({"PowerPoint Document": struct.pack("<HHI", 15, 0x3E8, 0x7FFFFFFF) * 5_000})),
        ("msg", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 5_000),
        ("zip", documents.overlapping_archive),
    ],
)  # fmt: skip
def test_harm_is_answered_soon(tmp_path: Path, kind: Kind, make: Callable[[], bytes]) -> None:
    found = outcome(tmp_path, make(), kind)
    assert isinstance(found, tuple) or found in REFUSALS | {"mislabelled"}


def test_a_spreadsheet_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    found = outcome(tmp_path, broken_off_sheet("</table:table>"), "sheet")
    assert isinstance(found, tuple), found
    assert (found[0].notices, "7" in found[1]) == ((Notice.CUT_SHORT,), True)
    assert outcome(tmp_path, broken_off_sheet("<table:table table:name"), "sheet") == "empty"


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("odt", lambda body: formats.package({"mimetype": "x", "content.xml": body})),
        ("pptx", slide),
        ("epub", lambda body: formats.package({"mimetype": "x", "META-INF/container.xml": body})),
    ],
)  # fmt: skip
def test_entities_are_neither_expanded_nor_fetched(tmp_path: Path, kind: Kind, make: Callable[[str], bytes]) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    for doctype, name in ((hostile.entities(), "h"), (f'<!DOCTYPE x [<!ENTITY x SYSTEM "file://{secret}">]>', "x")):
        found = outcome(tmp_path, make(f"{doctype}<r>&{name};</r>"), kind)
        assert isinstance(found, str) or not {"hahaha", "the secret"} & set(found[1].split())


@pytest.mark.parametrize("make", [documents.pixel_bomb, lambda: webp_of(16_000)])
def test_pictures_of_too_many_pixels(tmp_path: Path, make: Callable[[], bytes]) -> None:
    assert outcome(tmp_path, make(), "image") == "too_large"


def test_a_strip_that_nobody_could_look_at(tmp_path: Path) -> None:
    """Fewer pixels than are allowed, all in one row."""
    assert outcome(tmp_path, pictures.png(40_000_000, 1), "image") == "too_large"


def test_a_tiff_whose_second_page_makes_no_sense_has_one(tmp_path: Path) -> None:
    whole = bytearray(formats.tiff([Image.new("L", (60, 40))] * 2))
    width = struct.pack("<HHI", 256, 3, 1) + struct.pack("<I", 60)
    assert whole.count(width) == 2
    at = whole.rindex(width)
    whole[at : at + 2] = b"\xff\xff"
    found = outcome(tmp_path, bytes(whole), "image", scanned=False)
    assert isinstance(found, tuple)
    assert found[0].page_count == 1


def test_a_tiff_of_too_many_pages(tmp_path: Path) -> None:
    assert outcome(tmp_path, formats.tiff([Image.new("L", (8, 8))] * 300), "image") == "too_many_pages"


def test_bombs_inside_an_archive_count_together(tmp_path: Path) -> None:
    inner = formats.package({"a.txt": b" " * (20 << 20)})
    data = formats.package({f"{number}.zip": inner for number in range(40)})
    assert outcome(tmp_path, data, "zip") == "too_large"


def test_an_archive_that_holds_itself_ends(tmp_path: Path) -> None:
    found = outcome(tmp_path, formats.archive_in_itself(100), "zip")
    assert isinstance(found, tuple)
    assert found[0].notices == ("depth_limited",)


def test_tables_beyond_the_bound_are_cut_and_it_is_said(tmp_path: Path) -> None:
    found = outcome(tmp_path, b"number,square\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(300_000)), "csv")
    assert isinstance(found, tuple)
    assert found[0].page_count <= LIMITS.max_pages
    assert found[0].notices == ("cut_short",)
    assert "number | square" in found[1]


def test_a_pdf_that_is_also_an_archive_is_what_its_name_says(tmp_path: Path) -> None:
    both = hostile.one_page(hostile.text_at(72, 700, "poly")) + formats.package({"a.txt": "hidden"})
    found = outcome(tmp_path, both, "pdf")
    assert isinstance(found, tuple)
    assert found[1] == "poly"
    assert outcome(tmp_path, both, "zip") == "mislabelled"


WHOLE: dict[Kind, Callable[[], bytes]] = {
    "sheet": lambda: formats.workbook({"a": [["x", 1.5], ["y", 2]]}),
    "msg": lambda: ole.message({0x0037: "subject", 0x1000: "body " * 900}, {"a.txt": b"text"}),
    "doc": lambda: ole.word([("text\r", b"\0\0")] * 5),
    "ppt": lambda: ole.slides([("one", "two")]),
    "rtf": lambda: rb"{\rtf1{\fonttbl{\f0 x;}}\pard text\par{\footnote y}\trowd\cell\row}",
    "eml": lambda: formats.mail("subject", "text", html="<p>x</p>", attachments={"a.csv": b"a,b\n"}),
    "zip": lambda: formats.package({"a.txt": "text", "b.html": "<p>x</p>"}),
}


@pytest.mark.parametrize("kind", list(WHOLE))
def test_broken_bytes_at_random(tmp_path: Path, kind: Kind) -> None:
    whole = WHOLE[kind]()
    for seed in range(6):
        chance = random.Random(seed)
        broken = bytearray(whole)
        for _ in range(max(3, len(whole) // 200)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        found = outcome(tmp_path, bytes(broken), kind, scanned=False)
        assert isinstance(found, tuple) or found in REFUSALS
