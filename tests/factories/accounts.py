"""People, organizations and keys for tests, made through the real services."""

from __future__ import annotations

from itertools import count

from apps.accounts.access import access_user_actor
from apps.accounts.models import Membership, Organization, User
from apps.accounts.services import create_account, create_key
from apps.accounts.types import Actor, NewKey, Role, Scope

PASSWORD = "a-fine-long-passphrase-7"
_numbers = count(1)


def make_user(*, email: str | None = None, password: str = PASSWORD, name: str = "") -> User:
    """A person with an account and a personal organization. The first of a database is the operator."""
    return create_account(
        email=email or f"person{next(_numbers)}@example.org", password=password, name=name, by_operator=True
    )


def make_actor(user: User | None = None) -> Actor:
    actor = access_user_actor(user or make_user())
    assert actor is not None
    return actor


def make_key(actor: Actor, *, name: str = "test", expires_in_days: int | None = None, full: bool = True) -> NewKey:
    scopes = (Scope.FULL,) if full else (Scope.INFERENCE,)
    return create_key(actor, name=name, expires_in_days=expires_in_days, scopes=scopes)


def make_colleague(of: Actor, *, role: Role = Role.MEMBER) -> User:
    """Another person who acts in the same organization."""
    user = make_user()
    Membership.objects.create(organization_id=of.organization_id, user=user, role=role.value)
    user.organization = Organization.objects.get(pk=of.organization_id)
    user.save(update_fields=["organization"])
    return user
