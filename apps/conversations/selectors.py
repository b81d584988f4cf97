"""Reads: conversations, message trees and runs as the API shows them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.accounts.types import Actor
from apps.conversations.access import access_conversation, access_run, own_conversations
from apps.conversations.models import Conversation, Message, Run
from apps.conversations.types import ACTIVE
from apps.core.errors import Invalid
from apps.files.public import FileSummary, summarize_known_files
from inference.protocol import ModelInfo

PAGE = 50
MAX_PAGE = 200
TREE_PAGE = 1_000
View = dict[str, Any]


def list_conversations(
    actor: Actor, *, archived: bool, deleted: bool, query: str, cursor: str | None, limit: int = PAGE
) -> View:
    """A page of conversations, newest activity first, pinned ones first on the first page."""
    rows = own_conversations(actor).filter(
        origin=Conversation.Origin.CHAT, archived_at__isnull=not archived, deleted_at__isnull=not deleted
    )
    if query:
        rows = rows.filter(title__icontains=query[:200].replace("\x00", "\ufffd"))
    limit = min(max(1, limit), MAX_PAGE)
    pinned = list(rows.filter(pinned_at__isnull=False).order_by("-pinned_at")[:MAX_PAGE]) if cursor is None else []
    rows = _after(rows.filter(pinned_at__isnull=True), cursor).order_by("-updated_at", "-id")
    page = list(rows[: limit + 1])
    more, page = len(page) > limit, page[:limit]
    return {
        "results": conversation_views([*pinned, *page]),
        "next": _cursor(page[-1].updated_at, page[-1].id) if more else None,
    }


def _cursor(moment: datetime, id: UUID) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()}|{id}".encode()).decode()


def _after(rows: QuerySet[Conversation], cursor: str | None) -> QuerySet[Conversation]:
    if cursor is None:
        return rows
    try:
        moment, _, id = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        at, last = datetime.fromisoformat(moment).astimezone(UTC), UUID(id)
    except (ValueError, OverflowError, binascii.Error, UnicodeDecodeError) as error:
        raise Invalid("This cursor is not one of ours. Start again without it.") from error
    return rows.filter(Q(updated_at__lt=at) | Q(updated_at=at, id__lt=last))


def conversation_views(rows: Sequence[Conversation]) -> list[View]:
    active = dict(
        Run.objects.filter(conversation_id__in=[row.id for row in rows], state__in=[s.value for s in ACTIVE])
        .order_by("created_at")
        .values_list("conversation_id", "id")
    )
    return [conversation_view(row, active.get(row.id)) for row in rows]


def conversation_view(row: Conversation, active_run_id: UUID | None = None) -> View:
    return {
        "id": row.id,
        "title": row.title,
        "pinned": row.pinned_at is not None,
        "archived": row.archived_at is not None,
        "deleted_at": row.deleted_at,
        "head_message_id": row.head_message_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "active_run_id": active_run_id,
    }


def get_conversation(actor: Actor, id: UUID) -> View:
    return conversation_views([access_conversation(actor, id)])[0]


def list_messages(actor: Actor, conversation_id: UUID, *, after_seq: int = 0) -> View:
    """The whole tree by sequence number, a thousand messages a page."""
    conversation = access_conversation(actor, conversation_id)
    rows = list(
        Message.objects.filter(conversation_id=conversation.id, seq__gt=after_seq).order_by("seq")[: TREE_PAGE + 1]
    )
    more, rows = len(rows) > TREE_PAGE, rows[:TREE_PAGE]
    return {"results": message_views(rows), "next": str(rows[-1].seq) if more else None}


def message_views(rows: Iterable[Message]) -> list[View]:
    """Messages as shown; an unfinished answer carries the text of its run's checkpoint."""
    rows = list(rows)
    files = {f.id: f for f in summarize_known_files({id for row in rows for id in row.file_ids})}
    unfinished = [row.run_id for row in rows if row.run_id and row.status in ACTIVE]
    runs = {run.id: run for run in Run.objects.filter(id__in=unfinished).only("id", "state", "partial_text", "model")}
    return [message_view(row, files, runs.get(row.run_id) if row.run_id else None) for row in rows]


def new_message_views(rows: Sequence[Message]) -> list[View]:
    """Messages that were just written: nothing of their run is there to be read yet."""
    files = {f.id: f for f in summarize_known_files({id for row in rows for id in row.file_ids})}
    return [message_view(row, files) for row in rows]


def message_view(row: Message, files: dict[UUID, FileSummary], run: Run | None = None) -> View:
    live = run is not None and row.status in ACTIVE
    return {
        "id": row.id,
        "conversation_id": row.conversation_id,
        "parent_id": row.parent_id,
        "seq": row.seq,
        "role": row.role,
        "text": run.partial_text if run is not None and live else row.text,
        "status": run.state if run is not None and live else row.status,
        "run_id": row.run_id,
        "model": row.model,
        "files": [file_view(files[id]) for id in row.file_ids if id in files],
        "citations": row.citations,
        "notices": row.notices,
        "tool_calls": row.tool_calls,
        "error": row.error,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }


def file_view(file: FileSummary) -> View:
    return {"id": file.id, "name": file.name, "page_count": file.page_count, "state": file.state}


def run_view(run: Run) -> View:
    return {
        "id": run.id,
        "conversation_id": run.conversation_id,
        "question_id": run.question_id,
        "answer_id": run.answer_id,
        "state": run.state,
        "model_requested": run.model_requested,
        "model": run.model,
        "replica": run.replica,
        "queue_position": None,
        "estimated_wait_s": None,
        "attempt": run.attempt,
        "ttft_ms": run.ttft_ms,
        "prompt_tokens": run.prompt_tokens,
        "cached_tokens": run.cached_tokens,
        "completion_tokens": run.completion_tokens,
        "error": run.error,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
    }


def run_detail_view(run: Run) -> View:
    """A run with how it came about: times, decision, failovers and transitions."""
    return run_view(run) | {
        "waited_ms": run.waited_ms,
        "decision": run.decision,
        "reconstructed": run.reconstructed,
        "transitions": run.transitions,
        "lane": run.lane,
        "tier": run.tier,
    }


def answer_view(run: Run) -> View:
    """The assistant message of a run as it stands."""
    row = Message.objects.get(conversation_id=run.conversation_id, id=run.answer_id)
    return message_views([row])[0]


def run_context(actor: Actor, run_id: UUID) -> View:
    """Exactly what the model was sent for a run, and which passages it was given."""
    run = access_run(actor, run_id)
    context = Run.objects.filter(id=run.id).values_list("context", "prompt").get()
    body = context[0] or {"messages": context[1] or []}
    empty: dict[str, Any] = {"passages": [], "mode": None, "unready": [], "left_out": []}
    return {**empty, "survey": None, "tables": None, "history": None, **body}


def model_view(model: ModelInfo) -> View:
    return {
        "id": model.id,
        "name": model.name,
        "state": model.state,
        "eta_s": model.eta_s,
        "phase": model.phase,
        "demo": model.demo,
        "context_length": model.context_length,
        "note": model.note,
        "replicas": {"ready": model.replicas_ready, "total": model.replicas_total},
    }


def latest_cursor(value: str | None) -> int:
    """The `cursor` of a message page: a sequence number."""
    if value is None:
        return 0
    if not value.isdecimal():
        raise Invalid("This cursor is not one of ours. Start again without it.")
    return int(value)
