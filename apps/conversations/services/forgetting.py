"""What conversations keep of a deleted file, and what they give up.

Messages are the conversation's own: their words, the quotes of their citations and the names of files stay until the
conversation goes. Whole passages are the file's: they stand in what runs sent to models (`Run.context`) and in event
logs, and go with it. A run that is still answering may hold some, so the removal waits for its end.
"""

from __future__ import annotations

from uuid import UUID

import redis
from django.db import connection

from apps.conversations.eventlog import log_key, readers_key
from apps.conversations.types import ACTIVE
from apps.core.valkey import valkey
from apps.files.types import DeletedFile, OtherStore, Retryable

_ACTIVE = tuple(state.value for state in ACTIVE)

# From the owner's runs to their conversations to the runs in those with the file: each by an index.
_RUNS = """
    WITH mine AS MATERIALIZED (
        SELECT DISTINCT conversation_id FROM conversations_run
        WHERE organization_id = %(organization)s AND user_id = %(owner)s
    ), touched AS MATERIALIZED (
        SELECT conversation_id FROM mine WHERE EXISTS (
            SELECT FROM conversations_message AS message
            WHERE message.conversation_id = mine.conversation_id AND %(file)s = ANY(message.file_ids)
        )
    )
    SELECT run.id, run.state = ANY(%(active)s) FROM conversations_run AS run JOIN touched USING (conversation_id)
    WHERE run.organization_id = %(organization)s AND run.user_id = %(owner)s
        AND (run.context->'passages' @> jsonb_build_array(jsonb_build_object('file_id', %(file)s::text))
            OR run.context->'tables'->'lookups' @> jsonb_build_array(jsonb_build_object('file_id', %(file)s::text))
            OR run.context->'survey'->'files' @> jsonb_build_array(jsonb_build_object('file_id', %(file)s::text))
            OR run.context->'unready' @> jsonb_build_array(jsonb_build_object('file_id', %(file)s::text))
            OR (run.state = ANY(%(active)s) AND run.created_at <= %(deleted_at)s))
"""
_FORGET = """
    UPDATE conversations_run SET context = NULL, prompt_token_ids = '{}'
    WHERE id = ANY(%(runs)s::uuid[]) AND NOT state = ANY(%(active)s)
"""


def _runs(file: DeletedFile) -> list[tuple[UUID, bool]]:
    """Runs that hold passages of the file, and those that may because they still answer (true with these)."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RUNS,
            {
                "organization": file.organization_id,
                "owner": file.owner_id,
                "file": file.id,
                "deleted_at": file.deleted_at,
                "active": list(_ACTIVE),
            },
        )
        return list(cursor.fetchall())


def _forget(file: DeletedFile) -> None:
    """Logs first: by what was sent they are found again. Raises Retryable while Valkey is away."""
    ended = [run_id for run_id, answers in _runs(file) if not answers]
    if not ended:
        return
    try:
        valkey().delete(*(key(run_id) for run_id in ended for key in (log_key, readers_key)))
    except redis.RedisError as error:
        raise Retryable(f"event logs: {error}") from error
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, {"runs": ended, "active": list(_ACTIVE)})


SENT_PASSAGES = OtherStore("passages sent to models", lambda file: len(_runs(file)), _forget)
