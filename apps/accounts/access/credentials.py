"""From a credential (session, API key) to the actor it stands for, or None when it stands for nobody.

Unknown, revoked, expired and locked out look the same to the caller, so that nothing can be probed.
"""

from __future__ import annotations

from hashlib import sha256
from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.db.models import OuterRef, Q, Subquery
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.models import ApiKey, Membership, User
from apps.accounts.types import Actor, Role, Scope, Tier

KEY_START = "pk_"
_KEY_MAX_CHARS = 100


def key_digest(secret: str) -> bytes:
    """SHA-256: a key has 256 random bits, so a slow hash would add cost and no safety."""
    return sha256(secret.encode()).digest()


def access_user_actor(user: User) -> Actor | None:
    """The actor of a signed-in person: their role in the organization they act in, None without one."""
    if not user.is_active:
        return None
    membership = (
        Membership.objects.select_related("organization")
        .filter(user_id=user.pk, organization_id=user.organization_id)
        .first()
    )
    if membership is None:
        return None
    organization = membership.organization
    return Actor(
        user_id=user.pk,
        organization_id=organization.pk,
        role=Role(membership.role),
        tier=Tier(organization.tier),
        is_operator=user.is_staff,
        policy=organization.policy,
    )


def access_session_actor(session_key: str) -> Actor | None:
    """The actor of a session cookie. Django's own checks apply, e.g. a changed password ends the session."""
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return access_user_actor(user) if isinstance(user, User) else None


def access_key_actor(secret: str) -> tuple[Actor, ApiKey] | None:
    """The actor of an API key, with the key's row and its user: one indexed query by digest."""
    if not secret.startswith(KEY_START) or len(secret) > _KEY_MAX_CHARS:
        return None
    role = Membership.objects.filter(user_id=OuterRef("user_id"), organization_id=OuterRef("organization_id"))
    key = (
        ApiKey.objects.select_related("user", "organization")
        .annotate(role=Subquery(role.values("role")[:1]))
        .filter(
            digest=key_digest(secret),
            revoked_at=None,
            user__is_active=True,
            role__isnull=False,
        )
        .filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
        .first()
    )
    if key is None:
        return None
    actor = Actor(
        user_id=key.user_id,
        organization_id=key.organization_id,
        role=Role(key.role),
        tier=Tier(key.organization.tier),
        # A key never carries an operator's powers: those need a person who signed in.
        is_operator=False,
        via="api_key",
        key_id=key.pk,
        scopes=frozenset(Scope(scope) for scope in key.scopes),
        policy=key.organization.policy,
    )
    return actor, key
