"""What the rest of the app may ask of an object store, whichever backend answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from apps.core.errors import AppError, NotFound

CHUNK = 256 << 10
_KEY = re.compile(r"[0-9a-f-]{36}/[0-9a-f-]{36}(/[a-z0-9][a-z0-9._-]*)*")


class UploadGone(NotFound):
    """The upload was completed, aborted, or never existed."""


class BadParts(AppError):
    """The parts named to `complete` are not the ones that were received."""

    code, status, title = "invalid", 422, "The parts do not match what was received"


class StorageUnavailable(AppError):
    """The store does not answer. Nothing was written; the same call may be repeated."""

    code, status, title = "overloaded", 503, "File storage does not answer"
    retry_after_s: ClassVar[int] = 5

    def __init__(self) -> None:
        super().__init__(
            "File storage does not answer. Try again in a moment.",
            retry_after_s=self.retry_after_s,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One received part. `etag` is the hex MD5 of its bytes, without quotes."""

    number: int
    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class Download:
    """How a browser should treat the bytes behind a signed address."""

    filename: str
    content_type: str = "application/octet-stream"
    inline: bool = False


class Storage(Protocol):
    """Objects under keys `<organization>/<file>/...`; uploads become objects only when completed.

    Every method is synchronous, bounded in time and memory, and raises `StorageUnavailable` when the store is down.
    """

    def create_upload(self, key: str, *, content_type: str) -> str:
        """Begin an upload of `key`; the reference names it from now on."""

    def part_url(self, key: str, ref: str, *, number: int, size: int, expires_s: int) -> str:
        """An address that accepts one PUT body of exactly `size` bytes until it expires."""

    def list_parts(self, key: str, ref: str) -> tuple[Part, ...]:
        """The parts received so far, by number; a part sent twice may be listed twice. Raises UploadGone."""

    def complete(self, key: str, ref: str, parts: Sequence[Part]) -> int:
        """Join the parts, in order, into the object and return its size. Raises UploadGone, BadParts."""

    def abort(self, key: str, ref: str) -> None:
        """Forget an upload and its parts; one that is gone already is fine."""

    def put(self, key: str, data: bytes, *, content_type: str) -> None: ...

    def size(self, key: str) -> int | None:
        """The object's size in bytes, or None when there is none."""

    def read(self, key: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes [start, end) in chunks. Raises NotFound."""

    def local(self, key: str) -> AbstractContextManager[Path]:
        """The object as a file that may be read while the context lasts. Raises NotFound."""

    def url(self, key: str, download: Download, *, expires_s: int) -> str:
        """An address from which anyone who holds it can GET the object until it expires."""

    def list(self, prefix: str) -> tuple[str, ...]:
        """Keys of all objects, and of unfinished uploads, under `prefix`."""

    def everything(self) -> Iterator[str]:
        """Keys of all objects and unfinished uploads of everybody: for looking for leftovers, never for a request."""

    def delete_prefix(self, prefix: str) -> None:
        """Remove all that `list(prefix)` names."""


def checked_key(key: str) -> str:
    """`key` when it is one of ours; a guard against a path or prefix that could reach another tenant's objects."""
    if not _KEY.fullmatch(key) or ".." in key:
        raise ValueError(f"not an object key: {key!r}")
    return key
