"""Start runs: a question with its answer, another answer, or an API call. Each is one transaction.

A retry (the same `Idempotency-Key`, or the same client id in a conversation) returns the first result; the key
with another body is refused. The conversation row is the lock, so sequence numbers have no gaps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from apps.accounts.public import check_rate
from apps.accounts.types import Actor
from apps.conversations.access import access_conversation, access_message
from apps.conversations.models import Conversation, Message, Run
from apps.conversations.selectors import message_views, new_message_views, run_view
from apps.conversations.services.admission import admit
from apps.conversations.services.conversations import announce
from apps.conversations.services.handoff import offer
from apps.conversations.types import ACTIVE, ChatMessage, Lane, RunParams, RunState, StartedRun
from apps.core.errors import AppError, Conflict, IdempotencyMismatch, Invalid, NotFound, TooLarge
from apps.core.ids import new_id
from apps.core.notify import notify_user
from apps.files.public import summarize_files

TITLE_CHARS = 60
KEY_LIFE = timedelta(hours=24)
_MISMATCH = "This key or client id was used for another request. Send a new one."
# An API call's three rows in one statement and one round trip: this is the hot path of integrations. The run goes
# first, so that a key that is taken writes nothing.
_START_API_RUN = """
    WITH run AS (
        INSERT INTO conversations_run (
            id, organization_id, user_id, conversation_id, answer_id, state, transitions, lane, tier, priority,
            deadline_at, idempotency_key, request_digest, request_id, model_requested, model, params, prompt, attempt,
            partial_text, token_ids, prompt_token_ids, seq, replica, finish_reason, prompt_tokens, cached_tokens,
            completion_tokens, reconstructed, created_at)
        VALUES (
            %(run)s, %(organization)s, %(user)s, %(conversation)s, %(answer)s, 'queued', %(transitions)s,
            'interactive', %(tier)s, 0, %(deadline)s, %(key)s, %(digest)s, %(request_id)s, %(requested)s, %(model)s,
            %(params)s, %(prompt)s, 0, '', '{}', '{}', 0, '', '', 0, 0, 0, '[]', %(now)s)
        ON CONFLICT (user_id, idempotency_key) DO NOTHING
        RETURNING id
    ), conversation AS (
        INSERT INTO conversations_conversation (
            id, organization_id, owner_id, origin, title, title_by, last_seq, head_message_id, created_at, updated_at)
        SELECT %(conversation)s, %(organization)s, %(user)s, 'api', '', '', 1, %(answer)s, %(now)s, %(now)s FROM run
    )
    INSERT INTO conversations_message (
        id, conversation_id, organization_id, seq, role, status, text, run_id, model, file_ids, citations, created_at)
    SELECT %(answer)s, %(conversation)s, %(organization)s, 1, 'assistant', 'queued', '', %(run)s, '', '{}', '[]',
        %(now)s FROM run
    RETURNING id
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
    digest = _digest("message", asdict(question))

    def replay() -> Run | None:
        return _replay(actor, key, digest, client=(question.conversation_id, question.client_id))

    try:
        check_rate(actor, "run")
        model = admit(actor, question.model)
    except AppError:
        # What was accepted once is not refused when its client asks again, unless it was deleted meanwhile.
        if earlier := replay():
            access_conversation(actor, question.conversation_id)
            return Posted(_posted_view(earlier), created=False)
        raise
    with _refusing_a_taken_key(), transaction.atomic():
        conversation = access_conversation(actor, question.conversation_id, lock=True)
        if earlier := replay():
            return Posted(_posted_view(earlier), created=False)
        summarize_files(actor, question.file_ids)
        _check_parent(actor, conversation, question.parent_id, role="assistant")
        asked = _message(conversation, "user", question.parent_id, text=question.text, status=RunState.COMPLETED)
        asked.client_id, asked.file_ids = question.client_id, list(dict.fromkeys(question.file_ids))
        answer = _message(conversation, "assistant", asked.id, status=RunState.QUEUED)
        run = _run(actor, conversation, answer, asked.id, model.id, question.model, key, digest, request_id)
        asked.run_id = run.id
        Message.objects.bulk_create([asked, answer])
        run.save(force_insert=True)
        if not conversation.title:
            conversation.title, conversation.title_by = _title_of(question.text), "question"
        _save_head(conversation, answer.id)
        _hand_off(run, conversation)
    return Posted(_posted_view(run, [asked, answer]), created=True)


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
    digest = _digest("regenerate", {"conversation": conversation_id, "answer": answer_id, "model": model})
    key = key or f"regenerate:{client_id}"
    try:
        check_rate(actor, "run")
        chosen = admit(actor, model)
    except AppError:
        if earlier := _replay(actor, key, digest):
            access_conversation(actor, conversation_id)
            return Posted(_posted_view(earlier), created=False)
        raise
    with _refusing_a_taken_key(), transaction.atomic():
        conversation = access_conversation(actor, conversation_id, lock=True)
        if replay := _replay(actor, key, digest):
            return Posted(_posted_view(replay), created=False)
        old = access_message(actor, conversation, answer_id)
        if old.role != "assistant" or old.parent_id is None:
            raise Invalid("Only an answer to a question can be generated again.")
        if old.status in ACTIVE:
            raise Conflict("This answer is still being written. Stop it first.")
        answer = _message(conversation, "assistant", old.parent_id, status=RunState.QUEUED)
        run = _run(actor, conversation, answer, old.parent_id, chosen.id, model, key, digest, request_id)
        answer.save(force_insert=True)
        run.save(force_insert=True)
        _save_head(conversation, answer.id)
        _hand_off(run, conversation)
    return Posted(_posted_view(run, [answer]), created=True)


