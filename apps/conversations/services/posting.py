"""Start runs of conversations: a question with its answer, or another answer. Each is one transaction.

A retry (the same `Idempotency-Key`, or the same client id in a conversation) returns the first result; the key
with another body is refused. The conversation row is the lock, so sequence numbers have no gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.public import check_rate
from apps.accounts.types import Actor
from apps.conversations.access import access_conversation, access_message
from apps.conversations.models import Conversation, Message, Run
from apps.conversations.selectors import message_views, new_message_views, run_view
from apps.conversations.services.admission import Place, admit
from apps.conversations.services.conversations import announce
from apps.conversations.services.handoff import offer
from apps.conversations.services.idempotency import MISMATCH, digest_of, earlier_run
from apps.conversations.services.runs import MAX_TURNS
from apps.conversations.types import ACTIVE, CHARS_PER_TOKEN, RunParams, RunState, queued_at
from apps.core.db import prepared
from apps.core.errors import AppError, Conflict, IdempotencyMismatch, Invalid, NotFound, TooLarge
from apps.core.ids import new_id
from apps.core.notify import notify_user
from apps.files.public import summarize_files

TITLE_CHARS = 60
_HISTORY = """
    WITH RECURSIVE branch AS (
        SELECT id, parent_id, octet_length(text) AS size, 1 AS depth
        FROM conversations_message WHERE conversation_id = %(c)s AND id = %(leaf)s AND organization_id = %(o)s
        UNION ALL
        SELECT m.id, m.parent_id, octet_length(m.text), b.depth + 1
        FROM branch b JOIN conversations_message m ON m.conversation_id = %(c)s AND m.id = b.parent_id
        WHERE b.depth < %(limit)s
    )
    SELECT COALESCE(sum(size), 0) FROM branch
