"""The one tree of errors a caller may see; the same codes appear in HTTP bodies, streams and the docs."""

from __future__ import annotations

from typing import Any, ClassVar


class AppError(Exception):
    """An expected failure with a stable code, a sentence for a person and an HTTP status.

    `extra` is sent with the problem body, e.g. `fields` for `Invalid` or `retry_after_s` for overload.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Error"

    def __init__(self, message: str = "", /, **extra: Any) -> None:
        super().__init__(message or self.title)
        self.message = message or self.title
        self.extra = extra


class NotFound(AppError):
    code, status, title = "not_found", 404, "Not found"


class NotAuthenticated(AppError):
    code, status, title = "not_authenticated", 401, "Sign in first"


class PermissionDenied(AppError):
    code, status, title = "permission_denied", 403, "Not allowed"


class Invalid(AppError):
    """Bad input; `fields` maps each field to its messages."""

    code, status, title = "invalid", 422, "Invalid input"


class TooLarge(AppError):
    code, status, title = "too_large", 413, "Too large"


class Conflict(AppError):
    code, status, title = "conflict", 409, "Conflict"


class QuotaExceeded(Conflict):
    """More than somebody may keep; `used`, `limit` and `unit` ("bytes" or "files") say how much that is."""

    code, status, title = "quota_exceeded", 409, "No room left"


class IdempotencyMismatch(AppError):
    code, status, title = "idempotency_mismatch", 422, "Idempotency key used with another body"


class IdempotencyInFlight(AppError):
    code, status, title = "idempotency_in_flight", 409, "The first request with this key is still in flight"


class RateLimited(AppError):
    code, status, title = "rate_limited", 429, "Too many requests"


class Overloaded(AppError):
    code, status, title = "overloaded", 503, "Overloaded"


class NoReplica(AppError):
    code, status, title = "no_replica", 503, "No model is available"


class ModelNotFound(AppError):
    code, status, title = "model_not_found", 404, "No such model"


class UnsupportedFile(AppError):
    code, status, title = "unsupported_file", 415, "This kind of file cannot be read"


class Gone(AppError):
    code, status, title = "gone", 410, "No longer available"
