"""Who is asking, for every kind of entry point: Django requests and raw ASGI scopes (SSE, WebSocket, /v1).

The ASGI road is hot, so a resolved credential is remembered in this process for `REMEMBERED_S`. Signing out
or revoking a key forgets it here at once; other web processes follow within that time, and so does a
changed role, tier, policy or locked account. REST requests ask the database every time and have no such delay.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from rest_framework.request import Request

from apps.accounts.access import access_key_actor, access_session_actor, key_digest
from apps.accounts.services import touch_key
from apps.accounts.types import Actor, Scope
from apps.core.db import in_db
from apps.core.errors import NotAuthenticated

REMEMBERED_S: Final = 3.0
_REMEMBERED_MAX: Final = 20_000
_TOUCH_EVERY_S: Final = 60.0

_remembered: dict[bytes, tuple[float, Actor]] = {}
_touched: dict[UUID, float] = {}
_background: set[asyncio.Task[None]] = set()


def actor_of(request: Request | HttpRequest) -> Actor:
    """The actor that authentication put on the request. Raises NotAuthenticated when there is none."""
    actor = getattr(request, "auth", None)
    if not isinstance(actor, Actor):
        raise NotAuthenticated("Sign in, or send a valid API key.")
    return actor


async def actor_of_scope(scope: Mapping[str, Any], *, needs: Scope = Scope.FULL) -> Actor | None:
    """The actor behind an ASGI scope, from a Bearer key or the session cookie; None when there is none.

    A browser sends its cookie with whatever page asks it to, so a cookie counts only for reads (GET, HEAD),
    and for WebSockets only when the Origin is ours. A key needs the scope `needs`, or the full one.
    """
    headers = dict(scope["headers"])
    authorization: bytes = headers.get(b"authorization", b"")
    if authorization:
        kind, _, secret = authorization.decode("latin-1").partition(" ")
        return await _actor_of_key(secret.strip(), needs) if kind.lower() == "bearer" else None
    if scope["type"] == "websocket":
        if not origin_is_ours(scope):
            return None
    elif scope.get("method") not in ("GET", "HEAD"):
        return None
    cookies = parse_cookie(headers.get(b"cookie", b"").decode("latin-1"))
    session_key = cookies.get(settings.SESSION_COOKIE_NAME)
    return await _actor_of_session(session_key) if session_key else None


def origin_is_ours(scope: Mapping[str, Any]) -> bool:
    """Whether the Origin header names this server: its own host, or an origin that the settings trust."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin-1")
    host = headers.get(b"host", b"").decode("latin-1")
    return bool(origin) and (urlsplit(origin).netloc == host or origin in settings.CSRF_TRUSTED_ORIGINS)


def forget_session(session_key: str) -> None:
    _remembered.pop(_session_digest(session_key), None)


def forget_key(digest: bytes) -> None:
    _remembered.pop(digest, None)


def forget_all() -> None:
    """Drop everything remembered, e.g. between tests."""
    _remembered.clear()
    _touched.clear()


def must_touch(key_id: UUID) -> bool:
    """Whether this process should note a use of the key now: at most once a minute a key."""
    now = time.monotonic()
    if now - _touched.get(key_id, -_TOUCH_EVERY_S) < _TOUCH_EVERY_S:
        return False
    if len(_touched) >= _REMEMBERED_MAX:
        _touched.clear()
    _touched[key_id] = now
    return True


async def _actor_of_key(secret: str, needs: Scope) -> Actor | None:
    digest = key_digest(secret)
    actor = _recall(digest)
    if actor is None:
        found = await in_db(access_key_actor, secret)
        if found is None:
            return None
        actor, key = found
        _remember(
            digest,
            actor,
            until=None if key.expires_at is None else key.expires_at.timestamp(),
        )
    if actor.key_id is not None and must_touch(actor.key_id):
        # Not awaited: a clock for the key's owner must not delay the first token.
        task = asyncio.create_task(in_db(touch_key, actor.key_id))
        _background.add(task)
        task.add_done_callback(_background.discard)
    return actor if needs in actor.scopes or Scope.FULL in actor.scopes else None


async def _actor_of_session(session_key: str) -> Actor | None:
    digest = _session_digest(session_key)
    actor = _recall(digest)
    if actor is None:
        actor = await in_db(access_session_actor, session_key)
        if actor is not None:
            _remember(digest, actor)
    return actor


def _session_digest(session_key: str) -> bytes:
    return sha256(b"session:" + session_key.encode()).digest()


def _recall(digest: bytes) -> Actor | None:
    entry = _remembered.get(digest)
    if entry is None:
        return None
    until, actor = entry
    if until > time.monotonic():
        return actor
    _remembered.pop(digest, None)
    return None


def _remember(digest: bytes, actor: Actor, *, until: float | None = None) -> None:
    """`until` is the wall-clock time at which the credential itself ends, if it does."""
    if len(_remembered) >= _REMEMBERED_MAX:
        # All entries live equally long, so the first is the oldest.
        _remembered.pop(next(iter(_remembered)), None)
    span = REMEMBERED_S if until is None else min(REMEMBERED_S, until - time.time())
    _remembered[digest] = (time.monotonic() + span, actor)
