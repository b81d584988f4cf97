"""Protected archives and OpenDocument files: they ask for their password, and open with no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.files.extraction import ExtractionFailed, Reason, unlock
from apps.files.types import UNLOCKABLE, FileFault, Kind, kind_of
from tests.factories import formats, locked
from tests.reading import read

LIMIT = 64 << 20
WORDS = "words behind the lock"
TEXT = formats.open_document(f"<text:p>{WORDS}</text:p>")
SLIDES = formats.open_document(
    f"<drawing:page><drawing:text-box><text:p>{WORDS}</text:p></drawing:text-box></drawing:page>", kind="presentation"
)
CASES = [
    pytest.param("a.zip", locked.archive({"a.txt": WORDS.encode(), "b.txt": b"b" * 100_000}, aes=True), id="zip-aes"),
    pytest.param("a.zip", locked.archive({"a.txt": WORDS.encode(), "b.txt": b"more"}, aes=False), id="zip-old"),
    pytest.param("a.odt", locked.open_document(TEXT, "aes"), id="odt-aes"),
    pytest.param("a.odt", locked.open_document(TEXT, "blowfish"), id="odt-blowfish"),
    pytest.param("a.odp", locked.open_document(SLIDES, "whole"), id="odp-whole"),
]


def _kind(name: str) -> Kind:
    kind = kind_of(name)
    assert kind is not None
    return kind


@pytest.mark.parametrize(("name", "data"), CASES)
def test_it_asks_for_its_password(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises((FileFault, ExtractionFailed)) as failed:
        read(tmp_path, name, data)
    assert isinstance(failed.value, FileFault | ExtractionFailed)
    assert failed.value.reason == "encrypted"
    assert _kind(name) in UNLOCKABLE


@pytest.mark.parametrize(("name", "data"), CASES)
def test_the_password_opens_it(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "locked"
    path.write_bytes(data)
    opened = unlock(path, _kind(name), locked.PASSWORD, max_bytes=LIMIT)
    assert WORDS in read(tmp_path, name, opened).text


@pytest.mark.parametrize(("name", "data"), CASES)
def test_another_password_does_not(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "locked"
    path.write_bytes(data)
    with pytest.raises(ExtractionFailed) as failed:
        unlock(path, _kind(name), "not the password", max_bytes=LIMIT)
    assert failed.value.reason == Reason.WRONG_PASSWORD


@pytest.mark.parametrize(("name", "data"), CASES)
def test_a_damaged_one_says_so_and_ends(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "locked"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(ExtractionFailed) as failed:
        unlock(path, _kind(name), locked.PASSWORD, max_bytes=LIMIT)
    assert failed.value.reason in (Reason.DAMAGED, Reason.LOCKED)


def test_an_archive_with_a_protected_one_inside_is_read(tmp_path: Path) -> None:
    inner = locked.archive({"a.txt": WORDS.encode()}, aes=True)
    outer = formats.package({"open.txt": "open words", "locked.zip": inner})
    assert "open words" in read(tmp_path, "a.zip", outer).text


def test_a_workbook_that_excel_opens_without_asking_is_read(tmp_path: Path) -> None:
    data = formats.workbook({"S": [[WORDS], *([f"{number * number:x} of many"] for number in range(4_000))]})
    assert WORDS in read(tmp_path, "a.xlsx", locked.office(data, "VelvetSweatshop")).text
    with pytest.raises(ExtractionFailed) as failed:
        read(tmp_path, "a.xlsx", locked.office(data))
    assert failed.value.reason == Reason.ENCRYPTED
