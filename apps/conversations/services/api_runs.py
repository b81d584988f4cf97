"""Start a run whose prompt the caller brings: the hot path of integrations, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils import timezone
from psycopg.types.json import Jsonb

from apps.accounts.types import Actor
from apps.conversations.services.admission import Place, check_room, room_of
from apps.conversations.services.idempotency import digest_of, earlier_run
from apps.conversations.services.line import enter_line
from apps.conversations.services.routing import Choice, choose_model
from apps.conversations.types import RunParams, StartedRun, estimate_tokens, queued_at
from apps.core.db import prepared
from apps.core.errors import AppError, Conflict, TooLarge
from apps.core.ids import new_id
from inference.protocol import ChatMessage

# Room in the line is counted and the run, its conversation and its answer are written in one round trip. The run goes
# first, so that a full line, or a key that is taken, writes nothing.
_START = """
    WITH line AS (
        SELECT count(*) FILTER (WHERE model = %(model)s) AS waiting, count(*) FILTER (WHERE user_id = %(user)s) AS own
        FROM conversations_run WHERE state IN ('queued', 'running')
    ), run AS (
        INSERT INTO conversations_run (
            id, organization_id, user_id, conversation_id, answer_id, state, transitions, lane, tier, priority,
            deadline_at, idempotency_key, request_digest, request_id, model_requested, model, params, prompt, attempt,
            partial_text, token_ids, prompt_token_ids, seq, replica, finish_reason, prompt_tokens, cached_tokens,
            completion_tokens, reconstructed, decision, created_at)
        SELECT
            %(run)s, %(organization)s, %(user)s, %(conversation)s, %(answer)s, 'queued', %(transitions)s,
            'interactive', %(tier)s, 0, %(deadline)s, %(key)s, %(digest)s, %(request_id)s, %(requested)s, %(model)s,
            %(params)s, %(prompt)s, 0, '', '{}', '{}', 0, '', '', 0, 0, 0, '[]', %(decision)s,
            %(now)s
        FROM line WHERE waiting < %(room)s AND own < %(own_room)s
        ON CONFLICT (user_id, idempotency_key) DO NOTHING
        RETURNING id
    ), conversation AS (
        INSERT INTO conversations_conversation (
            id, organization_id, owner_id, origin, title, title_by, last_seq, head_message_id, created_at, updated_at)
        SELECT %(conversation)s, %(organization)s, %(user)s, 'api', '', '', 1, %(answer)s, %(now)s, %(now)s FROM run
    ), answer AS (
        INSERT INTO conversations_message (
            id, conversation_id, organization_id, seq, role, status, text, run_id, model, file_ids, citations,
            created_at)
        SELECT %(answer)s, %(conversation)s, %(organization)s, 1, 'assistant', 'queued', '', %(run)s, '', '{}', '[]',
            %(now)s FROM run
    )
    SELECT waiting, own, EXISTS (SELECT FROM run) FROM line
"""


@dataclass(frozen=True, slots=True)
class ApiCall:
    """What a caller of the API asks for. `key` is its idempotency key."""

    model: str
    messages: Sequence[ChatMessage]
    params: RunParams
    key: str | None = None
    request_id: str = ""

    @property
    def text(self) -> str:
        """What was asked last."""
        return next((message.content for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def digest(self) -> str:
        prompt = [message.view() for message in self.messages]
        return digest_of("api", {"model": self.model, "messages": prompt, "params": asdict(self.params)})


def start_api_run(actor: Actor, call: ApiCall, *, run_id: UUID | None = None) -> StartedRun:
    """Write a run and its answer, in a conversation of its own that lists do not show; the caller offers it.

    With a key that was used before: the run of that request, `created` false. Raises TooLarge, IdempotencyMismatch and
    the errors of admission.
    """
    text = "\n".join(message.content for message in call.messages)
    if len(text) > settings.MESSAGE_MAX_CHARS * 5:
        raise TooLarge("The messages are longer than one million characters in all.")
    started = StartedRun(run_id or new_id(), new_id(), new_id())
    try:
        choice = choose_model(
            call.model,
            call.text,
            policy=actor.policy,
            prompt_tokens=estimate_tokens(text),
            needs=call.params.needs,
            history=lambda: estimate_tokens(text) - estimate_tokens(call.text),
        )
        in_line = enter_line(actor, choice.model, started.run_id, text=text, max_tokens=call.params.max_tokens)
    except AppError:
        if replay := find_api_run(actor, call):
            return replay
        raise
    with Place(choice, started.run_id, in_line) as place:
        room = room_of(choice.model, actor, in_line=in_line)
        values = _values(actor, call, started, choice) | {"room": room.places, "own_room": room.own}
        for _ in range(2):
            ((waiting, own, created),) = prepared(_START, values)
            if created:
                place.keep()
                return started
            if replay := find_api_run(actor, call):
                return replay
            check_room(room, waiting=waiting, own=own)
            # Else the key was older than keys live, and is free now.
        raise Conflict("This key is being used at this moment. Try again.")


def find_api_run(actor: Actor, call: ApiCall) -> StartedRun | None:
    """The run that this call's key started before. Raises IdempotencyMismatch for another body."""
    run = earlier_run(actor, call.key, call.digest) if call.key else None
    return None if run is None else StartedRun(run.id, run.conversation_id, run.answer_id, created=False)


def _values(actor: Actor, call: ApiCall, run: StartedRun, choice: Choice) -> dict[str, Any]:
    now = timezone.now()
    return {
        "run": run.run_id,
        "conversation": run.conversation_id,
        "answer": run.answer_id,
        "organization": actor.organization_id,
        "user": actor.user_id,
        "now": now,
        "deadline": now + timedelta(seconds=settings.RUN_DEADLINE_S),
        "transitions": Jsonb([queued_at(now)]),
        "tier": actor.tier.value,
        "key": call.key,
        "digest": call.digest,
        "request_id": call.request_id,
        "requested": call.model,
        "model": choice.model.id,
        "decision": Jsonb(choice.decision),
        "params": Jsonb(asdict(call.params)),
        "prompt": Jsonb([message.view() for message in call.messages]),
    }
