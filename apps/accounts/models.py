"""Rows of people, organizations, keys and the usage ledger.

Constraints live here; every write goes through the services. Who may see a row is decided in `access`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.auth.models import (
    AbstractBaseUser,
    BaseUserManager,
    PermissionsMixin,
)
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from apps.accounts.types import ModelPolicy, Role, Scope, Tier
from apps.core.ids import new_id


def _choices(names: type[Role | Scope | Tier]) -> list[tuple[str, str]]:
    return [(name.value, name.value.title()) for name in names]


class Organization(models.Model):
    """A tenant. Everyone has a personal one from the start, so every tenant row has an organization."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=120)
    tier = models.CharField(max_length=16, choices=_choices(Tier), default=Tier.FREE.value)
    personal = models.BooleanField(default=False)
    allowed_models = ArrayField(
        models.CharField(max_length=120),
        default=list,
        blank=True,
        help_text="Ids of the models that it may use, separated by commas. Empty allows all.",
    )
    level_at_most = models.PositiveSmallIntegerField(
        "highest level",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(9)],
        help_text="Of the models that it may use, 1 to 9. Empty allows any.",
    )
    region = models.CharField(
        max_length=64,
        blank=True,
        help_text="Where its questions must be answered: the region of replicas. Empty allows any place.",
    )
    files_at_most = models.PositiveIntegerField(
        null=True, blank=True, help_text="That all its people may keep together. Empty allows any number."
    )
    files_mib_at_most = models.PositiveIntegerField(
        "files, MiB at most",
        null=True,
        blank=True,
        help_text="That all its people's files may take together. Empty allows any size.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.name

    @property
    def policy(self) -> ModelPolicy:
        return ModelPolicy(frozenset(self.allowed_models) or None, self.level_at_most, self.region)


class UserManager(BaseUserManager["User"]):
    """Reads only: accounts are made by `services.create_account`, which also makes their organization."""

    @classmethod
    def normalize_email(cls, email: str | None) -> str:
        return (email or "").strip().lower()

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=self.normalize_email(username))


class User(AbstractBaseUser, PermissionsMixin):
    """A person who signs in with an e-mail address, kept in lower case so that it is unique in any case."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField(max_length=254, unique=True)
    name = models.CharField(max_length=120, blank=True)
    is_staff = models.BooleanField("operator", default=False, help_text="May open the console.")
    is_active = models.BooleanField("active", default=True, help_text="Unset to lock the account and its keys out.")
    organization = models.ForeignKey(
        Organization,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The organization this person acts in.",
    )
    files_at_most = models.PositiveIntegerField(
        null=True, blank=True, help_text="That this person may keep. Empty: what the installation allows everybody."
    )
    files_mib_at_most = models.PositiveIntegerField(
        "files, MiB at most",
        null=True,
        blank=True,
        help_text="That this person's files may take. Empty: what the installation allows everybody.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        ordering = ("id",)
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_lower_case"),
        ]

    def __str__(self) -> str:
        return self.email

    def get_full_name(self) -> str:
        return self.name or self.email

    def get_short_name(self) -> str:
        return self.name or self.email.partition("@")[0]


class Membership(models.Model):
    """A person's role in an organization."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=_choices(Role), default=Role.MEMBER.value)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("id",)
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=("organization", "user"), name="membership_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.organization_id} as {self.role}"


def _full_scope() -> list[str]:
    return [Scope.FULL.value]


class ApiKey(models.Model):
    """A key to act as its owner in one organization. Only its digest is kept; the key itself is shown once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE, related_name="api_keys")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=16, editable=False)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=32, choices=_choices(Scope)), default=_full_scope)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=("organization", "user", "-id"),
                condition=models.Q(revoked_at__isnull=True),
                name="api_key_live",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class UsageEntry(models.Model):
    """One line of the usage ledger: what one run used. Append-only: a trigger refuses UPDATE and DELETE.

    It holds ids and not foreign keys, because the ledger outlives the people and runs it speaks of.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization_id = models.UUIDField(editable=False)
    user_id = models.UUIDField(editable=False)
    kind = models.CharField(max_length=16, editable=False)
    subject_id = models.UUIDField(editable=False)
    model = models.CharField(max_length=120, editable=False)
    prompt_tokens = models.PositiveIntegerField(default=0, editable=False)
    cached_tokens = models.PositiveIntegerField(default=0, editable=False)
    completion_tokens = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("-id",)
        verbose_name_plural = "usage entries"
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=("kind", "subject_id"), name="usage_once_a_subject"),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=("organization_id", "created_at"), name="usage_by_organization"),
            models.Index(fields=("user_id", "created_at"), name="usage_by_user"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject_id}"
