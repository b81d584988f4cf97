"""Files that are protected with a password."""

from __future__ import annotations

import io

from msoffcrypto.format.ooxml import OOXMLFile

PASSWORD = "Öffne dich 7"


def office(data: bytes) -> bytes:
    """A document of new Office, encrypted as Office does it."""
    locked = io.BytesIO()
    OOXMLFile(io.BytesIO(data)).encrypt(PASSWORD, locked)
    return locked.getvalue()
