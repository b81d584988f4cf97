"""The life of a run in Postgres: claim, checkpoint, finish, cancel, and finding what nobody works on.

`attempt` is the fencing token. Every write of a runner names the attempt it was given, and changes nothing once
a newer one exists. A runner's lease is one row for all its runs; a run whose owner has no live lease is anyone's.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
import redis
from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.types import Actor
from apps.conversations.access import access_run
from apps.conversations.eventlog import Append, append_now, encode_frame
from apps.conversations.models import Conversation, Run, Runner
from apps.conversations.selectors import View, run_detail_view
from apps.conversations.services.conversations import announce
from apps.conversations.services.finishing import done_event, finish_run
from apps.conversations.services.handoff import hint_cancel
from apps.conversations.services.line import leave_line
from apps.conversations.types import (
    ACTIVE,
    TERMINAL,
    Checkpoint,
    ClaimedRun,
    RunParams,
    RunResult,
    RunState,
    Turn,
)
from apps.core.db import prepared
from apps.core.ids import new_id
from apps.core.valkey import valkey
from inference.continuation import NOBODY, Origin
from inference.protocol import ChatMessage

MAX_ATTEMPTS = 8
MAX_TURNS = 200
STALE_HINT_S = 1.0

_OWNERLESS = """
    (state = 'queued' OR (state = 'running' AND NOT EXISTS (
        SELECT 1 FROM conversations_runner o WHERE o.id = conversations_run.owner_id AND o.lease_until > now())))
"""
# `mine`: runs this runner claimed although it does not execute them, since the claim's answer was lost.
_FIND = f"""
    SELECT id FROM conversations_run
    WHERE (state = 'queued' AND created_at < now() - %(stale)s * interval '1 second')
        OR (state = 'running' AND %(orphans)s AND {_OWNERLESS})
        OR (state = 'running' AND owner_id = %(runner)s AND NOT id = ANY(%(mine)s))
    ORDER BY created_at LIMIT %(limit)s
"""  # noqa: S608 - constants
_CLAIMED = (
    "id", "organization_id", "user_id", "conversation_id", "question_id", "answer_id", "attempt", "model_requested",
    "model", "tier", "lane", "priority", "params", "prompt", "partial_text", "token_ids", "prompt_token_ids",
    "completion_tokens", "seq", "replica", "weights_digest", "tokenizer_digest", "cancel_requested_at", "decision",
    "dispatched",
)  # fmt: skip
_CLAIM = f"""
    UPDATE conversations_run SET
        state = 'running', owner_id = %(owner)s, attempt = attempt + 1,
        started_at = COALESCE(started_at, now()),
        transitions = transitions || jsonb_build_object(
            'state', 'running', 'at', now(), 'attempt', attempt + 1, 'by', %(by)s::text)
    WHERE id = ANY(%(ids)s) AND ({_OWNERLESS} OR (state = 'running' AND owner_id = %(owner)s))
    RETURNING {", ".join(_CLAIMED)}
"""  # noqa: S608 - constants


_TURNS = """
    WITH RECURSIVE branch AS (
        SELECT id, parent_id, role, text, file_ids, run_id, 1 AS depth
        FROM conversations_message WHERE conversation_id = %(c)s AND id = %(leaf)s
        UNION ALL
        SELECT m.id, m.parent_id, m.role, m.text, m.file_ids, m.run_id, b.depth + 1
        FROM branch b JOIN conversations_message m ON m.conversation_id = %(c)s AND m.id = b.parent_id
        WHERE b.depth < %(limit)s
    )
    SELECT b.role, b.text, b.file_ids, r.replica, b.id
    FROM branch b LEFT JOIN conversations_run r ON r.id = b.run_id AND b.role = 'assistant'
    ORDER BY b.depth DESC
"""
_CHECKPOINT = """
    UPDATE conversations_run r SET
        partial_text = v.text, token_ids = v.ids::int[], prompt_token_ids = v.prompt_ids::int[],
        seq = v.seq, completion_tokens = v.tokens, replica = v.replica, weights_digest = v.weights,
        tokenizer_digest = v.tokenizer
    FROM unnest(
        %s::uuid[], %s::int[], %s::int[], %s::text[], %s::text[], %s::text[], %s::int[], %s::text[], %s::text[],
        %s::text[]
    ) AS v(id, attempt, seq, text, ids, prompt_ids, tokens, replica, weights, tokenizer)
    WHERE r.id = v.id AND r.attempt = v.attempt AND r.state = 'running'
    RETURNING r.id
