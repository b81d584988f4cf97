"""Places outside whose files are kept in step with an owner's: what one must offer, and the keeping in step."""

from __future__ import annotations

from apps.files.connectors.folder import LocalFolder
from apps.files.connectors.syncing import Outcome, sync, sync_due
from apps.files.connectors.types import Connector, ConnectorError, Item, ItemChanged, Listing

__all__ = [
    "Connector",
    "ConnectorError",
    "Item",
    "ItemChanged",
    "Listing",
    "LocalFolder",
    "Outcome",
    "sync",
    "sync_due",
]
