"""The only road from a request's id to a row. Unknown, foreign and deleted rows all raise the same NotFound."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.accounts.types import Actor
from apps.conversations.models import Conversation, Message, Run
from apps.core.errors import NotFound

_NOTHING = "There is nothing here, or you may not see it."


def own_conversations(actor: Actor) -> QuerySet[Conversation]:
    """The actor's conversations in this organization, deleted ones included."""
    return Conversation.objects.filter(organization_id=actor.organization_id, owner_id=actor.user_id)


def access_conversation(actor: Actor, id: UUID, *, lock: bool = False, deleted: bool = False) -> Conversation:
    """The actor's conversation `id`; with `deleted`, one in the retention window too."""
    rows = own_conversations(actor).filter(id=id)
    if lock:
        rows = rows.select_for_update()
    conversation = rows.first()
    if conversation is None or (conversation.deleted_at is not None and not deleted):
        raise NotFound(_NOTHING)
    return conversation


def access_message(actor: Actor, conversation: Conversation, id: UUID) -> Message:
    message = Message.objects.filter(
        conversation_id=conversation.id, id=id, organization_id=actor.organization_id
    ).first()
    if message is None:
        raise NotFound(_NOTHING)
    return message


def access_run(actor: Actor, id: UUID) -> Run:
    """The actor's run `id`, unless its conversation has been deleted."""
    run = (
        Run.objects.filter(
            organization_id=actor.organization_id,
            user_id=actor.user_id,
            id=id,
            conversation__deleted_at__isnull=True,
        )
        .defer("prompt", "context", "token_ids", "prompt_token_ids")
        .first()
    )
    if run is None:
        raise NotFound(_NOTHING)
    return run
