"""Live notes to a user's open tabs and devices: `notify_user(user_id, payload)` after commit.

A note is a convenience: whoever misses one sees the same on the next fetch. Sent on a plain Valkey
channel a user, which web processes relay to their WebSockets.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
import redis
import structlog
from django.db import transaction

from apps.core.valkey import valkey

log = structlog.get_logger(__name__)


def user_channel(user_id: UUID) -> str:
    return f"user:{user_id}"


def notify_user(user_id: UUID, payload: dict[str, Any]) -> None:
    """Publish `payload` (JSON types, UUID and datetime allowed) once the current transaction commits."""
    message = orjson.dumps(payload, option=orjson.OPT_UTC_Z)

    def send() -> None:
        try:
            valkey().publish(user_channel(user_id), message)
        except redis.RedisError as error:
            log.warning("notify.lost", error=type(error).__name__)

    transaction.on_commit(send)
