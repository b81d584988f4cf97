"""Shapes of the accounts API, for parsing, answering and the OpenAPI schema."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.accounts.types import AccountInfo, KeyInfo, NewKey, Role, Scope, Tier

KEY_DAYS_MAX = 3_650


class SiteSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    version = serializers.CharField()
    setup_needed = serializers.BooleanField(help_text="True until the first account, the operator's, is made.")
    signup = serializers.ChoiceField(choices=["first", "open"], help_text="Who may make an account without help.")
    needs_https = serializers.BooleanField(help_text="True when this address is not safe to sign in at.")
    mail = serializers.BooleanField(help_text="Whether forgotten passwords can be reset by mail.")


class UserSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    email = serializers.EmailField()
    name = serializers.CharField()
    is_operator = serializers.BooleanField()


class OrganizationSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=[role.value for role in Role])
    tier = serializers.ChoiceField(choices=[tier.value for tier in Tier])


class MeSerializer(serializers.Serializer[Any]):
    user = UserSerializer()
    organization = OrganizationSerializer()


class RenameSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120, allow_blank=True)


class KeySerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="The first characters of the key, to tell keys apart.")
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=[scope.value for scope in Scope]))
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)


class NewKeySerializer(KeySerializer):
    key = serializers.CharField(help_text="The whole key. It is shown this once.")


class KeyListSerializer(serializers.Serializer[Any]):
    results = KeySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class CreateKeySerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120)
    expires_in_days = serializers.IntegerField(min_value=1, max_value=KEY_DAYS_MAX, required=False, allow_null=True)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in Scope]),
        required=False,
        min_length=1,
        max_length=len(Scope),
        help_text="`full` (the default) acts as you everywhere; `inference` only asks models through /v1.",
    )


def me_body(account: AccountInfo) -> dict[str, Any]:
    return {
        "user": {
            "id": account.user_id,
            "email": account.email,
            "name": account.name,
            "is_operator": account.is_operator,
        },
        "organization": {
            "id": account.organization_id,
            "name": account.organization_name,
            "role": account.role.value,
            "tier": account.tier.value,
        },
    }


def key_body(key: KeyInfo) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": [scope.value for scope in key.scopes],
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "expires_at": key.expires_at,
    }


def new_key_body(new: NewKey) -> dict[str, Any]:
    return key_body(new.info) | {"key": new.key}
