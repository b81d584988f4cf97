"""What a file really is, the bounds of archives, the test signature, and a scanner that is there."""

from __future__ import annotations

import hashlib
import io
import socket
import struct
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from apps.files.scanning import archive, clamd, inspect
from apps.files.types import FileFault, Kind, Retryable
from tests.factories import documents, formats, ole

NO_SOCKET = "/nonexistent/clamd.ctl"


def written(folder: Path, body: bytes) -> Path:
    path = folder / "object"
    path.write_bytes(body)
    return path


def reason(path: Path, kind: Kind, clamd_socket: str = NO_SOCKET) -> str:
    with pytest.raises(FileFault) as caught:
        inspect(path, kind, clamd_socket=clamd_socket)
    return caught.value.reason


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("pdf", lambda: documents.short_pdf(1)),
        ("pdf", lambda: b"\n\njunk before the header\n" + documents.short_pdf(1)),
        ("docx", documents.word),
        ("image", lambda: documents.png(["x"])),
        ("image", lambda: documents.jpeg(["x"])),
        ("text", documents.text),
        ("text", lambda: b"x"),
        ("text", lambda: "größer".encode("utf-16")),
        ("text", lambda: "größer\r\n".encode("latin-1") * 20),
        ("text", lambda: b"<html><body>as text</body></html>"),
        ("text", documents.markdown),
        ("markdown", documents.markdown),
        ("markdown", documents.text),
        ("code", documents.text),
        ("csv", lambda: b"a,b\n1,2\n"),
        ("rtf", lambda: b"{\\rtf1 text}"),
        ("sheet", lambda: formats.workbook({"a": [["x"]]})),
        ("pptx", lambda: formats.presentation([("a", ["b"])])),
        ("odt", lambda: formats.open_document("<text:p>x</text:p>")),
        ("epub", lambda: formats.book(["<p>x</p>"])),
        ("zip", lambda: formats.package({"a.txt": "x"})),
        ("eml", lambda: formats.mail("a", "b")),
        ("msg", lambda: ole.message({0x0037: "a"})),
        ("doc", lambda: ole.word([("x\r", b"\0\0")])),
        ("docx", lambda: ole.container({"EncryptedPackage": b"x"})),
    ],
)  # fmt: skip
def test_honest_files_pass_with_their_hash(tmp_path: Path, kind: Kind, make: Callable[[], bytes]) -> None:
    body = make()
    found = inspect(written(tmp_path, body), kind, clamd_socket=NO_SOCKET)
    assert found.sha256 == hashlib.sha256(body).hexdigest()
    assert found.scanner == "signatures"


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("doc", lambda: b"{\\rtf1 text}"),
        ("docx", lambda: formats.workbook({"a": [["x"]]})),
        ("zip", documents.word),
        ("sheet", lambda: b"<table><tr><td>x</td></tr></table>"),
        ("pdf", lambda: ole.word([("x\r", b"\0\0")])),
    ],
)  # fmt: skip
def test_what_is_something_else_is_told_so(tmp_path: Path, kind: Kind, make: Callable[[], bytes]) -> None:
    assert reason(written(tmp_path, make()), kind) == "mislabelled"


def test_the_test_signature_is_found_across_the_borders_of_reads(tmp_path: Path) -> None:
    at = (1 << 20) - 30
    assert reason(written(tmp_path, b"a" * at + documents.eicar() + b"a" * 99), "text") == "infected"
    halves = documents.eicar()[:40], documents.eicar()[40:]
    inspect(written(tmp_path, b" and then ".join(halves)), "text", clamd_socket=NO_SOCKET)


def test_a_directory_of_millions_is_refused_before_it_is_read(tmp_path: Path) -> None:
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 60_000
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(entry) * count, 4, 0)
    path = written(tmp_path, b"PK\3\4" + entry * count + end)
    began = time.process_time()
    assert reason(path, "docx") == "bomb"
    assert time.process_time() - began < 0.5


def test_an_archive_that_lies_about_a_size_is_stopped_while_unpacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_UNPACKED", 1 << 20)
    monkeypatch.setattr(archive, "_check_directory", lambda entries, packed: None)
    with pytest.raises(FileFault, match="unpacks"):
        archive.entry_names(written(tmp_path, documents.archive({"zeros": bytes(2 << 20)})), lambda chunk: None)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_broken_archive_is_damaged(tmp_path: Path, keep: float) -> None:
    body = documents.word()
    cut = max(4, int(len(body) * keep))
    assert reason(written(tmp_path, body[:cut]), "docx") == "damaged"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
def test_what_cannot_be_unpacked_is_damaged_and_not_tried_again(tmp_path: Path, method: int) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        made.writestr("notes.txt", "words of all kinds, many of them\n" * 400)
    body = bytearray(buffer.getvalue())
    at = body.index(b"notes.txt") + len("notes.txt")
    body[at + 12 : at + 40] = bytes(28)
    assert reason(written(tmp_path, bytes(body)), "zip") == "damaged"


# A scanner that speaks clamd's protocol


@contextmanager
def scanner(folder: Path, answer: Callable[[bytes], bytes], *, hang: bool = False) -> Iterator[str]:
    """Receives a descriptor as clamd does, reads the file through it and answers by its content."""
    address = str(folder / "clamd.ctl")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                if connection.recv(8, socket.MSG_WAITALL) != b"zFILDES\0":
                    return
                _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
                with open(descriptors[0], "rb") as file:
                    content = file.read()
                if not hang:
                    connection.sendall(answer(content))
                else:
                    time.sleep(0.6)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield address
        thread.join(5)


def verdict(content: bytes) -> bytes:
    return b"fd[10]: Win.Test-1 FOUND\0" if b"evil" in content else b"fd[10]: OK\0"


def test_a_scanner_that_is_there_is_asked(tmp_path: Path) -> None:
    with scanner(tmp_path, verdict) as address:
        found = inspect(written(tmp_path, b"harmless text"), "text", clamd_socket=address)
    assert found.scanner == "clamd"


def test_what_the_scanner_flags_is_infected(tmp_path: Path) -> None:
    with scanner(tmp_path, verdict) as address:
        assert reason(written(tmp_path, b"evil text"), "text", address) == "infected"


@pytest.mark.parametrize("answer", [b"INSTREAM size limit exceeded. ERROR\0", b"", b"fd[10]: lstat() failed ERROR\0"])
def test_a_scanner_that_fails_is_asked_again_and_never_skipped(tmp_path: Path, answer: bytes) -> None:
    with scanner(tmp_path, lambda _: answer) as address, pytest.raises(Retryable):
        inspect(written(tmp_path, b"text"), "text", clamd_socket=address)


def test_a_scanner_that_hangs_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clamd, "SCAN_S", 0.2)
    with scanner(tmp_path, verdict, hang=True) as address, pytest.raises(Retryable):
        inspect(written(tmp_path, b"text"), "text", clamd_socket=address)
