"""Making an account: the person, their personal organization and their role in it, in one transaction."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.hashers import make_password
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import connection, transaction

from apps.accounts.access import access_user
from apps.accounts.models import Membership, Organization, User
from apps.accounts.selectors import has_accounts, signup_is_open
from apps.accounts.types import Actor, Role
from apps.core.errors import Conflict, Invalid, PermissionDenied

SIGNUP_CLOSED = "Sign-up is closed on this server. Ask the operator for an account."


def create_account(
    *,
    email: str,
    password: str,
    name: str = "",
    by_operator: bool = False,
    into: User | None = None,
) -> User:
    """Make an account. The very first one becomes the operator.

    `by_operator` makes one although sign-up is closed. `into` is an unsaved user to fill, for allauth, which
    makes its own. Raises Invalid (address or password), Conflict (address taken), PermissionDenied (closed).
    """
    user = into or User()
    user.email = User.objects.normalize_email(email)
    user.name = name.strip()[:120]
    _validate(user, password)
    # Hashing takes a tenth of a second on purpose, so it is done before the lock below.
    user.password = make_password(password)
    with transaction.atomic():
        _lock_signup()
        if not by_operator and not signup_is_open():
            raise PermissionDenied(SIGNUP_CLOSED)
        if User.objects.filter(email=user.email).exists():
            raise Conflict("An account with this e-mail address exists already. Sign in instead.")
        user.is_staff = user.is_superuser = not has_accounts()
        user.organization = Organization.objects.create(name=user.get_short_name()[:120], personal=True)
        user.save(force_insert=True)
        Membership.objects.create(organization=user.organization, user=user, role=Role.OWNER.value)
    return user


def rename_account(actor: Actor, *, name: str) -> None:
    """Change the name others see."""
    with transaction.atomic():
        user = access_user(actor, lock=True)
        user.name = name.strip()
        user.save(update_fields=["name"])


def _lock_signup() -> None:
    """One sign-up at a time, so that of two simultaneous first ones exactly one finds no account before it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended('accounts.signup', 0))")


def _validate(user: User, password: str) -> None:
    checks: dict[str, Callable[[], None]] = {
        "email": lambda: validate_email(user.email),
        "password": lambda: validate_password(password, user),
    }
    fields: dict[str, list[str]] = {}
    for field, check in checks.items():
        try:
            check()
        except ValidationError as error:
            fields[field] = list(error.messages)
    if fields:
        raise Invalid(" ".join(message for messages in fields.values() for message in messages), fields=fields)