"""


@dataclass(frozen=True, slots=True)
class Question:
    """What a person sends: one message under `parent_id`, with files."""

    conversation_id: UUID
    client_id: UUID
    text: str
    parent_id: UUID | None
    file_ids: tuple[UUID, ...]
    model: str


@dataclass(frozen=True, slots=True)
class Posted:
    """`view` is the response body; `created` is false for the replay of an earlier request."""

    view: dict[str, Any]
    created: bool


def post_message(actor: Actor, question: Question, *, key: str | None = None, request_id: str = "") -> Posted:
    """Write a question, its empty answer and their run. Raises the AppErrors of a bad, foreign or refused request."""
    _check_text(question.text, bool(question.file_ids))
    if len(set(question.file_ids)) > settings.FILES_PER_MESSAGE:
        raise Invalid(
            f"A message can have {settings.FILES_PER_MESSAGE} files.", fields={"file_ids": ["Too many files."]}
        )
    digest = digest_of("message", asdict(question))

    def replay() -> Run | None:
        return earlier_run(actor, key, digest, client=(question.conversation_id, question.client_id))

    try:
        check_rate(actor, "run")
        before = partial(history_tokens, actor, question.conversation_id, question.parent_id)
        place = admit(actor, question.model, question.text, history=before)
    except AppError:
        # What was accepted once is not refused when its client asks again, unless it was deleted meanwhile.
        if earlier := replay():
            access_conversation(actor, question.conversation_id)
            return Posted(_posted_view(earlier), created=False)
        raise
    with place, _refusing_a_taken_key(), transaction.atomic():
        conversation = access_conversation(actor, question.conversation_id, lock=True)
        if earlier := replay():
            return Posted(_posted_view(earlier), created=False)
        summarize_files(actor, question.file_ids)
        _check_parent(actor, conversation, question.parent_id, role="assistant")
        asked = _message(conversation, "user", question.parent_id, text=question.text, status=RunState.COMPLETED)
        asked.client_id, asked.file_ids = question.client_id, list(dict.fromkeys(question.file_ids))
        answer = _message(conversation, "assistant", asked.id, status=RunState.QUEUED)
        run = _run(actor, conversation, answer, asked.id, place, question.model, key, digest, request_id)
        asked.run_id = run.id
        Message.objects.bulk_create([asked, answer])
        run.save(force_insert=True)
        if not conversation.title:
            conversation.title, conversation.title_by = _title_of(question.text), "question"
        _save_head(conversation, answer.id)
        _hand_off(run, conversation)
        place.keep()
    return Posted(_posted_view(run, [asked, answer]), created=True)


def history_tokens(actor: Actor, conversation_id: UUID, leaf: UUID | None) -> int:
    """About how long the branch is that ends with a message; 0 for what is not there."""
    if leaf is None:
        return 0
    values = {"c": conversation_id, "leaf": leaf, "o": actor.organization_id, "limit": MAX_TURNS}
    ((size,),) = prepared(_HISTORY, values)
    return int(size / CHARS_PER_TOKEN)


def regenerate(
    actor: Actor,
    *,
    conversation_id: UUID,
    answer_id: UUID,
    client_id: UUID,
    model: str,
    key: str | None = None,
    request_id: str = "",
) -> Posted:
    """Another answer to the same question, as a sibling of `answer_id`. Without a key the client id is one."""
    digest = digest_of("regenerate", {"conversation": conversation_id, "answer": answer_id, "model": model})
    key = key or f"regenerate:{client_id}"
    try:
        check_rate(actor, "run")
        place = admit(actor, model)
    except AppError:
        if earlier := earlier_run(actor, key, digest):
            access_conversation(actor, conversation_id)
            return Posted(_posted_view(earlier), created=False)
        raise
    with place, _refusing_a_taken_key(), transaction.atomic():
        conversation = access_conversation(actor, conversation_id, lock=True)
        if replay := earlier_run(actor, key, digest):
            return Posted(_posted_view(replay), created=False)
        old = access_message(actor, conversation, answer_id)
        if old.role != "assistant" or old.parent_id is None:
            raise Invalid("Only an answer to a question can be generated again.")
        if old.status in ACTIVE:
            raise Conflict("This answer is still being written. Stop it first.")
        answer = _message(conversation, "assistant", old.parent_id, status=RunState.QUEUED)
        run = _run(actor, conversation, answer, old.parent_id, place, model, key, digest, request_id)
        answer.save(force_insert=True)
        run.save(force_insert=True)
        _save_head(conversation, answer.id)
        _hand_off(run, conversation)
        place.keep()
    return Posted(_posted_view(run, [answer]), created=True)


def _check_text(text: str, has_files: bool) -> None:
    if len(text) > settings.MESSAGE_MAX_CHARS:
        raise TooLarge(
            f"The message has {len(text):,} characters; {settings.MESSAGE_MAX_CHARS:,} is the most. "
            "Attach long text as a file."
        )
    if not text.strip() and not has_files:
        raise Invalid("Write something first.", fields={"text": ["This is empty."]})
    if "\x00" in text:
        raise Invalid("The text has a NUL character.", fields={"text": ["NUL characters are not allowed."]})


@contextmanager
def _refusing_a_taken_key() -> Iterator[None]:
    """The same key used at the same moment in another conversation, which our lock does not cover."""
    try:
        yield
    except IntegrityError as error:
        if "run_idempotency" not in str(error):
            raise
        raise IdempotencyMismatch(MISMATCH) from error


def _check_parent(actor: Actor, conversation: Conversation, parent_id: UUID | None, *, role: str) -> None:
    if parent_id is None:
        return
    try:
        parent = access_message(actor, conversation, parent_id)
    except NotFound as error:
        raise Invalid("The message this follows does not exist.", fields={"parent_id": ["Unknown message."]}) from error
    if parent.role != role:
        raise Invalid("A question follows an answer.", fields={"parent_id": ["Not an answer."]})
    if parent.status in ACTIVE:
        raise Conflict("The answer this follows is still being written. Wait for it or stop it.")


def _message(conversation: Conversation, role: str, parent_id: UUID | None, **values: Any) -> Message:
    """The next message of a locked conversation; the caller saves both."""
    conversation.last_seq += 1
    return Message(
        id=new_id(),
        conversation_id=conversation.id,
        organization_id=conversation.organization_id,
        seq=conversation.last_seq,
        role=role,
        parent_id=parent_id,
        **values,
    )


def _run(
    actor: Actor,
    conversation: Conversation,
    answer: Message,
    question_id: UUID | None,
    place: Place,
    requested: str,
    key: str | None,
    digest: str,
    request_id: str,
) -> Run:
    now = timezone.now()
    run = Run(
        id=place.run_id,
        organization_id=actor.organization_id,
        user_id=actor.user_id,
        conversation_id=conversation.id,
        question_id=question_id,
        answer_id=answer.id,
        transitions=[queued_at(now)],
        tier=actor.tier,
        deadline_at=now + timedelta(seconds=settings.RUN_DEADLINE_S),
        idempotency_key=key,
        request_digest=digest,
        request_id=request_id,
        model_requested=requested,
        model=place.choice.model.id,
        decision=place.choice.decision,
        params=asdict(RunParams()),
    )
    answer.run_id = run.id
    return run


def _save_head(conversation: Conversation, answer_id: UUID) -> None:
    conversation.head_message_id = answer_id
    conversation.updated_at = timezone.now()
    conversation.save(update_fields=["last_seq", "head_message_id", "updated_at", "title", "title_by"])


def _hand_off(run: Run, conversation: Conversation) -> None:
    transaction.on_commit(lambda: offer(run.lane, run.id))
    announce(conversation, run.id)
    notify_user(run.user_id, {"type": "run", "run": run_view(run)})


def _posted_view(run: Run, fresh: Sequence[Message] | None = None) -> dict[str, Any]:
    """`question` (when the run has one of its own), `answer` and `run`, as the client sees them."""
    if fresh is not None:
        views = new_message_views(fresh)
    else:
        ids = [id for id in (run.question_id, run.answer_id) if id is not None]
        views = message_views(Message.objects.filter(conversation_id=run.conversation_id, id__in=ids))
    by_role = {view["role"]: view for view in views}
    body: dict[str, Any] = {"answer": by_role["assistant"], "run": run_view(run)}
    if "user" in by_role and by_role["user"]["run_id"] == run.id:
        body["question"] = by_role["user"]
    return body


def _title_of(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"
