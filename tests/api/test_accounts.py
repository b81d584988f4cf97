"""Signing up, in and out, and the account and key endpoints, over HTTP."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from apps.accounts.models import ApiKey, Membership, Organization, User
from tests.factories.accounts import PASSWORD, make_actor, make_key, make_user

pytestmark = pytest.mark.django_db
AUTH = "/_allauth/browser/v1/auth"


def post(client: Client, path: str, body: dict[str, Any], **headers: str) -> Any:
    return client.post(path, body, content_type="application/json", headers=headers)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


def test_the_first_account_becomes_the_operator_and_gets_an_organization(client: Client) -> None:
    site = client.get("/api/site").json()
    assert site["setup_needed"] is True

    answer = post(client, f"{AUTH}/signup", {"email": "Ada@Example.ORG", "password": PASSWORD})

    assert answer.status_code == 200, answer.content
    me = client.get("/api/me").json()
    assert me["user"] | {"id": None} == {"id": None, "email": "ada@example.org", "name": "", "is_operator": True}
    assert me["organization"]["role"] == "owner"
    assert me["organization"]["tier"] == "free"
    assert Organization.objects.get().personal
    assert client.get("/api/site").json()["setup_needed"] is False


def test_the_second_account_is_no_operator(client: Client) -> None:
    make_user()
    assert post(client, f"{AUTH}/signup", {"email": "b@example.org", "password": PASSWORD}).status_code == 200
    assert client.get("/api/me").json()["user"]["is_operator"] is False
    assert Membership.objects.count() == Organization.objects.count() == 2


def test_sign_up_closes_after_the_first_account(client: Client, settings: Any) -> None:
    settings.SIGNUP_POLICY = "first"
    assert post(client, f"{AUTH}/signup", {"email": "a@example.org", "password": PASSWORD}).status_code == 200

    refused = post(Client(), f"{AUTH}/signup", {"email": "b@example.org", "password": PASSWORD})

    assert refused.status_code == 403
    assert "Ask the operator for an account" in refused.json()["errors"][0]["message"]
    assert User.objects.count() == 1
    session = Client().get(f"{AUTH}/session")
    assert session.status_code == 401
    assert "signup" not in {flow["id"] for flow in session.json()["data"]["flows"]}


def test_closed_sign_up_does_not_tell_who_has_an_account(settings: Any) -> None:
    settings.SIGNUP_POLICY = "first"
    make_user(email="ada@example.org")
    taken, free = (
        post(Client(), f"{AUTH}/signup", {"email": email, "password": PASSWORD})
        for email in ("ada@example.org", "bob@example.org")
    )
    assert taken.status_code == free.status_code == 403
    assert taken.content == free.content


@pytest.mark.parametrize(
    ("email", "password", "param"),
    [
        ("a@example.org", "short", "password"),
        ("not-an-address", PASSWORD, "email"),
        ("a@example.org", "password123", "password"),
    ],
)
def test_bad_sign_up_says_which_field(client: Client, email: str, password: str, param: str) -> None:
    answer = post(client, f"{AUTH}/signup", {"email": email, "password": password})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["param"] == param
    assert not User.objects.exists()


def test_an_address_is_taken_in_any_case(client: Client) -> None:
    make_user(email="ada@example.org")
    answer = post(client, f"{AUTH}/signup", {"email": "ADA@example.org", "password": PASSWORD})
    assert answer.status_code in (400, 401)
    assert User.objects.count() == 1


def test_sign_in_and_out(client: Client) -> None:
    make_user(email="ada@example.org")
    assert client.get("/api/me").status_code == 401

    assert post(client, f"{AUTH}/login", {"email": "Ada@example.org", "password": PASSWORD}).status_code == 200
    assert client.get("/api/me").status_code == 200

    assert client.delete(f"{AUTH}/session").status_code == 401
    assert client.get("/api/me").json()["code"] == "not_authenticated"


def test_a_wrong_password_and_an_unknown_address_look_the_same(client: Client) -> None:
    make_user(email="ada@example.org")
    wrong = post(client, f"{AUTH}/login", {"email": "ada@example.org", "password": "not-the-password-1"})
    unknown = post(Client(), f"{AUTH}/login", {"email": "bob@example.org", "password": "not-the-password-1"})
    assert (wrong.status_code, wrong.content) == (unknown.status_code, unknown.content)
    assert wrong.status_code == 400


def test_failed_sign_ins_are_limited_by_account(client: Client, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login": "100/m/ip", "login_failed": "100/m/ip,3/5m/key"}
    cache.clear()
    make_user(email="ada@example.org")
    attempt = {"email": "ada@example.org", "password": "not-the-password-1"}
    codes = [post(client, f"{AUTH}/login", attempt).json()["errors"][0]["code"] for _ in range(4)]
    assert codes == ["email_password_mismatch"] * 3 + ["too_many_login_attempts"]
    right = post(client, f"{AUTH}/login", {"email": "ada@example.org", "password": PASSWORD})
    assert right.json()["errors"][0]["code"] == "too_many_login_attempts"
    cache.clear()


def test_sign_ins_are_limited_by_address_of_the_client(client: Client, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login": "2/m/ip"}
    cache.clear()
    statuses = [
        post(client, f"{AUTH}/login", {"email": f"p{n}@example.org", "password": PASSWORD}).status_code
        for n in range(3)
    ]
    limited = post(client, f"{AUTH}/login", {"email": "p9@example.org", "password": PASSWORD})
    assert statuses == [400, 400, 429]
    assert int(limited["Retry-After"]) > 0
    cache.clear()


def test_a_password_cannot_be_reset_by_mail_without_mail(client: Client) -> None:
    make_user(email="ada@example.org")
    known = post(client, f"{AUTH}/password/request", {"email": "ada@example.org"})
    unknown = post(client, f"{AUTH}/password/request", {"email": "bob@example.org"})
    assert known.status_code == unknown.status_code == 409
    assert known.content == unknown.content
    assert "operator" in known.json()["errors"][0]["message"]


def test_a_password_is_reset_by_mail(client: Client, settings: Any) -> None:
    settings.MAIL_CONFIGURED = True
    user = make_user(email="ada@example.org")
    old_session = signed_in(user)
    assert post(client, f"{AUTH}/password/request", {"email": "Ada@example.org"}).status_code == 200
    key = re.findall(r"/reset-password/(\S+)", str(mail.outbox[0].body))[0]

    answer = post(client, f"{AUTH}/password/reset", {"key": key, "password": "another-passphrase-8"})
    again = post(client, f"{AUTH}/password/reset", {"key": key, "password": "yet-another-one-99"})

    assert answer.status_code == 401, "reset, and not signed in by it"
    user.refresh_from_db()
    assert user.check_password("another-passphrase-8")
    assert again.status_code == 400
    assert old_session.get("/api/me").status_code == 401, "a new password ends the old sessions"


def test_a_write_by_session_needs_the_csrf_token() -> None:
    user = make_user()
    client = Client(enforce_csrf_checks=True)
    client.force_login(user, backend="allauth.account.auth_backends.AuthenticationBackend")
    body = {"name": "Ada"}

    refused = client.patch("/api/me", body, content_type="application/json")
    token = client.get("/api/site").cookies["csrftoken"].value
    accepted = client.patch("/api/me", body, content_type="application/json", headers={"x-csrftoken": token})

    assert refused.status_code == 403
    assert "CSRF" in refused.json()["detail"]
    assert accepted.json()["user"]["name"] == "Ada"


def test_a_key_is_shown_once_and_kept_as_a_digest() -> None:
    client = signed_in(make_user())
    made = post(client, "/api/keys", {"name": "script", "expires_in_days": 30})
    assert made.status_code == 201
    body = made.json()
    assert body["key"].startswith(body["prefix"])
    assert body["key"].startswith("pk_")
    assert body["scopes"] == ["full"]

    listed = client.get("/api/keys").json()
    assert listed["next"] is None
    assert listed["results"] == [{name: value for name, value in body.items() if name != "key"}]
    row = ApiKey.objects.get()
    assert body["key"].encode() not in bytes(row.digest)
    assert len(bytes(row.digest)) == 32


def test_a_key_acts_as_its_owner_until_revoked() -> None:
    user = make_user()
    client = signed_in(user)
    made = post(client, "/api/keys", {"name": "script"}).json()
    bearer = {"authorization": f"Bearer {made['key']}"}

    assert Client().get("/api/me", headers=bearer).json()["user"]["id"] == str(user.pk)
    assert ApiKey.objects.get().last_used_at is not None

    assert client.delete(f"/api/keys/{made['id']}").status_code == 204
    assert Client().get("/api/me", headers=bearer).status_code == 401
    assert client.get("/api/keys").json()["results"] == []
    assert client.delete(f"/api/keys/{made['id']}").status_code == 404


def test_an_expired_key_and_a_locked_owner_are_refused() -> None:
    user = make_user()
    key = make_key(make_actor(user), expires_in_days=1)
    bearer = {"authorization": f"Bearer {key.key}"}
    assert Client().get("/api/me", headers=bearer).status_code == 200

    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get("/api/me", headers=bearer).status_code == 401

    ApiKey.objects.update(expires_at=None)
    User.objects.update(is_active=False)
    assert Client().get("/api/me", headers=bearer).status_code == 401


def test_a_bad_key_is_not_saved_by_a_cookie() -> None:
    client = signed_in(make_user())
    assert client.get("/api/me", headers={"authorization": "Bearer pk_wrong"}).status_code == 401
    assert client.get("/api/me", headers={"authorization": "Basic YTpi"}).status_code == 401


def test_an_inference_key_cannot_use_the_native_api() -> None:
    key = make_key(make_actor(), full=False)
    answer = Client().get("/api/me", headers={"authorization": f"Bearer {key.key}"})
    assert answer.status_code == 403
    assert answer.json()["code"] == "permission_denied"


def test_a_key_cannot_make_or_revoke_keys() -> None:
    key = make_key(make_actor())
    bearer = {"authorization": f"Bearer {key.key}"}
    assert post(Client(), "/api/keys", {"name": "more"}, **bearer).status_code == 403
    assert Client().delete(f"/api/keys/{key.info.id}", headers=bearer).status_code == 403
    assert ApiKey.objects.count() == 1


def test_foreign_and_unknown_keys_look_the_same() -> None:
    foreign = make_key(make_actor())
    client = signed_in(make_user())
    answers = [client.delete(f"/api/keys/{key_id}").json() for key_id in (foreign.info.id, uuid4())]
    assert {answer.pop("request_id") for answer in answers}
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "not_found"


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x" * 121}, {"name": "x", "expires_in_days": 0}, {"name": "x", "scopes": ["root"]}],
)
def test_a_bad_key_request_says_which_field(body: dict[str, Any]) -> None:
    answer = post(signed_in(make_user()), "/api/keys", body)
    assert answer.status_code == 422
    assert set(answer.json()["fields"]) <= {"name", "expires_in_days", "scopes"}
    assert not ApiKey.objects.exists()


def test_a_person_has_a_bounded_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    actor = make_actor()
    ApiKey.objects.bulk_create(
        ApiKey(organization_id=actor.organization_id, user_id=actor.user_id, name="k", digest=bytes([n]))
        for n in range(50)
    )
    answer = post(signed_in(User.objects.get(pk=actor.user_id)), "/api/keys", {"name": "one too many"})
    assert answer.status_code == 409
    assert "50 keys" in answer.json()["detail"]
