"""Reads of accounts, organizations and keys, as plain values."""

from __future__ import annotations

from django.conf import settings

from apps.accounts.access import access_user
from apps.accounts.models import ApiKey, Organization, User
from apps.accounts.types import AccountInfo, Actor, KeyInfo, Scope, StorageLimits


def get_account(actor: Actor) -> AccountInfo:
    """The actor's account and the organization they act in."""
    user = access_user(actor)
    organization = Organization.objects.get(pk=actor.organization_id)
    return AccountInfo(
        user_id=user.pk,
        email=user.email,
        name=user.name,
        is_operator=user.is_staff,
        organization_id=organization.pk,
        organization_name=organization.name,
        role=actor.role,
        tier=actor.tier,
    )


def storage_limits(actor: Actor) -> StorageLimits:
    """Limits of the files that the actor and their organization may keep, as they are now."""
    columns = ("files_at_most", "files_mib_at_most")
    files, mib = User.objects.values_list(*columns).get(pk=actor.user_id)
    of_all, mib_of_all = Organization.objects.values_list(*columns).get(pk=actor.organization_id)
    return StorageLimits(files, _bytes(mib), of_all, _bytes(mib_of_all))


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib << 20


def key_info(key: ApiKey) -> KeyInfo:
    return KeyInfo(
        id=key.pk,
        name=key.name,
        prefix=key.prefix,
        scopes=tuple(Scope(scope) for scope in key.scopes),
        created_at=key.created_at,
        last_used_at=key.last_used_at,
        expires_at=key.expires_at,
    )


def list_keys(actor: Actor) -> tuple[KeyInfo, ...]:
    """The actor's keys that were not revoked (expired ones included), newest first; bounded by their limit."""
    keys = ApiKey.objects.filter(organization_id=actor.organization_id, user_id=actor.user_id, revoked_at=None)
    return tuple(key_info(key) for key in keys)


def has_accounts() -> bool:
    return User.objects.exists()


def signup_is_open() -> bool:
    """Whether a stranger may make an account now: always under `open`, only the first one under `first`."""
    return settings.SIGNUP_POLICY == "open" or not has_accounts()
