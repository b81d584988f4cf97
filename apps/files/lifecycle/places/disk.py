"""The state folder and what children and downloads leave in the folder for temporary files.

Not read: objects, which `objects` reads through the store itself, and the database's and Valkey's own files, whose
pages and journals hold what was overwritten until they are reused; who must have those gone as well rewrites them
(VACUUM FULL, and the journal's end).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from apps.files.lifecycle.places.needles import Needles

OURS = "parley-"
LOGS = "logs"
NAMED_IN_LOG = "a log's line: names the file"
_NOT_READ = frozenset({"objects", "s3", "pg", "valkey", "run", "tools", "vllm", "cache", "stamps"})
"""Stores that are read otherwise, and what the installation consists of."""
_CHUNK = 1 << 20


def search(needles: Needles) -> Iterator[tuple[str, int, str]]:
    """(path, 1, why it may stay) of each file that is named after the file or holds something of it."""
    for path in _files():
        held = _holds(path, needles.words)
        if held or needles.in_bytes(str(path).encode()):
            content, log = held and _holds(path, needles.markers), path.parent.name == LOGS
            yield str(path), 1, NAMED_IN_LOG if log and not content else ""


def _files() -> Iterator[Path]:
    for folder, folders, names in os.walk(settings.STATE_DIR):
        if Path(folder) == settings.STATE_DIR:
            folders[:] = [name for name in folders if name not in _NOT_READ]
        yield from (Path(folder) / name for name in names)
    for entry in Path(tempfile.gettempdir()).glob(f"{OURS}*"):
        yield entry
        for folder, _, names in os.walk(entry):  # which may go meanwhile
            yield from (Path(folder) / name for name in names)


def _holds(path: Path, words: tuple[str, ...]) -> bool:
    if not words or path.is_symlink() or not path.is_file():
        return False
    wanted = [word.encode() for word in words]
    overlap, tail = max(map(len, wanted)), b""
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                data = (tail + chunk).lower()
                if any(word in data for word in wanted):
                    return True
                tail = chunk[-overlap:]
    except OSError:
        return False  # gone meanwhile, or not ours to read
    return False
