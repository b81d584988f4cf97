"""Files that mean harm, through the real child: a clear answer within bounds, and the caller is well afterwards."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from apps.files.extraction import Document, ExtractionFailed, Limits, PageRecord, Reason, render_page, run
from apps.files.extraction.paging import PAGE_CHARS
from apps.files.extraction.process import OnStart
from apps.files.extraction.types import Kind, Notice
from apps.files.types import MAX_PAGES
from tests.factories import documents, hostile

LIMITS = Limits(page_s=4, wall_s=30, cpu_s=30, memory_bytes=768 << 20, max_pages=200)
PATIENCE_S = 45


def read(
    path: Path, data: bytes, kind: Kind, limits: Limits = LIMITS, on_start: OnStart | None = None
) -> list[PageRecord] | Reason:
    path.write_bytes(data)
    pages: list[PageRecord] = []
    started = time.monotonic()
    try:
        run(path, kind, limits=limits, on_page=pages.append, on_start=on_start)
    except ExtractionFailed as failed:
        return failed.reason
    finally:
        assert time.monotonic() - started < PATIENCE_S
    return pages


def texts(found: list[PageRecord] | Reason) -> list[str]:
    assert isinstance(found, list), found
    return [page.text for page in found]


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: hostile.many_objects(100_000), None),
        (lambda: hostile.flate_bomb(200 << 20), "before the bomb"),
        (lambda: hostile.deep_nesting(200_000), "nested"),
        (hostile.recursive_form, "around a loop"),
        (lambda: hostile.one_page(hostile.text_at(72, 700, "x" * 500_000)), None),
        (lambda: hostile.one_page(hostile.text_at(72, 700, "tall"), box="0 0 14400 14400000"), None),
        (lambda: hostile.one_page(hostile.text_at(72, 700, "flat"), box="0 0 0 0"), None),
        (lambda: hostile.one_page(b"q " * 500_000 + hostile.text_at(72, 700, "saved")), None),
        (lambda: hostile.one_page(hostile.text_at(72, 700, "big", size=1e9)), None),
        (lambda: hostile.one_page(b"0 0 m " + b"9 9 l " * 500_000 + b"S\n" + hostile.text_at(72, 700, "path")), "path"),
    ],
)  # fmt: skip
def test_a_hostile_page_is_read_or_refused_within_bounds(
    tmp_path: Path, make: Callable[[], bytes], wanted: str | None
) -> None:
    found = read(tmp_path / "x.pdf", make(), "pdf")
    if isinstance(found, Reason):
        assert found in (Reason.CRASHED, Reason.TIMED_OUT, Reason.OUT_OF_MEMORY, Reason.DAMAGED, Reason.TOO_LARGE)
        return
    assert len(found) == 1
    if wanted is not None and found[0].error is None:
        assert wanted in found[0].text


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.EMPTY),
        (b"not a PDF at all", Reason.DAMAGED),
        (documents.encrypted_pdf(), Reason.ENCRYPTED),
        (hostile.looping_pages(), None),
        (hostile.lying_page_count(5_000_000), None),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, data: bytes, reason: Reason | None) -> None:
    found = read(tmp_path / "x.pdf", data, "pdf")
    if reason is not None:
        assert found is reason
    elif isinstance(found, Reason):
        assert found is Reason.DAMAGED
    else:
        assert len(found) <= LIMITS.max_pages


@pytest.mark.parametrize("pages", [201, 20_000])
def test_a_pdf_without_end_is_read_to_the_bound_and_it_is_said(tmp_path: Path, pages: int) -> None:
    started: list[Document] = []
    found = texts(read(tmp_path / "x.pdf", documents.too_many_pages_pdf(pages), "pdf", on_start=started.append))
    assert found == [f"Page {number} of far too many." for number in range(200)]
    assert [(document.page_count, document.notices) for document in started] == [(200, (Notice.CUT_SHORT,))]


def test_as_many_pages_as_are_read_are_not_cut(tmp_path: Path) -> None:
    started: list[Document] = []
    read(tmp_path / "x.pdf", documents.too_many_pages_pdf(200), "pdf", on_start=started.append)
    assert [(document.page_count, document.notices) for document in started] == [(200, ())]


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused_or_read_as_far_as_it_goes(tmp_path: Path, keep: float) -> None:
    whole = documents.digital_pdf(3)
    found = read(tmp_path / "x.pdf", whole[: int(len(whole) * keep)], "pdf")
    assert isinstance(found, list) or found is Reason.DAMAGED


def test_a_few_hundred_broken_bytes_at_random(tmp_path: Path) -> None:
    import random

    whole = documents.digital_pdf(2)
    for seed in range(12):
        chance = random.Random(seed)
        broken = bytearray(whole)
        for _ in range(200):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        found = read(tmp_path / "x.pdf", bytes(broken), "pdf")
        assert isinstance(found, list) or found in (Reason.DAMAGED, Reason.CRASHED, Reason.ENCRYPTED)


# Word


def word_with(body: bytes, *, doctype: bytes = b"") -> bytes:
    """The generated Word document with another body."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(documents.word(["text"]))) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "word/document.xml":
                head, rest = data.split(b"<w:body>", 1)
                data = head.replace(b"?>", b"?>" + doctype, 1) + b"<w:body>" + body + rest
            new.writestr(item, data)
    return out.getvalue()


PARAGRAPH = b"<w:p><w:r><w:t>%s</w:t></w:r></w:p>"


