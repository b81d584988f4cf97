"""Create, change, delete, restore and branch conversations."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.accounts.types import Actor
from apps.conversations.access import access_conversation, access_message, own_conversations
from apps.conversations.models import Conversation, Message, Run
from apps.conversations.selectors import View, conversation_view, conversation_views
from apps.conversations.services.idempotency import KEY_LIFE, MISMATCH
from apps.conversations.services.older import forget_older
from apps.conversations.types import ACTIVE
from apps.core.errors import Gone, IdempotencyMismatch
from apps.core.ids import new_id
from apps.core.notify import notify_user

RETENTION = timedelta(days=30)
MAX_BRANCH_MESSAGES = 2_000
_BRANCH = """
    WITH RECURSIVE branch AS (
        SELECT id, parent_id, 1 AS depth FROM conversations_message WHERE conversation_id = %(c)s AND id = %(leaf)s
        UNION ALL
        SELECT m.id, m.parent_id, b.depth + 1 FROM branch b
        JOIN conversations_message m ON m.conversation_id = %(c)s AND m.id = b.parent_id
        WHERE b.depth < %(limit)s
    )
    SELECT id FROM branch ORDER BY depth DESC
"""


def create_conversation(actor: Actor, *, title: str = "", key: str | None = None) -> tuple[View, bool]:
    """An empty conversation, and whether it is new: a retry with the same `key` gets the first one again.

    Raises IdempotencyMismatch when the key came with another title, NotFound when the first one was deleted.
    """
    digest = hashlib.sha256(title.encode()).hexdigest()
    if earlier := _replay(actor, key, digest):
        return conversation_views([earlier])[0], False
    try:
        with transaction.atomic():
            row = Conversation.objects.create(
                organization_id=actor.organization_id,
                owner_id=actor.user_id,
                title=title,
                title_by="person" if title else "",
                idempotency_key=key,
                request_digest=digest if key else "",
                updated_at=timezone.now(),
            )
            return announce(row), True
    except IntegrityError as error:
        if "conversation_idempotency" not in str(error):
            raise
    # The same key at the same moment: the other request was first, and is committed.
    earlier = _replay(actor, key, digest)
    assert earlier is not None
    return conversation_views([earlier])[0], False


def _replay(actor: Actor, key: str | None, digest: str) -> Conversation | None:
    """The conversation that an earlier request with this key made."""
    if not key:
        return None
    row = own_conversations(actor).filter(idempotency_key=key).first()
    if row is None:
        return None
    if row.created_at < timezone.now() - KEY_LIFE:
        Conversation.objects.filter(id=row.id).update(idempotency_key=None)
        return None
    if row.request_digest != digest:
        raise IdempotencyMismatch(MISMATCH)
    return access_conversation(actor, row.id)


def announce(row: Conversation, active_run_id: UUID | None = None) -> View:
    """The conversation as shown, also sent to the owner's other tabs. The active run is looked up when not given."""
    view = conversation_view(row, active_run_id) if active_run_id else conversation_views([row])[0]
    notify_user(row.owner_id, {"type": "conversation", "conversation": view})
    return view


@transaction.atomic
def update_conversation(
    actor: Actor,
    *,
    id: UUID,
    title: str | None = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    head_message_id: UUID | None = None,
) -> View:
    """Rename, pin, archive, or switch to the branch that ends at `head_message_id`."""
    row = access_conversation(actor, id, lock=True)
    now = timezone.now()
    if title is not None:
        row.title, row.title_by = title, "person"
    if pinned is not None:
        row.pinned_at = (row.pinned_at or now) if pinned else None
    if archived is not None:
        row.archived_at = (row.archived_at or now) if archived else None
    if head_message_id is not None:
        row.head_message_id = access_message(actor, row, head_message_id).id
    row.save(update_fields=["title", "title_by", "pinned_at", "archived_at", "head_message_id"])
    return announce(row)


@transaction.atomic
def delete_conversation(actor: Actor, *, id: UUID) -> list[UUID]:
    """Hide a conversation for the retention window; its active runs are to be cancelled by the caller."""
    row = access_conversation(actor, id, lock=True)
    row.deleted_at = timezone.now()
    row.save(update_fields=["deleted_at"])
    forget_older(row.id)
    announce(row)
    return list(
        Run.objects.filter(conversation_id=row.id, state__in=[s.value for s in ACTIVE]).values_list("id", flat=True)
    )


@transaction.atomic
def restore_conversation(actor: Actor, *, id: UUID) -> View:
    """Bring a deleted conversation back. Raises Gone past the retention window."""
    row = access_conversation(actor, id, lock=True, deleted=True)
    if row.deleted_at is not None and row.deleted_at < timezone.now() - RETENTION:
        raise Gone("This conversation was deleted more than 30 days ago.")
    row.deleted_at = None
    row.save(update_fields=["deleted_at"])
    return announce(row)


@transaction.atomic
def branch_conversation(actor: Actor, *, id: UUID, message_id: UUID) -> View:
    """A new conversation that holds the branch ending at `message_id`; finished messages only."""
    source = access_conversation(actor, id)
    path = branch_path(source.id, access_message(actor, source, message_id).id, limit=MAX_BRANCH_MESSAGES, lock=True)
    path = [message for message in path if message.status not in ACTIVE]
    target = Conversation.objects.create(
        organization_id=actor.organization_id,
        owner_id=actor.user_id,
        title=source.title,
        title_by=source.title_by,
        last_seq=len(path),
        updated_at=timezone.now(),
    )
    parent: UUID | None = None
    copies = []
    for seq, message in enumerate(path, start=1):
        copy = Message(
            id=new_id(),
            conversation=target,
            organization_id=actor.organization_id,
            seq=seq,
            parent_id=parent,
            role=message.role,
            status=message.status,
            text=message.text,
            model=message.model,
            file_ids=message.file_ids,
            citations=message.citations,
            notices=message.notices,
            tool_calls=message.tool_calls,
            finished_at=message.finished_at,
        )
        parent = copy.id
        copies.append(copy)
    Message.objects.bulk_create(copies)
    target.head_message_id = parent
    target.save(update_fields=["head_message_id"])
    return announce(target)


def branch_path(conversation_id: UUID, leaf_id: UUID | None, *, limit: int, lock: bool = False) -> list[Message]:
    """The messages from the root to `leaf_id`, oldest first; the newest `limit` of a longer branch.

    `lock`: keep them as they are to the end of the transaction, so that no copy brings back what was blanked meanwhile.
    """
    if leaf_id is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_BRANCH, {"c": conversation_id, "leaf": leaf_id, "limit": limit})
        order = {id: place for place, (id,) in enumerate(cursor.fetchall())}
    rows = Message.objects.filter(conversation_id=conversation_id, id__in=list(order))
    if lock:
        rows = rows.select_for_update(no_key=True)
    return sorted(rows, key=lambda row: order[row.id])