def start_api_run(
    actor: Actor,
    *,
    model: str,
    messages: Sequence[ChatMessage],
    params: RunParams,
    idempotency_key: str | None = None,
    request_id: str = "",
) -> StartedRun:
    """A run whose prompt the caller brings. Its answer lives in a conversation of its own that lists do not show."""
    prompt = [asdict(message) for message in messages]
    if sum(len(message.content) for message in messages) > settings.MESSAGE_MAX_CHARS * 5:
        raise TooLarge("The messages are longer than one million characters in all.")
    digest = _digest("api", {"model": model, "messages": prompt, "params": asdict(params)})
    if idempotency_key and (replay := _replay(actor, idempotency_key, digest)):
        return StartedRun(replay.id, replay.conversation_id, replay.answer_id, created=False)
    allowance = check_rate(actor, "run")
    chosen = admit(actor, model)
    run_id, conversation_id, answer_id = new_id(), new_id(), new_id()
    now = timezone.now()
    values: dict[str, Any] = {
        "run": run_id,
        "conversation": conversation_id,
        "answer": answer_id,
        "organization": actor.organization_id,
        "user": actor.user_id,
        "now": now,
        "deadline": now + timedelta(seconds=settings.RUN_DEADLINE_S),
        "transitions": Jsonb([_queued(now)]),
        "tier": actor.tier.value,
        "key": idempotency_key,
        "digest": digest,
        "request_id": request_id,
        "requested": model,
        "model": chosen.id,
        "params": Jsonb(asdict(params)),
        "prompt": Jsonb(prompt),
    }
    with connection.cursor() as cursor:
        cursor.execute(_START_API_RUN, values)
        created = cursor.fetchone() is not None
    if not created:
        replay = _replay(actor, idempotency_key, digest)
        assert replay is not None
        return StartedRun(replay.id, replay.conversation_id, replay.answer_id, created=False)
    offer(Lane.INTERACTIVE, run_id)
    return StartedRun(run_id, conversation_id, answer_id, allowance=allowance)


def _queued(now: datetime) -> dict[str, Any]:
    return {"state": RunState.QUEUED.value, "at": now.isoformat(), "attempt": 0, "by": "web"}


def _digest(kind: str, body: Any) -> str:
    return hashlib.sha256(orjson.dumps([kind, body], option=orjson.OPT_SORT_KEYS)).hexdigest()


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


def _replay(actor: Actor, key: str | None, digest: str, client: tuple[UUID, UUID] | None = None) -> Run | None:
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
        raise IdempotencyMismatch(_MISMATCH)
    return run


@contextmanager
def _refusing_a_taken_key() -> Iterator[None]:
    """The same key used at the same moment in another conversation, which our lock does not cover."""
    try:
        yield
    except IntegrityError as error:
        if "run_idempotency" not in str(error):
            raise
        raise IdempotencyMismatch(_MISMATCH) from error


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
    model: str,
    requested: str,
    key: str | None,
    digest: str,
    request_id: str,
) -> Run:
    now = timezone.now()
    run = Run(
        organization_id=actor.organization_id,
        user_id=actor.user_id,
        conversation_id=conversation.id,
        question_id=question_id,
        answer_id=answer.id,
        transitions=[_queued(now)],
        tier=actor.tier,
        deadline_at=now + timedelta(seconds=settings.RUN_DEADLINE_S),
        idempotency_key=key,
        request_digest=digest,
        request_id=request_id,
        model_requested=requested,
        model=model,
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
