"""A folder of this machine as a place outside.

Only below the roots that the operator named. Every step into the folder is taken without following links, by
descriptors and not by paths, so nobody who can write there can lead the reader elsewhere, however fast.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from apps.files.connectors.types import ConnectorError, Item, ItemChanged, Listing
from apps.files.types import ENDINGS

MAX_ITEMS = 10_000
MAX_ENTRIES = 100_000
MAX_DEPTH = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: opening a named pipe would wait for somebody who writes.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LocalFolder:
    """See `Connector`. An item's id is its path below the folder; its version is its size and time of change."""

    kind = "folder"

    def __init__(self, folder: str, roots: Sequence[str]) -> None:
        """Raises ConnectorError for a folder that is not below one of the roots."""
        wanted = Path(os.path.normpath(folder))
        root = next((Path(root) for root in roots if wanted.is_relative_to(root)), None)
        if not wanted.is_absolute() or root is None:
            raise ConnectorError(f"{folder} is not below a folder of PARLEY_CONNECTOR_ROOTS.")
        self._root, self._below = root, wanted.relative_to(root).parts
        self.location = str(wanted)

    def list(self, cursor: str) -> Listing:
        """All there is: a folder tells no changes. Hidden files and kinds that cannot be read are skipped."""
        items: list[Item] = []
        entries = 0
        with _reading(), self._opened() as top:
            walk = os.fwalk(".", dir_fd=top, follow_symlinks=False, onerror=_refuse)
            for place, folders, names, descriptor in walk:
                folder = PurePosixPath(place)
                folders[:] = [name for name in folders if not name.startswith(".")]
                entries += len(names)
                if entries > MAX_ENTRIES or len(folder.parts) > MAX_DEPTH:
                    raise ConnectorError(f"{self.location} has more than {MAX_ENTRIES:,} entries, or is too deep.")
                for name in sorted(names):
                    item = _item(folder / name, descriptor)
                    if item is not None:
                        items.append(item)
                if len(items) > MAX_ITEMS:
                    raise ConnectorError(f"{self.location} has more than {MAX_ITEMS:,} files. Name its parts instead.")
        return Listing(tuple(items), complete=True, skipped=entries - len(items))

    def read(self, item: Item, *, at_most: int) -> bytes:
        *folders, name = PurePosixPath(item.external_id).parts
        with _reading(), self._opened(folders) as folder:
            descriptor = os.open(name, _FILE, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                if _version(os.fstat(descriptor)) != item.version:
                    raise ItemChanged(f"{item.external_id} has changed since it was listed.")
                data = file.read(min(at_most, item.size) + 1)
                if _version(os.fstat(descriptor)) != item.version or len(data) != item.size:
                    raise ItemChanged(f"{item.external_id} changed while it was read.")
        return data

    @contextmanager
    def _opened(self, below: Sequence[str] = ()) -> Iterator[int]:
        """A descriptor of the folder, or of one below it, reached without following a link."""
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in (*self._below, *below):
                deeper = os.open(name, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)


def _refuse(error: OSError) -> None:
    """A part that cannot be read must not look like one that is gone."""
    raise error


def _item(path: PurePosixPath, folder: int) -> Item | None:
    if any(part.startswith(".") for part in path.parts) or path.suffix.lower() not in ENDINGS:
        return None
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        str(path).encode()
    except (OSError, UnicodeEncodeError):
        return None  # gone meanwhile, or a name that no database holds
    if not stat.S_ISREG(found.st_mode) or not found.st_size or len(str(path)) > 1_000:
        return None
    return Item(str(path), path.name, found.st_size, _version(found))


def _version(found: os.stat_result) -> str:
    return f"{found.st_size}-{found.st_mtime_ns}"


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConnectorError(f"{error.filename or 'folder'}: {error.strerror}") from error
