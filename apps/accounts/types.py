"""What other apps may know of who is acting."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal
from uuid import UUID


class Role(StrEnum):
    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"


class Tier(StrEnum):
    FREE = "free"
    PLUS = "plus"
    ENTERPRISE = "enterprise"


@dataclass(frozen=True, slots=True)
class Actor:
    """A person or key acting inside one organization. Every access check takes one."""

    user_id: UUID
    organization_id: UUID
    role: Role = Role.OWNER
    tier: Tier = Tier.FREE
    is_operator: bool = False
    via: Literal["session", "api_key"] = "session"
    key_id: UUID | None = None
    scopes: frozenset[str] = field(default_factory=frozenset)
