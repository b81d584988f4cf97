"""HTTP edges shared by every app: JSON in and out, problem details for errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import orjson
import structlog
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.response import Response

from apps.core import errors

log = structlog.get_logger(__name__)
MAX_BODY_BYTES = 1 << 20
PROBLEM = "application/problem+json"


class ORJSONRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None) -> bytes:
        return b"" if data is None else orjson.dumps(data, option=orjson.OPT_UTC_Z, default=str)


class BoundedJSONParser(BaseParser):
    """JSON of at most 1 MiB. A larger body is refused before it is decoded."""

    media_type = "application/json"

    def parse(self, stream: IO[bytes], media_type: Any = None, parser_context: Any = None) -> Any:
        body = stream.read(MAX_BODY_BYTES + 1)
        if len(body) > MAX_BODY_BYTES:
            raise errors.TooLarge("The request is larger than 1 MiB. Send long text as a file.")
        try:
            return orjson.loads(body) if body else {}
        except orjson.JSONDecodeError as error:
            raise errors.Invalid(f"The body is not valid JSON: {error}") from error


def problem(error: errors.AppError, request_id: str) -> dict[str, Any]:
    """RFC 9457 problem details with our stable code."""
    return {
        "type": "about:blank",
        "title": error.title,
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "request_id": request_id,
        **error.extra,
    }


def problem_headers(error: errors.AppError) -> dict[str, str]:
    wait = error.extra.get("retry_after_s")
    return {} if wait is None else {"Retry-After": str(max(1, round(wait)))}


def as_app_error(error: Exception) -> errors.AppError | None:
    """The caller-visible form of an expected exception; None when it is a bug."""
    if isinstance(error, errors.AppError):
        return error
    if isinstance(error, Http404 | exceptions.NotFound):
        return errors.NotFound("There is nothing here, or you may not see it.")
    if isinstance(error, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return errors.NotAuthenticated("Sign in, or send a valid API key.")
    if isinstance(error, exceptions.PermissionDenied | DjangoPermissionDenied):
        return errors.PermissionDenied("You may not do this.")
    if isinstance(error, exceptions.ValidationError):
        return errors.Invalid("Some fields are not valid.", fields=_fields(error.detail))
    if isinstance(error, OperationalError | InterfaceError):
        return errors.Overloaded("The database does not answer. Nothing was saved; try again.", retry_after_s=2)
    if isinstance(error, exceptions.APIException):
        wrapped = errors.AppError(str(error.detail))
        wrapped.__class__ = _http_error(error.status_code, str(error.default_code))
        return wrapped
    return None


def _http_error(status: int, code: str) -> type[errors.AppError]:
    return type("HttpError", (errors.AppError,), {"status": status, "code": code, "title": code.replace("_", " ")})


def _fields(detail: Any) -> Mapping[str, Any]:
    """DRF's details with text keys throughout (it numbers the items of a list)."""
    return _with_text_keys(detail) if isinstance(detail, Mapping) else {"non_field_errors": detail}


def _with_text_keys(detail: Any) -> Any:
    if isinstance(detail, Mapping):
        return {str(key): _with_text_keys(value) for key, value in detail.items()}
    return detail


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's hook: every error of the native API is a problem body."""
    known = as_app_error(error)
    if known is None:
        return None
    request_id = context["request"].META.get("parley.request_id", "")
    response = Response(problem(known, request_id), status=known.status, headers=problem_headers(known))
    response.content_type = PROBLEM
    return response


def error_response(request: HttpRequest, error: errors.AppError) -> JsonResponse:
    """The same body for plain Django views and middleware."""
    request_id = request.META.get("parley.request_id", "")
    return JsonResponse(
        problem(error, request_id), status=error.status, content_type=PROBLEM, headers=problem_headers(error)
    )


def not_found(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    return error_response(request, errors.NotFound("There is nothing here, or you may not see it."))


def server_error(request: HttpRequest) -> JsonResponse:
    return error_response(request, errors.AppError("Something went wrong on our side. Give the request id to support."))
