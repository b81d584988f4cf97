"""Archives other than ZIP, and single packed files: read by kind, within the same bounds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.files.extraction import ExtractionFailed, Limits, Reason, run
from tests.factories.formats import taped
from tests.reading import read

MEMBERS = {"a.txt": b"low water", "folder/b.csv": b"x,y\n1,2\n", "._a.txt": b"litter", "c.exe": b"MZ\0\0"}


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.tar", bytes), ("a.tgz", gzip.compress), ("a.tar.bz2", bz2.compress), ("a.tar.xz", lzma.compress)],
)
def test_tapes_however_they_are_packed(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    found = read(tmp_path, name, pack(taped(MEMBERS)))
    assert found.texts == [
        "Attachment: a.txt", "low water", "Attachment: folder/b.csv", "x | y\n1 | 2", "Attachment: c.exe",
    ]  # fmt: skip
    assert found.document.notices == ("parts_unread",)


def test_single_files_are_told_by_their_bytes_or_name(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with gzip.GzipFile("notes.md", "wb", fileobj=buffer) as packed:
        packed.write(b"# Tides")
    assert read(tmp_path, "notes.md.gz", buffer.getvalue()).found[1:] == [("Title", "Tides")]
    rich = rb"{\rtf1 high water\par}"
    for name, data in (("a.bz2", bz2.compress(rich)), ("a.xz", lzma.compress(rich)), ("a.gz", gzip.compress(rich))):
        assert read(tmp_path, name, data).texts[-1] == "high water"


def test_a_tape_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = taped({"a.txt": b"low water", "b.txt": bytes(5_000)})
    found = read(tmp_path, "a.tar", whole[:2_000])
    assert "low water" in found.texts
    assert "cut_short" in found.document.notices
    with pytest.raises(ExtractionFailed) as failed:
        read(tmp_path, "a.tgz", gzip.compress(taped(MEMBERS))[:30])
    assert failed.value.reason is Reason.DAMAGED


@pytest.mark.parametrize("data", [gzip.compress(bytes(64 << 20)), gzip.compress(taped({"a.txt": bytes(64 << 20)}))])
def test_what_unpacks_to_too_much_is_too_large(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ExtractionFailed) as failed:
        run(tmp_path / "a", "zip", limits=Limits(unpacked_bytes=16 << 20), on_page=lambda page: None)
    assert failed.value.reason is Reason.TOO_LARGE