"""


@dataclass(frozen=True, slots=True)
class Work:
    """What a sweep found: runs to claim, and own runs whose user wants them stopped."""

    claimable: tuple[UUID, ...]
    cancelled: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """One run's part of a checkpoint."""

    run_id: UUID
    attempt: int
    seq: int
    text: str
    token_ids: tuple[int, ...]
    prompt_token_ids: tuple[int, ...]
    completion_tokens: int
    origin: Origin = NOBODY


def register_runner(runner_id: UUID | None = None) -> UUID:
    """Make this process known; its lease begins when it is renewed."""
    me = {"host": socket.gethostname(), "pid": os.getpid(), "lease_until": timezone.now()}
    return Runner.objects.create(id=runner_id or new_id(), **me).id


def renew_lease(runner_id: UUID, seconds: float) -> bool:
    """Extend the lease by the database's clock; one row whatever the number of runs. False: it was forgotten."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE conversations_runner SET lease_until = now() + %s * interval '1 second' WHERE id = %s",
            [seconds, runner_id],
        )
        return bool(cursor.rowcount)


def release_runner(runner_id: UUID) -> None:
    """Give the lease up, so that others take the remaining runs at once."""
    Runner.objects.filter(id=runner_id).delete()


def find_work(runner_id: UUID, *, mine: Sequence[UUID], limit: int, orphans: bool = True) -> Work:
    """Runs that wait although their hint is gone, runs that nobody executes, and own runs to cancel.

    `orphans` false leaves out the runs of others, whatever their leases say.
    """
    values: dict[str, Any] = {
        "stale": STALE_HINT_S,
        "runner": runner_id,
        "mine": list(mine),
        "limit": limit,
        "orphans": orphans,
    }
    with connection.cursor() as cursor:
        cursor.execute(_FIND, values)
        claimable = tuple(row[0] for row in cursor.fetchall())
        cursor.execute(
            "SELECT id FROM conversations_run"
            " WHERE state IN ('queued', 'running') AND owner_id = %s AND cancel_requested_at IS NOT NULL",
            [runner_id],
        )
        return Work(claimable, tuple(row[0] for row in cursor.fetchall()))


def forget_dead_runners() -> int:
    """Drop runner rows whose lease ended an hour ago."""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM conversations_runner WHERE lease_until < now() - interval '1 hour'")
        return int(cursor.rowcount)


def claim_runs(runner_id: UUID, run_ids: Sequence[UUID]) -> tuple[ClaimedRun, ...]:
    """Take the runs that are free, each under a new attempt. Do not name runs that this runner executes."""
    if not run_ids:
        return ()
    rows = prepared(_CLAIM, {"owner": runner_id, "by": str(runner_id), "ids": list(run_ids)})
    return tuple(_claimed(dict(zip(_CLAIMED, row, strict=True))) for row in rows)


def _claimed(row: dict[str, Any]) -> ClaimedRun:
    params, prompt = orjson.loads(row["params"]), orjson.loads(row["prompt"] or "null")
    return ClaimedRun(
        **{name: row[name] for name in _CLAIMED[:7] + _CLAIMED[8:12]},
        requested=row["model_requested"],
        decision=orjson.loads(row["decision"] or "null"),
        params=RunParams(**{**params, "stop": tuple(params.get("stop", ()))}),
        prompt=tuple(map(ChatMessage.read, prompt or ())),
        checkpoint=Checkpoint(
            text=row["partial_text"],
            token_ids=tuple(row["token_ids"]),
            prompt_token_ids=tuple(row["prompt_token_ids"]),
            completion_tokens=row["completion_tokens"],
            seq=row["seq"],
            origin=Origin(row["replica"], row["weights_digest"], row["tokenizer_digest"]),
            dispatched=row["dispatched"],
        ),
        cancel_requested=row["cancel_requested_at"] is not None,
    )


def load_turns(conversation_id: UUID, question_id: UUID) -> tuple[Turn, ...]:
    """The branch that ends with a question, oldest first; the newest of a longer one."""
    rows = prepared(_TURNS, {"c": conversation_id, "leaf": question_id, "limit": MAX_TURNS})
    return tuple(Turn(role, text, tuple(file_ids), replica or "", id) for role, text, file_ids, replica, id in rows)


def save_context(run_id: UUID, attempt: int, *, context: View, model: str) -> bool:
    """Keep exactly what is sent to the model. False when the attempt is no longer the newest."""
    mine = Run.objects.filter(id=run_id, attempt=attempt, state=RunState.RUNNING)
    return bool(mine.update(context=context, model=model))


def load_context(run_id: UUID) -> View:
    """What an attempt kept of what it sent; nothing where none came so far."""
    return Run.objects.filter(id=run_id).values_list("context", flat=True).get() or {}


def save_decision(run_id: UUID, attempt: int, decision: View) -> bool:
    """Give the run to another model, for whoever takes it over too. False when the attempt is no longer the newest."""
    mine = Run.objects.filter(id=run_id, attempt=attempt, state=RunState.RUNNING)
    return bool(mine.update(model=decision["model"], decision=decision))


def count_dispatch(run_id: UUID, attempt: int) -> bool:
    """Note that a tool is about to be started. False when the attempt is no longer the newest: it must not be."""
    mine = Run.objects.filter(id=run_id, attempt=attempt, state=RunState.RUNNING)
    return bool(mine.update(dispatched=F("dispatched") + 1))


def checkpoint_runs(items: Sequence[Progress]) -> frozenset[UUID]:
    """Write every run's progress in one statement; the ids that are still ours."""
    columns = (
        [item.run_id for item in items],
        [item.attempt for item in items],
        [item.seq for item in items],
        [item.text for item in items],
        [_array(item.token_ids) for item in items],
        [_array(item.prompt_token_ids) for item in items],
        [item.completion_tokens for item in items],
        # Cut, so that none that does not fit holds up the others; then it is not recognised, and its text is used.
        [item.origin.replica[:200] for item in items],
        [item.origin.weights[:64] for item in items],
        [item.origin.tokenizer[:64] for item in items],
    )
    return frozenset(row[0] for row in prepared(_CHECKPOINT, columns))


