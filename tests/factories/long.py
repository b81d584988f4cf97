"""Long conversations, written straight into the tables: thousands of turns in a moment."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.utils import timezone

from apps.accounts.types import Actor
from apps.conversations.models import Conversation, Message
from apps.core.ids import new_id
from tests.factories.conversations import make_conversation

SMALL_TALK = (
    "We went on about the weather and the garden, and about how the tomatoes did this year and what to plant next. "
)


def make_long(
    actor: Actor, said: Sequence[str], *, conversation_id: UUID | None = None, after: UUID | None = None, seq: int = 1
) -> tuple[UUID, list[UUID]]:
    """A branch with these messages, by turns of the person and the model; its conversation and the messages' ids."""
    conversation = conversation_id or make_conversation(actor)
    ids = [new_id() for _ in said]
    Message.objects.bulk_create(
        [
            Message(
                id=id,
                conversation_id=conversation,
                organization_id=actor.organization_id,
                seq=seq + place,
                parent_id=ids[place - 1] if place else after,
                role="assistant" if place % 2 else "user",
                text=text,
                finished_at=timezone.now(),
            )
            for place, (id, text) in enumerate(zip(ids, said, strict=True))
        ]
    )
    Conversation.objects.filter(id=conversation).update(last_seq=seq + len(said) - 1, head_message_id=ids[-1])
    return conversation, ids


def talk(turns: int, **facts: str) -> list[str]:
    """So many messages of small talk; `at3="..."` says something else at the third."""
    return [facts.get(f"at{number}", f"{number}. {SMALL_TALK * 3}") for number in range(1, turns + 1)]
