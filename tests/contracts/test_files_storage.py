"""One suite for every object store: on this machine's disk, and in a real S3 server."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest

from apps.core.errors import NotFound
from apps.core.ids import new_id
from apps.files.api.objects import application
from apps.files.storage import BadParts, Download, Part, Storage, StorageUnavailable, UploadGone, filesystem, storage
from apps.files.storage.filesystem import FilesystemStorage
from apps.files.storage.s3 import S3Storage
from apps.files.storage.signing import PutGrant
from tests.factories.web import serving

ORIGIN = "https://parley.example.org"
# S3 wants every part but the last to have this many bytes.
PART = 5 << 20


def s3_storage(server: dict[str, str], **changes: str) -> S3Storage:
    options = {
        "endpoint": server["S3_ENDPOINT"],
        "public_endpoint": "",
        "bucket": server["S3_BUCKET"],
        "region": server["S3_REGION"],
        "access_key": server["S3_ACCESS_KEY"],
        "secret_key": server["S3_SECRET_KEY"],
    }
    return S3Storage(**{**options, **changes})


@pytest.fixture(params=["filesystem", "s3"])
def store(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> Iterator[Storage]:
    if request.param == "s3":
        found = s3_storage(request.getfixturevalue("s3"))
        found.prepare(origins=[ORIGIN])
        yield found
        return
    settings.OBJECTS_DIR, settings.S3_ENDPOINT = tmp_path, ""
    storage.cache_clear()
    with serving(application) as base:
        yield FilesystemStorage(tmp_path, base_url=base)
    storage.cache_clear()


@pytest.fixture
def key() -> str:
    return f"{new_id()}/{new_id()}/original"


def put(url: str, body: bytes, **headers: str) -> httpx.Response:
    return httpx.put(url, content=body, headers=headers, timeout=20)


def url_for(store: Storage, key: str, ref: str, size: int, *, number: int = 1, expires_s: int = 60) -> str:
    return store.part_url(key, ref, number=number, size=size, expires_s=expires_s)


def send(store: Storage, key: str, ref: str, number: int, body: bytes) -> Part:
    answer = put(url_for(store, key, ref, len(body), number=number), body)
    assert answer.status_code == 200, answer.text
    return Part(number, answer.headers["etag"].strip('"'), len(body))


def upload(store: Storage, key: str, body: bytes) -> None:
    ref = store.create_upload(key, content_type="application/pdf")
    assert store.complete(key, ref, [send(store, key, ref, 1, body)]) == len(body)


# Uploads


def test_parts_become_one_object(store: Storage, key: str) -> None:
    first, second = os.urandom(PART), os.urandom(1_000)
    ref = store.create_upload(key, content_type="application/pdf")
    assert store.list_parts(key, ref) == ()
    assert store.size(key) is None
    sent_last_first = [send(store, key, ref, 2, second), send(store, key, ref, 1, first)]
    parts = sorted(sent_last_first, key=lambda part: part.number)
    assert list(store.list_parts(key, ref)) == parts
    assert [part.etag for part in parts] == [hashlib.md5(body).hexdigest() for body in (first, second)]

    assert store.complete(key, ref, parts) == PART + 1_000
    assert store.size(key) == PART + 1_000
    assert b"".join(store.read(key)) == first + second
    assert b"".join(store.read(key, start=PART - 2, end=PART + 3)) == (first + second)[PART - 2 : PART + 3]
    with store.local(key) as path:
        assert path.read_bytes() == first + second


def test_a_part_sent_again_replaces_the_first(store: Storage, key: str) -> None:
    ref = store.create_upload(key, content_type="text/plain")
    send(store, key, ref, 1, b"one way")
    new = send(store, key, ref, 1, b"another")
    assert new in store.list_parts(key, ref)
    store.complete(key, ref, [new])
    assert b"".join(store.read(key)) == b"another"


def test_completing_with_wrong_or_missing_parts_is_refused_and_keeps_the_upload(store: Storage, key: str) -> None:
    ref = store.create_upload(key, content_type="text/plain")
    part = send(store, key, ref, 1, b"content")
    for wrong in ([], [Part(1, "0" * 32, 7)], [part, Part(2, part.etag, 7)]):
        with pytest.raises(BadParts):
            store.complete(key, ref, wrong)
    assert store.complete(key, ref, [part]) == 7


def test_an_upload_that_ended_is_gone(store: Storage, key: str) -> None:
    ref = store.create_upload(key, content_type="text/plain")
    address = url_for(store, key, ref, 4)
    part = send(store, key, ref, 1, b"text")
    store.abort(key, ref)
    store.abort(key, ref)
    assert put(address, b"text").status_code == 404
    with pytest.raises(UploadGone):
        store.list_parts(key, ref)
    with pytest.raises(UploadGone):
        store.complete(key, ref, [part])
    assert store.list(key) == ()


# Addresses


def test_a_signature_that_was_tampered_with_is_refused(store: Storage, key: str) -> None:
    ref = store.create_upload(key, content_type="text/plain")
    address = url_for(store, key, ref, 4)
    middle = len(address) - 20
    forged = address[:middle] + ("A" if address[middle] != "A" else "B") + address[middle + 1 :]
    answer = put(forged, b"text")
    assert answer.status_code == 403, answer.text
    assert store.list_parts(key, ref) == ()


def test_an_address_does_not_open_another_object(store: Storage, key: str) -> None:
    upload(store, key, b"mine")
    address = urlsplit(store.url(key, Download("a.txt"), expires_s=60))
    other = f"{new_id()}/{new_id()}/original"
    store.put(other, b"theirs", content_type="text/plain")
    stolen = address._replace(path=address.path.replace(key, other)).geturl()
    if stolen == address.geturl():  # the filesystem's addresses hide the key inside the signed token
        stolen = address._replace(path=address.path[:-5] + "AAAAA").geturl()
    assert httpx.get(stolen).status_code == 403


def test_an_expired_address_is_refused(store: Storage, key: str) -> None:
    ref = store.create_upload(key, content_type="text/plain")
    address = url_for(store, key, ref, 4, expires_s=1)
    download = store.url(key, Download("a.txt"), expires_s=1)
    time.sleep(2.1)
    assert put(address, b"text").status_code == 403
    assert httpx.get(download).status_code == 403
    assert store.list_parts(key, ref) == ()


@pytest.mark.parametrize("body", [b"larger than announced", b"less"])
def test_a_part_of_another_size_is_refused(store: Storage, key: str, body: bytes) -> None:
    ref = store.create_upload(key, content_type="text/plain")
    answer = put(url_for(store, key, ref, 10), body)
    assert answer.status_code in (403, 413, 422), answer.text
    assert store.list_parts(key, ref) == ()


def test_a_put_address_does_not_read_and_a_get_address_does_not_write(store: Storage, key: str) -> None:
    upload(store, key, b"content")
    again = store.create_upload(key, content_type="text/plain")
    assert httpx.get(url_for(store, key, again, 4)).status_code in (403, 405)
    assert put(store.url(key, Download("a.txt"), expires_s=60), b"evil").status_code in (403, 405)
    assert b"".join(store.read(key)) == b"content"


def test_a_download_carries_its_name_and_answers_ranges(store: Storage, key: str) -> None:
    upload(store, key, b"0123456789")
    address = store.url(key, Download('Übersicht "1".pdf', "application/pdf"), expires_s=60)
    whole = httpx.get(address)
    assert (whole.status_code, whole.content) == (200, b"0123456789")
    assert whole.headers["content-type"] == "application/pdf"
    disposition = whole.headers["content-disposition"]
    assert disposition.startswith("attachment")
    assert unquote(disposition.partition("filename*=UTF-8''")[2]) == 'Übersicht "1".pdf'
    for asked, status, body in (
        ("bytes=2-4", 206, b"234"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-3", 206, b"789"),
        ("bytes=5-99", 206, b"56789"),
        ("bytes=20-", 416, None),
    ):
        answer = httpx.get(address, headers={"Range": asked})
        assert answer.status_code == status, asked
        assert body is None or answer.content == body


# Objects


def test_put_replaces_and_unknown_keys_are_not_found(store: Storage, key: str) -> None:
    with pytest.raises(NotFound):
        list(store.read(key))
    with pytest.raises(NotFound), store.local(key):
        pass
    store.put(key, b"one", content_type="image/png")
    store.put(key, b"other", content_type="image/png")
    assert b"".join(store.read(key)) == b"other"


def test_listing_and_removal_cover_objects_and_unfinished_uploads(store: Storage, key: str) -> None:
    mine = key.rpartition("/")[0]
    neighbour = f"{key.partition('/')[0]}/{new_id()}/original"
    store.put(neighbour, b"stays", content_type="text/plain")
    upload(store, key, b"content")
    store.put(f"{mine}/pages/1/800.png", b"png", content_type="image/png")
    unfinished = store.create_upload(key, content_type="text/plain")
    send(store, key, unfinished, 1, b"part")
    begun = store.create_upload(key, content_type="text/plain")

    listed = store.list(mine)
    assert {f"{mine}/original", f"{mine}/pages/1/800.png"} <= set(listed)
    assert any(unfinished in name for name in listed)
    assert any(begun in name for name in listed)
    everything = set(store.everything())
    assert {*listed, neighbour} <= everything, "of everybody, and of uploads that are not finished"

    store.delete_prefix(mine)
    store.delete_prefix(mine)
    assert store.list(mine) == ()
    assert b"".join(store.read(neighbour)) == b"stays"


@pytest.mark.parametrize("bad", ["", "/", "a/b/c", "../../etc/passwd", "{0}/../{0}/x", "{0}/{0}/.hidden", "{0}/"])
def test_keys_outside_of_a_file_are_refused(store: Storage, bad: str) -> None:
    forged = bad.format(new_id())
    with pytest.raises(ValueError, match="not an object key"):
        store.delete_prefix(forged)
    with pytest.raises(ValueError, match="not an object key"):
        store.put(forged, b"", content_type="text/plain")


# What only one of them does


def test_s3_lets_only_our_pages_send_parts_and_read_their_tags(s3: dict[str, str], key: str) -> None:
    store = s3_storage(s3)
    store.prepare(origins=[ORIGIN])
    store.prepare(origins=[ORIGIN])
    ref = store.create_upload(key, content_type="text/plain")
    address = url_for(store, key, ref, 4)
    asked = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"}
    ours = httpx.options(address, headers={"Origin": ORIGIN, **asked})
    assert ours.headers.get("access-control-allow-origin") in (ORIGIN, "*")
    theirs = httpx.options(address, headers={"Origin": "https://evil.example.com", **asked})
    assert "access-control-allow-origin" not in theirs.headers
    answer = put(address, b"text", Origin=ORIGIN)
    assert answer.headers.get("access-control-expose-headers", "").lower() == "etag"


def test_s3_signs_for_the_address_that_browsers_use(s3: dict[str, str], key: str) -> None:
    store = s3_storage(s3, public_endpoint="https://files.example.org")
    address = urlsplit(url_for(store, key, "an-upload", 9))
    assert address.netloc == "files.example.org"
    assert "content-length" in parse_qs(address.query)["X-Amz-SignedHeaders"][0]


def test_s3_with_a_wrong_secret_or_no_server_is_unavailable(s3: dict[str, str], key: str) -> None:
    for broken in (s3_storage(s3, secret_key="w" * 40), s3_storage(s3, endpoint="http://127.0.0.1:9")):
        with pytest.raises(StorageUnavailable):
            broken.size(key)
        with pytest.raises(StorageUnavailable):
            broken.create_upload(key, content_type="text/plain")


def test_the_disk_store_keeps_nothing_of_a_body_that_broke_off(settings: Any, tmp_path: Path, key: str) -> None:
    settings.OBJECTS_DIR, settings.S3_ENDPOINT = tmp_path, ""
    storage.cache_clear()
    with serving(application) as base:
        store = FilesystemStorage(tmp_path, base_url=base)
        ref = store.create_upload(key, content_type="text/plain")
        address = url_for(store, key, ref, 3_000_000)

        def breaking() -> Iterator[bytes]:
            yield b"x" * 2_000_000
            raise ConnectionAbortedError

        with pytest.raises(ConnectionAbortedError):
            httpx.put(address, content=breaking(), headers={"content-length": "3000000"})
        deadline = time.monotonic() + 5
        while leftovers := [path for path in tmp_path.rglob("*") if path.is_file()]:
            assert time.monotonic() < deadline, leftovers
            time.sleep(0.02)
        assert store.list_parts(key, ref) == ()
    storage.cache_clear()


def test_the_disk_store_stops_a_chunked_body_at_its_limit(settings: Any, tmp_path: Path, key: str) -> None:
    settings.OBJECTS_DIR, settings.S3_ENDPOINT = tmp_path, ""
    storage.cache_clear()
    with serving(application) as base:
        store = FilesystemStorage(tmp_path, base_url=base)
        ref = store.create_upload(key, content_type="text/plain")
        answer = httpx.put(url_for(store, key, ref, 100_000), content=(b"y" * 65_536 for _ in range(100)))
        assert answer.status_code == 413
        assert answer.json()["code"] == "too_large"
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    storage.cache_clear()


def test_the_disk_store_says_gone_when_parts_go_while_they_are_joined(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another call completes the same upload at that moment."""
    store = FilesystemStorage(tmp_path)
    ref = store.create_upload(key, content_type="text/plain")
    writer = store.open_part(PutGrant(key, ref, 1, 4, time.time() + 60))
    writer.write(b"text")
    writer.commit()
    (part,) = store.list_parts(key, ref)

    def append(target: int, source: Path, size: int) -> None:
        store.abort(key, ref)
        joined(target, source, size)

    joined = filesystem._append
    monkeypatch.setattr(filesystem, "_append", append)
    with pytest.raises(UploadGone):
        store.complete(key, ref, [part])
    assert store.size(key) is None
