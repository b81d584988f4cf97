"""Identifiers: UUIDv7, so that rows sort by creation and index pages stay warm."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7

__all__ = ["UUID", "new_id", "parse_id"]


def new_id() -> UUID:
    return uuid7()


def parse_id(value: object) -> UUID | None:
    """`value` as a UUID, or None when it is not one (an unknown id, to a caller)."""
    if isinstance(value, UUID):
        return value
    try:
        return UUID(str(value))
    except ValueError:
        return None
