"""What other apps may know of who is acting."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
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


class Scope(StrEnum):
    """What an API key may do: everything its owner may, or only ask models through `/v1`."""

    FULL = "full"
    INFERENCE = "inference"


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """Which models an organization may use, as its operator set it. `models` None allows all, `level_at_most` None any
    level. `region`: where its questions must be answered, empty when that may be anywhere."""

    models: frozenset[str] | None = None
    level_at_most: int | None = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """What an operator set for a person and for their organization; None where nothing was."""

    files: int | None
    bytes: int | None
    organization_files: int | None
    organization_bytes: int | None


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
    policy: ModelPolicy = ModelPolicy()

    @property
    def may_use_native_api(self) -> bool:
        return self.via == "session" or Scope.FULL in self.scopes


@dataclass(frozen=True, slots=True)
class AccountInfo:
    """What a person sees of their own account."""

    user_id: UUID
    email: str
    name: str
    is_operator: bool
    organization_id: UUID
    organization_name: str
    role: Role
    tier: Tier


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """An API key without its secret part."""

    id: UUID
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key just made. `key` is shown once and kept nowhere."""

    info: KeyInfo
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What one run used, for the ledger. `cached_tokens` is the part of the prompt read from the prefix cache."""

    organization_id: UUID
    user_id: UUID
    run_id: UUID
    model: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