@pytest.mark.parametrize("depth", [50, 5_000, 100_000])
def test_tables_in_tables_in_tables(tmp_path: Path, depth: int) -> None:
    found = read(tmp_path / "x.docx", word_with(PARAGRAPH % b"kept" + hostile.nested_word(depth)), "docx")
    assert found in (Reason.DAMAGED, Reason.CRASHED) or "kept" in texts(found)[0]


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    lol = b'<!DOCTYPE w:document [<!ENTITY a "' + b"ha" * 1000 + b'">' + b"".join(
        b'<!ENTITY %c "%s">' % (b"bcdefgh"[i : i + 1], (b"&%c;" % b"abcdefg"[i : i + 1]) * 50) for i in range(7)
    ) + b"]>"  # fmt: skip
    found = read(tmp_path / "x.docx", word_with(PARAGRAPH % b"&h;", doctype=lol), "docx")
    assert found in (Reason.DAMAGED, Reason.CRASHED, Reason.OUT_OF_MEMORY) or "hahaha" not in texts(found)[0]


def test_files_of_the_host_are_not_drawn_in(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    doctype = f'<!DOCTYPE w:document [<!ENTITY x SYSTEM "file://{secret}">]>'.encode()
    found = read(tmp_path / "x.docx", word_with(PARAGRAPH % b"&x; kept", doctype=doctype), "docx")
    assert isinstance(found, Reason) or "the secret" not in "".join(texts(found))


def test_an_archive_that_unpacks_to_more_than_allowed(tmp_path: Path) -> None:
    limits = replace(LIMITS, unpacked_bytes=32 << 20)
    assert read(tmp_path / "x.docx", documents.bomb_word(64 << 20), "docx", limits) is Reason.TOO_LARGE


def test_an_archive_that_lies_about_its_sizes(tmp_path: Path) -> None:
    """The directory says 10 bytes; what is packed is 20 MB."""
    whole = bytearray(word_with(PARAGRAPH % (b" " * (20 << 20))))
    at = whole.rindex(b"PK\x01\x02")
    with zipfile.ZipFile(io.BytesIO(bytes(whole))) as package:
        names = [item.filename for item in package.infolist()]
    for _ in names:
        name_length = int.from_bytes(whole[at + 28 : at + 30], "little")
        if whole[at + 46 : at + 46 + name_length] == b"word/document.xml":
            whole[at + 24 : at + 28] = (10).to_bytes(4, "little")
        at = whole.rfind(b"PK\x01\x02", 0, at)
    found = read(tmp_path / "x.docx", bytes(whole), "docx")
    assert found in (Reason.DAMAGED, Reason.OUT_OF_MEMORY, Reason.CRASHED, Reason.EMPTY, Reason.TOO_LARGE)


def test_overlapping_entries(tmp_path: Path) -> None:
    found = read(tmp_path / "x.docx", documents.overlapping_archive(), "docx")
    assert found in (Reason.TOO_LARGE, Reason.DAMAGED)


# Pictures and text


def test_a_picture_of_too_many_pixels(tmp_path: Path) -> None:
    assert read(tmp_path / "x.png", documents.pixel_bomb(), "image") is Reason.TOO_LARGE


def test_a_picture_that_ends_early_is_still_a_page(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    whole = documents.png(["some text"])
    found = read(path, whole[: len(whole) // 2], "image")
    assert isinstance(found, list)
    with pytest.raises(ExtractionFailed) as failed:
        render_page(path, "image", 1, 400)
    assert failed.value.reason is Reason.DAMAGED


@pytest.mark.parametrize("kind", ["text", "markdown", "code", "html", "rtf"])
def test_text_of_one_endless_line(tmp_path: Path, kind: Kind) -> None:
    started: list[Document] = []
    data = (b"{\\rtf1 " if kind == "rtf" else b"") + b"x" * (2 << 20)
    found = texts(read(tmp_path / "x.txt", data, kind, on_start=started.append))
    assert found == ["x" * PAGE_CHARS] * 200
    assert started == [Document(page_count=200, notices=(Notice.CUT_SHORT,))]


def test_a_log_as_large_as_an_upload_may_be(tmp_path: Path) -> None:
    """One letter beyond the basic plane makes every other take four bytes."""
    line = b"12:00:00 INFO the request was served from the store in some milliseconds\n"
    data = line * ((100 << 20) // len(line) - 1) + "\U0001f642".encode()
    found = texts(read(tmp_path / "x.log", data, "text", Limits()))
    assert len(found) == MAX_PAGES
    assert min(map(len, found)) > PAGE_CHARS - len(line)


@pytest.mark.parametrize("body", [mark * 100_000 for mark in (b"*", b"|", b"- ", b"#", b"`", b"> ")])
def test_markdown_that_makes_slow_parsers_slower(tmp_path: Path, body: bytes) -> None:
    started = time.monotonic()
    read(tmp_path / "x.md", body, "markdown")
    assert time.monotonic() - started < PATIENCE_S


# Drawing


def test_a_huge_page_is_drawn_small(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(hostile.one_page(hostile.text_at(72, 700, "wide"), box="0 0 14400 144"))
    data = render_page(path, "pdf", 1, 100_000)
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") <= 3_000


def test_a_page_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(documents.digital_pdf(1))
    with pytest.raises(ExtractionFailed) as failed:
        render_page(path, "pdf", 2, 300)
    assert failed.value.reason is Reason.DAMAGED


def test_the_caller_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    read(path, documents.digital_pdf(1), "pdf")
    path.write_bytes(hostile.flate_bomb(200 << 20))
    before = psutil.Process().memory_info().rss
    with suppress(ExtractionFailed):
        run(path, "pdf", limits=LIMITS, on_page=lambda page: None)
    assert psutil.Process().memory_info().rss - before < 32 << 20
