"""What a place outside must offer so that its files can be kept in step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class ConnectorError(Exception):
    """The place cannot be listed or an item not be read now. Nothing is changed or removed because of it."""


class ItemChanged(ConnectorError):
    """The item was written to while it was read; the next round takes it."""


@dataclass(frozen=True, slots=True)
class Item:
    """`external_id` names it for as long as it exists; `version` is another whenever its content may be another."""

    external_id: str
    name: str
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What is new or changed since a cursor, and what is gone.

    `complete`: everything there is was listed, so whatever is not is gone. `skipped`: things that cannot be files here.
    """

    items: tuple[Item, ...]
    cursor: str = ""
    deleted: tuple[str, ...] = ()
    complete: bool = False
    skipped: int = 0


class Connector(Protocol):
    """One place. `kind` and `location` name it; both methods are bounded and raise ConnectorError."""

    kind: str
    location: str

    def list(self, cursor: str) -> Listing:
        """Changes since the cursor of an earlier listing; all there is since the empty one."""

    def read(self, item: Item, *, at_most: int) -> bytes:
        """The content of just this version. Raises ItemChanged when it has another by now."""