def _array(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"


def cancel_run(actor: Actor, run_id: UUID) -> View:
    """Stop a run, keeping what it wrote. Idempotent; a finished run stays as it is."""
    run = access_run(actor, run_id)
    if run.state == RunState.QUEUED and run.attempt == 0:
        cancelled = RunResult(RunState.CANCELLED, "", "cancelled", seq=1)
        event = finish_run(run.id, 0, cancelled, by="web")
        if event is not None:
            leave_line(run.id)
            append_quietly(Append(run.id, 0, 1, encode_frame(1, event), final=True))
            return run_detail_view(access_run(actor, run_id))
    Run.objects.filter(id=run.id, state__in=ACTIVE, cancel_requested_at__isnull=True).update(
        cancel_requested_at=timezone.now()
    )
    hint_cancel(run.id)
    return run_detail_view(access_run(actor, run_id))


def cancel_runs_of(user_id: UUID, run_ids: Sequence[UUID]) -> None:
    """Ask for the end of runs whose conversation was deleted."""
    Run.objects.filter(user_id=user_id, id__in=run_ids, state__in=ACTIVE, cancel_requested_at__isnull=True).update(
        cancel_requested_at=timezone.now()
    )
    for run_id in run_ids:
        hint_cancel(run_id)


def append_quietly(entry: Append) -> None:
    """Append for a run nobody owns; without Valkey readers learn it from Postgres."""
    try:
        append_now(valkey(), entry)
    except redis.RedisError:
        return


def finished_events(run_ids: Sequence[UUID]) -> dict[UUID, tuple[int, View]]:
    """Of these runs the finished ones, each with its last sequence number and `done` event."""
    rows = Run.objects.filter(id__in=run_ids, state__in=TERMINAL).defer("context", "prompt")
    return {run.id: (run.seq, done_event(run)) for run in rows}


def saved_texts(run_ids: Sequence[UUID]) -> dict[UUID, tuple[int, str]]:
    """The checkpointed text of unfinished runs, each with the event number it stands for."""
    rows = Run.objects.filter(id__in=run_ids, state=RunState.RUNNING).values_list("id", "seq", "partial_text")
    return {id: (seq, text) for id, seq, text in rows}


def set_title(conversation_id: UUID, title: str) -> None:
    """Name a conversation that no person has named."""
    with transaction.atomic():
        row = Conversation.objects.select_for_update().filter(id=conversation_id, title_by="question").first()
        if row is not None:
            row.title, row.title_by = title, "model"
            row.save(update_fields=["title", "title_by"])
            announce(row)
