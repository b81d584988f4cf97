"""Our errors in the shape that OpenAI's clients read: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from apps.core.errors import AppError
from apps.core.http import as_app_error, problem_headers

log = structlog.get_logger(__name__)

_CODES = {
    "not_authenticated": "invalid_api_key",
    "rate_limited": "rate_limit_exceeded",
    "invalid": None,
    "too_large": "request_too_large",
    "not_found": "unknown_url",
}
"""Where OpenAI has a code of its own for what we mean, clients get that one."""

_INTERNAL = "Something went wrong on our side. Give the request id to support."
_STATUS_OF_RUN_ERROR = {
    "no_replica": 503,
    "overloaded": 503,
    "replica_failed": 503,
    "invalid_output": 502,
    "rejected": 400,
    "deadline": 504,
}


@dataclass(frozen=True, slots=True)
class ApiError:
    """One error as it goes out, before or within a stream."""

    status: int
    message: str
    code: str | None
    param: str | None = None
    retry_after_s: float | None = None

    @property
    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self._type, "param": self.param, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """The official clients wait as long as `Retry-After` says before they try again."""
        if self.retry_after_s is None:
            return {}
        return {
            "retry-after": str(max(1, round(self.retry_after_s))),
            "retry-after-ms": str(max(1, round(self.retry_after_s * 1000))),
        }

    @property
    def _type(self) -> str:
        if self.status == 429:
            return "requests"
        return "server_error" if self.status >= 500 else "invalid_request_error"


def from_exception(error: Exception, request_id: str) -> ApiError:
    """The visible form of an error; an unexpected one is logged and hidden."""
    known = as_app_error(error)
    if known is None:
        log.error("v1.crashed", request_id=request_id, exc_info=error)
        return ApiError(500, _INTERNAL, "internal")
    return _from_app_error(known)


def _from_app_error(error: AppError) -> ApiError:
    wait = problem_headers(error) and float(error.extra["retry_after_s"])
    return ApiError(
        # Bad input is 400 in this API, 422 in ours.
        status=400 if error.status == 422 else error.status,
        message=error.message,
        code=_CODES.get(error.code, error.code),
        param=error.extra.get("param"),
        retry_after_s=wait or None,
    )


def from_run(error: Mapping[str, Any] | None, state: str) -> ApiError:
    """Why a run ended without an answer, from its last event."""
    if error is None:
        return ApiError(409, f"The answer was {state} before it was complete.", state)
    code = str(error.get("code", "internal"))
    return ApiError(
        status=_STATUS_OF_RUN_ERROR.get(code, 500),
        message=str(error.get("message") or _INTERNAL),
        code=code,
        retry_after_s=error.get("retry_after_s"),
    )
