"""The end of a run: final message, usage entry and state in one statement, and the event that tells of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from apps.accounts.public import USAGE_OF_RUN
from apps.conversations.models import Run
from apps.conversations.selectors import View, answer_view, run_view
from apps.conversations.types import RunResult
from apps.core.db import prepared
from apps.core.ids import new_id
from apps.core.notify import notify_user

_MESSAGE_COLUMNS = (
    "id", "conversation_id", "parent_id", "seq", "role", "text", "status", "run_id", "model", "created_at",
    "finished_at",
)  # fmt: skip
_RUN_COLUMNS = (
    "id", "user_id", "conversation_id", "question_id", "answer_id", "state", "model_requested", "model", "replica",
    "attempt", "ttft_ms", "prompt_tokens", "cached_tokens", "completion_tokens", "created_at", "started_at",
    "finished_at",
)  # fmt: skip
_FINISH = f"""
    WITH run AS (
        UPDATE conversations_run SET
            state = %(state)s::text, finished_at = now(), finish_reason = %(reason)s, seq = %(seq)s, error = %(error)s,
            partial_text = '', token_ids = '{{}}', prompt_token_ids = '{{}}', weights_digest = '',
            tokenizer_digest = '', reconstructed = %(reconstructed)s,
            model = COALESCE(NULLIF(%(model)s::text, ''), model),
            replica = COALESCE(NULLIF(%(replica)s::text, ''), replica),
            prompt_tokens = %(prompt_tokens)s, cached_tokens = %(cached_tokens)s,
            completion_tokens = %(completion_tokens)s, waited_ms = %(waited_ms)s, ttft_ms = %(ttft_ms)s,
            decision = %(decision)s,
            transitions = transitions || jsonb_build_object(
                'state', %(state)s::text, 'at', now(), 'attempt', %(attempt)s::int, 'by', %(by)s::text)
        WHERE id = %(id)s AND attempt = %(attempt)s::int AND state IN ('queued', 'running', 'waiting_approval')
        RETURNING *
    ), message AS (
        UPDATE conversations_message m SET
            text = %(text)s, status = %(state)s::text, model = run.model, citations = %(citations)s,
            notices = %(notices)s, tool_calls = %(tool_calls)s, error = %(error)s, finished_at = now()
        FROM run WHERE m.conversation_id = run.conversation_id AND m.id = run.answer_id
        RETURNING m.*
    ), entry AS (
        {USAGE_OF_RUN}
    )
    SELECT {", ".join([f"run.{name}" for name in _RUN_COLUMNS] + [f"message.{name}" for name in _MESSAGE_COLUMNS])}
    FROM run, message
"""  # noqa: S608 - constants


def finish_run(run_id: UUID, attempt: int, result: RunResult, *, by: str) -> View | None:
    """Final message, usage entry and state in one statement; the `done` event, or None when fenced out."""
    values: dict[str, Any] = {
        "id": run_id,
        "attempt": attempt,
        "state": result.state.value,
        "by": by,
        "reason": result.finish_reason or "",
        "seq": result.seq,
        "error": None if result.error is None else Jsonb(result.error),
        "reconstructed": Jsonb(list(result.reconstructed)),
        "model": result.model,
        "replica": result.replica,
        "prompt_tokens": result.prompt_tokens,
        "cached_tokens": result.cached_tokens,
        "completion_tokens": result.completion_tokens,
        "waited_ms": result.waited_ms,
        "ttft_ms": result.ttft_ms,
        "decision": None if result.decision is None else Jsonb(result.decision),
        "text": result.text,
        "citations": Jsonb(list(result.citations)),
        "notices": Jsonb(list(result.notices)),
        "tool_calls": Jsonb(list(result.tool_calls)),
        "entry_id": new_id(),
    }
    rows = prepared(_FINISH, values)
    if not rows:
        return None
    (row,) = rows
    message = dict(zip(_MESSAGE_COLUMNS, row[len(_RUN_COLUMNS) :], strict=True))
    # From the same statement: a read after it could fail, and the end would never be told.
    run = Run(**dict(zip(_RUN_COLUMNS, row[: len(_RUN_COLUMNS)], strict=True)), error=result.error)
    if run.question_id is not None:
        notify_user(run.user_id, {"type": "run", "run": run_view(run)})
    return {
        "type": "done",
        "state": result.state,
        "finish_reason": result.finish_reason,
        "usage": {
            "prompt_tokens": result.prompt_tokens,
            "cached_tokens": result.cached_tokens,
            "completion_tokens": result.completion_tokens,
        },
        # JSON columns come back as text from a plain cursor, so these are told from what was written.
        "message": {
            **message,
            "citations": list(result.citations),
            "notices": list(result.notices),
            "tool_calls": list(result.tool_calls),
            "error": result.error,
            "files": [],
        },
        "error": result.error,
    }


def done_event(run: Run) -> View:
    """The last event of a finished run, from its rows."""
    return {
        "type": "done",
        "state": run.state,
        "finish_reason": run.finish_reason or None,
        "usage": {
            "prompt_tokens": run.prompt_tokens,
            "cached_tokens": run.cached_tokens,
            "completion_tokens": run.completion_tokens,
        },
        "message": answer_view(run),
        "error": run.error,
    }
