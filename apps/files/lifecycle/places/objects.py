"""All of object storage: every key, of unfinished uploads too, and every object's bytes when there are markers."""

from __future__ import annotations

from collections.abc import Iterator

from apps.core.errors import NotFound
from apps.files.lifecycle.places.needles import Needles
from apps.files.storage import storage


def search(needles: Needles) -> Iterator[tuple[str, int]]:
    """(key, 1) of each object whose key names the file or whose bytes hold a marker."""
    for key in storage().everything():
        if needles.in_bytes(key.encode()) or (needles.markers and _holds(key, needles)):
            yield key, 1


def _holds(key: str, needles: Needles) -> bool:
    overlap = max(len(marker.encode()) for marker in needles.markers)
    tail = b""
    try:
        for chunk in storage().read(key):
            if needles.content_in_bytes(tail + chunk):
                return True
            tail = chunk[-overlap:]
    except (NotFound, ValueError):
        return False  # removed meanwhile, or an unfinished upload, which no reader reaches
    return False
