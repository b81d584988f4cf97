"""Authentication of REST requests: a session with CSRF protection, or an API key."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.accounts.access import access_key_actor, access_user_actor
from apps.accounts.models import User
from apps.accounts.public.identity import actor_of, must_touch
from apps.accounts.services import touch_key
from apps.accounts.types import Actor
from apps.core.errors import NotAuthenticated, PermissionDenied

_BAD_KEY = "This API key is not valid. It may be mistyped, expired or revoked."


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _never(request: HttpRequest) -> HttpResponse:  # pragma: no cover - the check needs a next step, never taken
    raise NotImplementedError


class ActorAuthentication(BaseAuthentication):
    """`request.user` becomes the User and `request.auth` the Actor.

    A request that names a key is judged by that key alone, never by a cookie that happens to come along.
    Revocation and sign-out count at once here: nothing is cached between requests.
    """

    def authenticate(self, request: Request) -> tuple[User, Actor] | None:
        header = request.headers.get("authorization", "")
        if header:
            return self._by_key(header)
        return self._by_session(request)

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def _by_key(self, header: str) -> tuple[User, Actor]:
        kind, _, secret = header.partition(" ")
        found = access_key_actor(secret.strip()) if kind.lower() == "bearer" else None
        if found is None:
            raise NotAuthenticated(_BAD_KEY)
        actor, key = found
        if not actor.may_use_native_api:
            raise PermissionDenied("This key may only be used with /v1. Make one with full access for /api.")
        if must_touch(key.pk):
            touch_key(key.pk)
        return key.user, actor

    def _by_session(self, request: Request) -> tuple[User, Actor] | None:
        user = getattr(request._request, "user", None)
        if not isinstance(user, User):
            return None
        actor = access_user_actor(user)
        if actor is None:
            return None
        self._enforce_csrf(request)
        return user, actor

    def _enforce_csrf(self, request: Request) -> None:
        check = _CsrfCheck(_never)
        check.process_request(request._request)
        reason = check.process_view(request._request, _never, (), {})
        if reason:
            raise PermissionDenied(
                "The CSRF token is missing or wrong: reload, or send the csrftoken cookie's value as X-CSRFToken."
            )


class IsPerson(BasePermission):
    """For what a leaked key must not be able to do, e.g. make more keys: a signed-in session is needed."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if actor_of(request).via != "session":
            raise PermissionDenied("Keys are managed by signing in, not with a key.")
        return True
