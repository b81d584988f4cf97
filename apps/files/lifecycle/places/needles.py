"""What is searched for: a file's id in its written forms, and words of its content."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Needles:
    """`words` in lower case: the id with and without dashes, then the markers."""

    id: UUID
    words: tuple[str, ...]
    markers: tuple[str, ...]

    @classmethod
    def of(cls, file_id: UUID, markers: Sequence[str] = ()) -> Needles:
        """Raises ValueError for a marker so short that it would be found anywhere."""
        lowered = tuple(marker.lower() for marker in markers)
        if any(len(marker) < 6 for marker in lowered):
            raise ValueError("a marker needs six characters or more")
        return cls(file_id, (str(file_id), file_id.hex, *lowered), lowered)

    def in_bytes(self, data: bytes) -> bool:
        return _holds(self.words, data)

    def content_in_bytes(self, data: bytes) -> bool:
        """Whether there is content of the file, not just its name."""
        return _holds(self.markers, data)


def _holds(words: Sequence[str], data: bytes) -> bool:
    lowered = data.lower()
    return any(word.encode() in lowered or _escaped(word) in lowered for word in words)


def _escaped(word: str) -> bytes:
    """As JSON in ASCII writes it."""
    return json.dumps(word)[1:-1].lower().encode()


def unwrapped(data: bytes) -> bytes:
    """A queue's message with its body, which stands in it in base64; other data as it is."""
    try:
        message = json.loads(data)
        inner = message[0] if isinstance(message, list) and message else message  # as in `unacked`
        body = inner.get("body", "") if isinstance(inner, dict) else ""
        return data + base64.b64decode(body, validate=True) if isinstance(body, str) else data
    except (ValueError, binascii.Error):
        return data
