"""What a run waits out, and what it says when waiting is over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

import structlog
from django.conf import settings
from django.db import InterfaceError, OperationalError

from inference.continuation import NotContinuable
from inference.protocol import (
    EngineFailed,
    EngineOverloaded,
    EngineRejected,
    EngineUnavailable,
    NoReplica,
    Overloaded,
)
from inference.structured import StructuredOutputFailed

log = structlog.get_logger(__name__)
T = TypeVar("T")
FIRST_BACKOFF_S = 0.1
MOST_BACKOFF_S = 5.0


def backoff(attempt: int) -> float:
    """Seconds before try `attempt` + 1: exponential with jitter, five at the most."""
    return min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2.0**attempt) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries


def explain(error: Exception) -> tuple[str, str, float | None]:
    """Code, sentence and wait in seconds for a person, of whatever ended a run."""
    match error:
        case TimeoutError():
            return "deadline", f"The answer took longer than {settings.RUN_DEADLINE_S} s and was stopped.", None
        case NoReplica():
            return "no_replica", "No replica of this model is running. Try again later.", error.eta_s or 15
        case Overloaded():
            other = f" {error.alternative} has room: choose it, or try again later." if error.alternative else ""
            return "overloaded", f"The model is too busy: {error.reason}.{other}", error.retry_after_s or 5
        case EngineOverloaded():
            return "overloaded", f"The model is too busy: {error.reason}.", error.retry_after_s or 5
        case EngineRejected():
            return "rejected", f"The model refused the request: {error.message[:300]}", None
        case StructuredOutputFailed():
            told = f"The answer does not have the form that was asked for: {'; '.join(error.problems)}."
            return "invalid_output", f"{told} Try again, or choose a stronger model.", None
        case NotContinuable():
            return "replica_failed", str(error), 2
        case EngineFailed() | EngineUnavailable():
            return "replica_failed", "The model stopped answering. What it wrote is kept; try again.", 2
        case _:
            return "internal", "Something went wrong on our side. Try again.", None


async def until_db(operation: Callable[[], Awaitable[T]]) -> T:
    """Run a database operation, waiting out a server that is away. The run's deadline bounds the wait."""
    for attempt in count():
        try:
            return await operation()
        except (OperationalError, InterfaceError) as error:
            log.warning("database.away", error=type(error).__name__, attempt=attempt)
            await asyncio.sleep(backoff(min(attempt, 6)))
    raise AssertionError("unreachable")
