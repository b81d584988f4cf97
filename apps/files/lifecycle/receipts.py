"""The receipt of a deletion: what was removed, from which stores, when; signed with the deployment's key.

The first try at a removal counts what it finds, later tries can only add to that; the signature is made once
nothing is left. Whoever holds the deployment's key can check it later, and nobody else can make one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from django.core.signing import Signer
from django.db import connection

from apps.accounts.types import Actor
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.files.models import DeletionReceipt, File
from apps.files.types import ReceiptInfo

_SIGNER_SALT = "files.receipt"
# Counts of an earlier, broken-off try stay where they are higher.
_NOTE = """
    INSERT INTO files_deletion_receipt AS receipt
        (id, organization_id, owner_id, bytes, deleted_at, removed, signature)
    VALUES (%(id)s, %(organization)s, %(owner)s, %(bytes)s, %(deleted_at)s, %(removed)s::jsonb, '')
    ON CONFLICT (id) DO UPDATE SET removed = (
        SELECT jsonb_object_agg(name, greatest(
            coalesce((receipt.removed->>name)::bigint, 0), coalesce((excluded.removed->>name)::bigint, 0)
        ))
        FROM jsonb_object_keys(receipt.removed || excluded.removed) AS name
    )
    WHERE receipt.signature = ''
"""


def note_found(file: File, counts: Mapping[str, int]) -> None:
    """Keep what a removal is about to remove, by store."""
    with connection.cursor() as cursor:
        cursor.execute(
            _NOTE,
            {
                "id": file.id,
                "organization": file.organization_id,
                "owner": file.owner_id,
                "bytes": file.size,
                "deleted_at": file.deleted_at,
                "removed": orjson.dumps(dict(counts)).decode(),
            },
        )


def sign(file: File, purged_at: datetime) -> None:
    """Close the receipt: nothing is left. To be called in the transaction that says so on the file."""
    receipt = DeletionReceipt.objects.select_for_update().get(id=file.id)
    receipt.purged_at = purged_at
    receipt.signature = Signer(salt=_SIGNER_SALT).signature(_signed(receipt))
    receipt.save(update_fields=["purged_at", "signature"], force_update=True)


def is_genuine(receipt: DeletionReceipt) -> bool:
    """Whether the row is as this deployment signed it."""
    expected = Signer(salt=_SIGNER_SALT).signature(_signed(receipt))
    return bool(receipt.signature) and expected == receipt.signature


def _signed(receipt: DeletionReceipt) -> str:
    content: dict[str, Any] = {
        "file": str(receipt.id),
        "organization": str(receipt.organization_id),
        "owner": str(receipt.owner_id),
        "bytes": receipt.bytes,
        "deleted_at": receipt.deleted_at.isoformat(),
        "purged_at": receipt.purged_at.isoformat() if receipt.purged_at else None,
        "removed": receipt.removed,
    }
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS).decode()


def get_receipt(actor: Actor, file_id: object) -> ReceiptInfo:
    """The receipt of a file that the actor deleted. Raises NotFound, also while its removal is not complete."""
    known = parse_id(file_id)
    receipt = (
        DeletionReceipt.objects.filter(
            id=known, organization_id=actor.organization_id, owner_id=actor.user_id, purged_at__isnull=False
        ).first()
        if known
        else None
    )
    if receipt is None or receipt.purged_at is None:
        raise NotFound("There is no receipt: nothing of yours with this id was deleted, or its removal still goes on.")
    return ReceiptInfo(
        receipt.id, receipt.bytes, receipt.deleted_at, receipt.purged_at, dict(receipt.removed), receipt.signature
    )
