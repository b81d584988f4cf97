"""Hints to the runners over Valkey. Losing one costs time only: the runners' sweep finds the row."""

from __future__ import annotations

from uuid import UUID

import redis
import structlog

from apps.conversations.eventlog import lane_key
from apps.core.valkey import valkey

log = structlog.get_logger(__name__)
CANCEL_CHANNEL = "runs:cancel"
MAX_HINTS = 10_000


def offer(lane: str, run_id: UUID) -> None:
    """Tell the runners that a run waits in `lane`."""
    try:
        with valkey().pipeline(transaction=False) as pipe:
            pipe.rpush(lane_key(lane), run_id.hex)
            pipe.ltrim(lane_key(lane), -MAX_HINTS, -1)
            pipe.execute()
    except redis.RedisError as error:
        log.warning("run.hint_lost", run_id=str(run_id), error=type(error).__name__)


def hint_cancel(run_id: UUID) -> None:
    """Tell the runner that has it to stop a run."""
    try:
        valkey().publish(CANCEL_CHANNEL, run_id.hex)
    except redis.RedisError as error:
        log.warning("run.cancel_hint_lost", run_id=str(run_id), error=type(error).__name__)
