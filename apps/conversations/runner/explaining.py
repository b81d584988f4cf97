"""What a person is told of whatever ended a run."""

from __future__ import annotations

from django.conf import settings

from inference.continuation import NotContinuable
from inference.protocol import (
    EngineFailed,
    EngineOverloaded,
    EngineRejected,
    EngineUnavailable,
    NoReplica,
    Overloaded,
)


def explain(error: Exception) -> tuple[str, str, float | None]:
    """Code, sentence and wait in seconds for a person, of whatever ended a run."""
    match error:
        case TimeoutError():
            return "deadline", f"The answer took longer than {settings.RUN_DEADLINE_S} s and was stopped.", None
        case NoReplica():
            return "no_replica", "No replica of this model is running. Try again later.", error.eta_s or 15
        case Overloaded() | EngineOverloaded():
            return "overloaded", f"The model is too busy: {error.reason}.", error.retry_after_s or 5
        case EngineRejected():
            return "rejected", f"The model refused the request: {error.message[:300]}", None
        case NotContinuable():
            return "replica_failed", str(error), 2
        case EngineFailed() | EngineUnavailable():
            return "replica_failed", "The model stopped answering. What it wrote is kept; try again.", 2
        case _:
            return "internal", "Something went wrong on our side. Try again.", None
