"""Who an ASGI scope (event stream, WebSocket, /v1) stands for, and how long that is remembered."""

from __future__ import annotations

from time import sleep
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from django.utils import timezone

from apps.accounts.models import ApiKey
from apps.accounts.public import identity
from apps.accounts.public.identity import actor_of_scope, forget_all
from apps.accounts.types import Actor, Scope
from tests.factories.accounts import make_actor, make_key, make_user

# Resolving runs on database threads, so rows must be committed to be seen.
pytestmark = pytest.mark.django_db(transaction=True)


def scope(kind: str = "http", method: str = "GET", **headers: str) -> dict[str, Any]:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": kind, "method": method, "headers": [(b"host", b"parley.example"), *pairs]}


def resolve(of: dict[str, Any], **options: Any) -> Actor | None:
    return async_to_sync(actor_of_scope)(of, **options)


def session_cookie() -> tuple[Client, str]:
    client = Client()
    client.force_login(make_user(), backend="allauth.account.auth_backends.AuthenticationBackend")
    return client, f"csrftoken=x; sessionid={client.cookies['sessionid'].value}"


def test_a_key_stands_for_its_owner() -> None:
    actor = make_actor()
    key = make_key(actor)
    found = resolve(scope(method="POST", authorization=f"Bearer {key.key}"))
    assert found is not None
    assert (found.user_id, found.organization_id, found.via, found.key_id) == (
        actor.user_id,
        actor.organization_id,
        "api_key",
        key.info.id,
    )
    assert resolve(scope(authorization="Bearer pk_unknown")) is None
    assert resolve(scope(authorization=f"Basic {key.key}")) is None
    assert resolve(scope()) is None


def test_an_operators_key_is_no_operator() -> None:
    actor = make_actor()
    assert actor.is_operator
    found = resolve(scope(authorization=f"Bearer {make_key(actor).key}"))
    assert found is not None
    assert not found.is_operator


def test_an_inference_key_serves_only_what_needs_no_more() -> None:
    of = scope(authorization=f"Bearer {make_key(make_actor(), full=False).key}")
    assert resolve(of) is None
    assert resolve(of, needs=Scope.INFERENCE) is not None


def test_a_cookie_counts_for_reads_only() -> None:
    _, cookie = session_cookie()
    assert resolve(scope(cookie=cookie)) is not None
    assert resolve(scope(method="POST", cookie=cookie)) is None


def test_a_websocket_by_cookie_must_come_from_our_origin() -> None:
    _, cookie = session_cookie()
    assert resolve(scope("websocket", cookie=cookie)) is None
    assert resolve(scope("websocket", cookie=cookie, origin="https://evil.example")) is None
    assert resolve(scope("websocket", cookie=cookie, origin="null")) is None
    assert resolve(scope("websocket", cookie=cookie, origin="https://parley.example")) is not None


def test_it_is_remembered_for_a_moment_and_forgotten_on_revocation() -> None:
    user = make_user()
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    made = client.post("/api/keys", {"name": "k"}, content_type="application/json").json()
    of = scope(authorization=f"Bearer {made['key']}")
    assert resolve(of) is not None

    assert client.delete(f"/api/keys/{made['id']}").status_code == 204
    assert resolve(of) is None


def test_what_is_remembered_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_key(make_actor())
    of = scope(authorization=f"Bearer {key.key}")
    assert resolve(of) is not None
    # As another web process would: nothing here is told.
    ApiKey.objects.update(revoked_at=timezone.now())
    assert resolve(of) is not None
    assert identity.REMEMBERED_S <= 5

    forget_all()
    monkeypatch.setattr(identity, "REMEMBERED_S", 0.05)
    ApiKey.objects.update(revoked_at=None)
    assert resolve(of) is not None
    ApiKey.objects.update(revoked_at=timezone.now())
    sleep(0.06)
    assert resolve(of) is None


def test_signing_out_is_seen_at_once() -> None:
    client, cookie = session_cookie()
    assert resolve(scope(cookie=cookie)) is not None
    client.delete("/_allauth/browser/v1/auth/session")
    assert resolve(scope(cookie=cookie)) is None
