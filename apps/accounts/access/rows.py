"""From an actor and an id to a row the actor owns; unknown, foreign and revoked are all NotFound."""

from __future__ import annotations

from uuid import UUID

from apps.accounts.models import ApiKey, User
from apps.accounts.types import Actor
from apps.core.errors import NotAuthenticated, NotFound


def access_key(actor: Actor, key_id: UUID, *, lock: bool = False) -> ApiKey:
    """One of the actor's own live keys."""
    rows = ApiKey.objects.select_for_update() if lock else ApiKey.objects.all()
    key = rows.filter(
        organization_id=actor.organization_id,
        user_id=actor.user_id,
        pk=key_id,
        revoked_at=None,
    ).first()
    if key is None:
        raise NotFound("There is no such key.")
    return key


def access_user(actor: Actor, *, lock: bool = False) -> User:
    """The actor's own account."""
    rows = User.objects.select_for_update() if lock else User.objects.all()
    user = rows.filter(pk=actor.user_id, is_active=True).first()
    if user is None:
        raise NotAuthenticated("This account is no longer active.")
    return user
