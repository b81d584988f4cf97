"""The secrets of this installation: made on first run, kept in one file only its owner can read.

Refuses what is too short or well known, wherever it comes from.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path

SHORTEST = 32
KNOWN = ("changeme", "change-me", "change_me", "secret", "password", "default", "insecure", "example", "parley")
# A value is refused when less than this many characters are left after the known words are taken out.
LEFT_OVER = 20


class BadSecret(Exception):
    """A secret is missing, short or well known; the message says which and what to do."""


@dataclass(frozen=True)
class Secrets:
    """`secret_key` signs, `cache_salt_secret` separates tenants in the engine's cache, the others are passwords."""

    secret_key: str
    cache_salt_secret: str
    postgres_password: str
    valkey_password: str
    s3_secret_key: str


def check(name: str, value: str) -> str:
    """The value, or BadSecret."""
    rest = value.lower()
    for word in KNOWN:
        rest = rest.replace(word, "")
    if len(value) < SHORTEST or len(rest) < LEFT_OVER or len(set(value)) < 10:
        raise BadSecret(
            f"{name} is too short or too easy to guess ({SHORTEST} or more random characters are needed). Make one: "
            'python3 -c "import secrets; print(secrets.token_urlsafe(48))"'
        )
    return value


def load(path: Path) -> Secrets:
    """Read the file, adding what it lacks; the environment's values win and are checked but never stored."""
    stored: dict[str, str] = {}
    if path.exists():
        if path.stat().st_mode & 0o077:
            raise BadSecret(f"{path} can be read by other users. Run: chmod 600 {path}")
        stored = json.loads(path.read_text())
    values = {field.name: stored.get(field.name) or secrets.token_urlsafe(48) for field in fields(Secrets)}
    if values != stored:
        _write(path, {**stored, **values})
    for name in ("secret_key", "cache_salt_secret"):
        given = os.environ.get(f"PARLEY_{name.upper()}")
        if given:
            values[name] = check(f"PARLEY_{name.upper()}", given)
    found = Secrets(**values)
    for name, value in asdict(found).items():
        check(f"{name} in {path}", value)
    return found


def _write(path: Path, values: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(values, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
