"""`manage.py bootstrap`: the first account without a browser."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from apps.accounts.models import ApiKey, User
from tests.factories.accounts import PASSWORD

pytestmark = pytest.mark.django_db


def bootstrap(*arguments: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    call_command("bootstrap", *arguments, stdout=out, stderr=err, no_color=True)
    return out.getvalue(), err.getvalue()


def test_it_makes_the_operator_and_prints_only_the_key(settings: Any) -> None:
    settings.SIGNUP_POLICY = "first"
    out, err = bootstrap("--email", "Me@Example.org", "--password", PASSWORD, "--api-key")

    key = out.strip()
    assert out == f"{key}\n"
    assert key.startswith("pk_")
    assert " " not in key
    assert "operator" in err
    assert key not in err
    me = Client().get("/api/me", headers={"authorization": f"Bearer {key}"}).json()
    assert me["user"]["email"] == "me@example.org"
    assert User.objects.get().is_staff
    assert User.objects.get().check_password(PASSWORD)


def test_running_it_again_changes_nothing_but_prints_another_key() -> None:
    first, _ = bootstrap("--email", "me@example.org", "--password", PASSWORD, "--api-key")
    second, err = bootstrap("--email", "ME@example.org", "--password", "another-passphrase-8", "--api-key")

    assert first != second
    assert "has an account already" in err
    assert User.objects.get().check_password(PASSWORD)
    assert ApiKey.objects.count() == 2


def test_the_password_can_come_from_stdin_or_the_environment(monkeypatch: Any, settings: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{PASSWORD}\n"))
    out, _ = bootstrap("--email", "a@example.org", "--password", "-")
    settings.BOOTSTRAP_PASSWORD = PASSWORD + "x"
    bootstrap("--email", "b@example.org")

    assert out == ""
    assert User.objects.get(email="a@example.org").check_password(PASSWORD)
    assert User.objects.get(email="b@example.org").check_password(PASSWORD + "x")


@pytest.mark.parametrize("arguments", [("--password", "short"), ()])
def test_a_bad_or_missing_password_is_explained(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="assword"):
        bootstrap("--email", "me@example.org", *arguments)
    assert not User.objects.exists()
