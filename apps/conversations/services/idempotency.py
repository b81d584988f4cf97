"""What was asked before: a key or client id, what it was used for, and the run it started."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
from django.utils import timezone

from apps.accounts.types import Actor
from apps.conversations.models import Message, Run
from apps.core.errors import IdempotencyMismatch

KEY_LIFE = timedelta(hours=24)
MISMATCH = "This key or client id was used for another request. Send a new one."


def digest_of(kind: str, body: Any) -> str:
    return hashlib.sha256(orjson.dumps([kind, body], option=orjson.OPT_SORT_KEYS)).hexdigest()


def earlier_run(actor: Actor, key: str | None, digest: str, client: tuple[UUID, UUID] | None = None) -> Run | None:
    """The run of an earlier request with this key or client id. Raises IdempotencyMismatch for another body."""
    run = None
    if key:
        run = Run.objects.filter(user_id=actor.user_id, idempotency_key=key).first()
        if run is not None and run.created_at < timezone.now() - KEY_LIFE:
            Run.objects.filter(id=run.id).update(idempotency_key=None)
            run = None
    if run is None and client:
        asked = Message.objects.filter(
            conversation_id=client[0], client_id=client[1], organization_id=actor.organization_id
        ).first()
        if asked is not None and asked.run_id is not None:
            run = Run.objects.filter(id=asked.run_id, user_id=actor.user_id).first()
    if run is not None and run.request_digest != digest:
        raise IdempotencyMismatch(MISMATCH)
    return run
