"""The only roads from a credential or a request's id to an actor or a row of this app."""

from apps.accounts.access.credentials import (
    access_key_actor,
    access_session_actor,
    access_user_actor,
    key_digest,
)
from apps.accounts.access.rows import access_key, access_user

__all__ = [
    "access_key",
    "access_key_actor",
    "access_session_actor",
    "access_user",
    "access_user_actor",
    "key_digest",
]
