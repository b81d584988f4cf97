"""Request ids on every response and the content security policy of the pages we serve."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from apps.core.ids import new_id

Handler = Callable[[HttpRequest], HttpResponseBase]
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{8,64}")
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
# Django's admin theme and the API docs page style elements inline; scripts stay our own.
_STYLED_POLICY = _POLICY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")
# The admin theme evaluates Alpine expressions; it is for signed-in operators only.
_ADMIN_POLICY = _STYLED_POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline' 'unsafe-eval'")


def request_id_from(header: str | None) -> str:
    """The caller's id when it is safe to log, else a new one."""
    return header if header and _ACCEPTED.fullmatch(header) else new_id().hex


class RequestIdMiddleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request_id_from(request.headers.get("x-request-id"))
        request.META["parley.request_id"] = request_id
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            response = self.get_response(request)
        response.headers["x-request-id"] = request_id
        if response.status_code == 429:
            # Ours say how long; allauth's limits do not, and most of them last a minute.
            response.headers.setdefault("Retry-After", "60")
        return response


class ContentSecurityPolicyMiddleware:
    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, HttpResponse) and response.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Security-Policy", _policy_for(request.path))
        return response


@lru_cache(maxsize=1)
def _app_policy() -> str:
    """Pages may also reach the object store, where parts are sent to signed addresses."""
    store = urlsplit(settings.S3_PUBLIC_ENDPOINT)
    if not store.netloc:
        return _POLICY
    origin = f"{store.scheme}://{store.netloc}"
    return _POLICY.replace("connect-src 'self'", f"connect-src 'self' {origin}")


def _policy_for(path: str) -> str:
    if path.startswith("/admin"):
        return _ADMIN_POLICY
    return _STYLED_POLICY if path.startswith("/api/docs") else _app_policy()
