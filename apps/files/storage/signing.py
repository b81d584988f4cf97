"""Signed, expiring addresses of the filesystem store: what one PUT or GET may do, and until when."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from django.core import signing

from apps.core.errors import PermissionDenied

PUT_PATH = "/storage/u/"
GET_PATH = "/storage/g/"


@dataclass(frozen=True, slots=True)
class PutGrant:
    """One body of exactly `size` bytes as part `number` of upload `ref`."""

    key: str
    ref: str
    number: int
    size: int
    expires: float


@dataclass(frozen=True, slots=True)
class GetGrant:
    key: str
    filename: str
    content_type: str
    inline: bool
    expires: float


Grant = TypeVar("Grant", PutGrant, GetGrant)


def sign(grant: PutGrant | GetGrant) -> str:
    """The grant as one path segment. Put and get grants have salts of their own: neither passes for the other."""
    return signing.dumps(asdict(grant), salt=_salt(type(grant)), compress=True)


def verify(kind: type[Grant], token: str) -> Grant:
    """The grant in `token`. Raises PermissionDenied when it was not signed by us or has expired."""
    try:
        fields: dict[str, Any] = signing.loads(token, salt=_salt(kind))
    except signing.BadSignature as error:
        raise PermissionDenied("This address was not signed by this server. Ask for a new one.") from error
    grant = kind(**fields)
    if grant.expires < time.time():
        raise PermissionDenied("This address has expired. Ask for a new one.")
    return grant


def _salt(kind: type) -> str:
    return f"parley.storage.{kind.__name__}"
