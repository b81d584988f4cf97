"""Objects as files below one directory: the default store of a single machine.

Durability: what an answer confirms is on disk. A part is synced before its PUT is answered, an object before
it gets its name; both appear by an atomic rename, so a reader never sees half of either.
The web process receives bodies through `open_part` (see `apps.files.api.objects`); nothing else does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from apps.core.errors import NotFound, TooLarge
from apps.files.storage.signing import GET_PATH, PUT_PATH, GetGrant, PutGrant, sign
from apps.files.storage.types import (
    CHUNK,
    BadParts,
    Download,
    Part,
    UploadGone,
    checked_key,
)

_TRAILER = hashlib.md5(usedforsecurity=False).digest_size


class PartWriter:
    """Receives one part: bounded while it arrives, visible only once whole.

    The part's file ends with the MD5 of its bytes, so tag and content change in one rename.
    """

    def __init__(self, directory: Path, number: int, size: int) -> None:
        self._target = directory / f"{number:05d}"
        self._temporary = directory / f".{number:05d}.{uuid4().hex}"
        self._size = size
        self._received = 0
        self._md5 = hashlib.md5(usedforsecurity=False)
        try:
            self._file = self._temporary.open("xb")
        except FileNotFoundError as error:
            raise UploadGone("This upload was completed, cancelled or has expired. Start again.") from error

    def write(self, data: bytes) -> None:
        """Add bytes. Raises TooLarge, having kept none, as soon as there are more than were announced."""
        self._received += len(data)
        if self._received > self._size:
            self.discard()
            raise TooLarge(f"This part may have {self._size} bytes and no more.")
        self._md5.update(data)
        self._file.write(data)

    def commit(self) -> str:
        """Publish the part and return its tag. Raises BadParts when bytes are missing."""
        if self._received != self._size:
            self.discard()
            raise BadParts(f"This part must have {self._size} bytes; {self._received} arrived.")
        self._file.write(self._md5.digest())
        _sync(self._file.fileno())
        self._file.close()
        try:
            self._temporary.rename(self._target)
        except FileNotFoundError as error:
            raise UploadGone("This upload was cancelled while it was received.") from error
        return self._md5.hexdigest()

    def discard(self) -> None:
        self._file.close()
        self._temporary.unlink(missing_ok=True)


class FilesystemStorage:
    """See `Storage`. `base_url` is where this server's own `/storage/` is reached; empty means same origin."""

    def __init__(self, root: Path, *, base_url: str = "") -> None:
        self._objects = root / "objects"
        self._uploads = root / "uploads"
        self._base_url = base_url

    # Uploads

    def create_upload(self, key: str, *, content_type: str) -> str:
        ref = uuid4().hex
        self._upload(key, ref).mkdir(parents=True)
        return ref

    def part_url(self, key: str, ref: str, *, number: int, size: int, expires_s: int) -> str:
        grant = PutGrant(checked_key(key), ref, number, size, time.time() + expires_s)
        return f"{self._base_url}{PUT_PATH}{sign(grant)}"

    def open_part(self, grant: PutGrant) -> PartWriter:
        return PartWriter(self._upload(grant.key, grant.ref), grant.number, grant.size)

    def list_parts(self, key: str, ref: str) -> tuple[Part, ...]:
        with _saying_gone():
            names = sorted(name for name in os.listdir(self._upload(key, ref)) if name.isdigit())
            return tuple(_read_part(self._upload(key, ref) / name) for name in names)

    def complete(self, key: str, ref: str, parts: Sequence[Part]) -> int:
        if not parts or not set(parts) <= set(self.list_parts(key, ref)):
            raise BadParts("Some parts are missing or were replaced. Ask which parts were received and send the rest.")
        sources = [self._upload(key, ref) / f"{part.number:05d}" for part in parts]
        with _saying_gone(), _replacing(self._path(key)) as target:
            for source, part in zip(sources, parts, strict=True):
                _append(target, source, part.size)
        self.abort(key, ref)
        return sum(part.size for part in parts)

    def abort(self, key: str, ref: str) -> None:
        shutil.rmtree(self._upload(key, ref), ignore_errors=True)
        _prune(self._upload(key, ref).parent, self._uploads)

    # Objects

    def put(self, key: str, data: bytes, *, content_type: str) -> None:
        with _replacing(self._path(key)) as target:
            _write_all(target, data)

    def size(self, key: str) -> int | None:
        try:
            return self._path(key).stat().st_size
        except FileNotFoundError:
            return None

    def read(self, key: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        with self.local(key) as path, path.open("rb") as file:
            file.seek(start)
            left = path.stat().st_size - start if end is None else end - start
            while left > 0 and (data := file.read(min(CHUNK, left))):
                left -= len(data)
                yield data

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        path = self._path(key)
        if not path.is_file():
            raise NotFound("This file's content is not there any more.")
        yield path

    def url(self, key: str, download: Download, *, expires_s: int) -> str:
        grant = GetGrant(
            checked_key(key),
            download.filename,
            download.content_type,
            download.inline,
            time.time() + expires_s,
        )
        return f"{self._base_url}{GET_PATH}{sign(grant)}"

    def list(self, prefix: str) -> tuple[str, ...]:
        return (
            *_walk(self._objects, checked_key(prefix)),
            *_walk(self._uploads, prefix),
        )

    def everything(self) -> Iterator[str]:
        for root in (self._objects, self._uploads):
            # Folders of organizations stay when they are empty.
            yield from (key for key in _walk(root, "") if key.count("/") >= 2)

    def delete_prefix(self, prefix: str) -> None:
        for root in (self._objects, self._uploads):
            path = root / checked_key(prefix)
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)
            _prune(path.parent, root)

    def _path(self, key: str) -> Path:
        return self._objects / checked_key(key)

    def _upload(self, key: str, ref: str) -> Path:
        if not ref.isalnum():
            raise UploadGone("There is no such upload.")
        return self._uploads / checked_key(key) / ref


def _read_part(path: Path) -> Part:
    size = path.stat().st_size - _TRAILER
    with path.open("rb") as file:
        file.seek(size)
        return Part(int(path.name), file.read(_TRAILER).hex(), size)


@contextmanager
def _replacing(path: Path) -> Iterator[int]:
    """A descriptor whose content becomes `path` when the block ends well, and nothing otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
    try:
        yield descriptor
        _sync(descriptor)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    _sync_directory(path.parent)


@contextmanager
def _saying_gone() -> Iterator[None]:
    """Parts can go at any moment: another call may complete or abort the same upload."""
    try:
        yield
    except FileNotFoundError as error:
        raise UploadGone("This upload was completed, cancelled or has expired. Start again.") from error


def _append(target: int, source: Path, size: int) -> None:
    """Copy the first `size` bytes, without the trailer."""
    with source.open("rb") as file:
        while size > 0:
            data = file.read(min(CHUNK, size))
            if not data:
                raise BadParts("A part lost bytes while it was joined. Send it again.")
            _write_all(target, data)
            size -= len(data)


def _write_all(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(target, view) :]


def _sync(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _walk(root: Path, prefix: str) -> Iterator[str]:
    base = root / prefix
    if base.is_file():
        yield prefix
    for directory, directories, names in os.walk(base):
        for name in names or ([] if directories else [""]):  # an upload without parts is an empty directory
            yield str((Path(directory) / name).relative_to(root))


def _prune(path: Path, root: Path) -> None:
    """Remove directories that became empty, but not an organization's, which a new file may be about to enter."""
    while path.parent != root and root in path.parents:
        try:
            path.rmdir()
        except OSError:
            return
        path = path.parent
