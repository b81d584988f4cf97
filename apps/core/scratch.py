"""Folders for temporary files that outlive nobody: one whose process was killed is removed by the next that needs one.

A folder is locked (`flock`) by whoever uses it, so whether it is still wanted is known across processes and
containers that share a disk, and no process number has to be trusted.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "parley-scratch-"
GRACE_S = 60.0
"""The least age of a folder that is removed: a new one is not locked at once."""
_looked_at = -GRACE_S


class Scratch:
    """An empty folder until `close`, which removes it with all it holds. `purpose` is part of its name."""

    def __init__(self, purpose: str) -> None:
        _clear_now_and_then()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def close(self) -> None:
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """An empty folder for the length of a block."""
    made = Scratch(purpose)
    try:
        yield made.path
    finally:
        made.close()


def clear() -> int:
    """Remove what killed processes left; returns how many folders."""
    return sum(map(_remove_if_left, Path(tempfile.gettempdir()).glob(f"{PREFIX}*")))


def _clear_now_and_then() -> None:
    global _looked_at
    now = time.monotonic()
    if now - _looked_at >= GRACE_S:
        _looked_at = now
        clear()


def _remove_if_left(folder: Path) -> bool:
    try:
        if time.time() - folder.stat().st_mtime < GRACE_S:
            return False
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False  # gone meanwhile, or somebody else's
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # in use
    else:
        shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        os.close(lock)
