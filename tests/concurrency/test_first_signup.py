"""Two people open a fresh server at the same moment: exactly one becomes its operator."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connections

from apps.accounts.models import Membership, Organization, User
from apps.accounts.services import create_account
from apps.core.errors import PermissionDenied
from tests.factories.accounts import PASSWORD

THREADS = 8
pytestmark = pytest.mark.django_db(transaction=True)


def _sign_up_together(emails: list[str]) -> list[bool]:
    barrier = Barrier(len(emails))

    def sign_up(email: str) -> bool:
        try:
            barrier.wait(timeout=10)
            create_account(email=email, password=PASSWORD)
            return True
        except PermissionDenied:
            return False
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=len(emails)) as pool:
        return list(pool.map(sign_up, emails))


def test_simultaneous_first_sign_ups_give_one_operator() -> None:
    made = _sign_up_together([f"p{n}@example.org" for n in range(THREADS)])
    assert made == [True] * THREADS
    assert User.objects.filter(is_staff=True).count() == 1
    assert User.objects.filter(is_superuser=True).count() == 1
    assert Organization.objects.count() == Membership.objects.count() == THREADS


def test_when_only_the_first_may_sign_up_exactly_one_does(settings: Any) -> None:
    settings.SIGNUP_POLICY = "first"
    made = _sign_up_together([f"p{n}@example.org" for n in range(THREADS)])
    assert sum(made) == 1
    assert User.objects.get().is_staff
    assert Organization.objects.count() == 1
