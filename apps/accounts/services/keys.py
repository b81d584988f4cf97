"""Making, revoking and marking the use of API keys."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.access import access_key, access_user, key_digest
from apps.accounts.models import ApiKey
from apps.accounts.selectors import key_info
from apps.accounts.types import Actor, NewKey, Scope
from apps.core.errors import Conflict

KEYS_PER_USER = 50
USE_RECORDED_EVERY = timedelta(minutes=1)
_PREFIX_CHARS = 11


def create_key(
    actor: Actor,
    *,
    name: str,
    expires_in_days: int | None = None,
    scopes: Sequence[Scope] = (Scope.FULL,),
) -> NewKey:
    """Make a key that acts as `actor`. Raises Conflict at the limit of live keys."""
    secret = f"pk_{secrets.token_urlsafe(32)}"
    now = timezone.now()
    with transaction.atomic():
        user = access_user(actor, lock=True)
        live = ApiKey.objects.filter(organization_id=actor.organization_id, user=user, revoked_at=None)
        if live.count() >= KEYS_PER_USER:
            raise Conflict(f"You have {KEYS_PER_USER} keys. Revoke one that is no longer used first.")
        key = ApiKey.objects.create(
            organization_id=actor.organization_id,
            user=user,
            name=name.strip(),
            prefix=secret[:_PREFIX_CHARS],
            digest=key_digest(secret),
            scopes=[scope.value for scope in scopes],
            created_at=now,
            expires_at=None if expires_in_days is None else now + timedelta(days=expires_in_days),
        )
    return NewKey(key_info(key), secret)


def revoke_key(actor: Actor, key_id: UUID) -> bytes:
    """End a key for good; returns its digest. Other processes may honour it for as long as they cache (3 s)."""
    with transaction.atomic():
        key = access_key(actor, key_id, lock=True)
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
    return bytes(key.digest)


def touch_key(key_id: UUID, *, at: datetime | None = None) -> None:
    """Note that a key was used; writes at most once a minute, whatever the number of processes."""
    now = at or timezone.now()
    ApiKey.objects.filter(pk=key_id).filter(Q(last_used_at=None) | Q(last_used_at__lt=now - USE_RECORDED_EVERY)).update(
        last_used_at=now
    )
