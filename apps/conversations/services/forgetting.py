"""What conversations keep of a deleted file, and what they give up.

Messages are the conversation's own: their words stay until it goes. Whole passages are the file's and go with it. They
stand in what runs sent to models (`Run.context`), in event logs, and in citations, of which the number, the page and
what the answer says beyond them stay. A run that is still answering may hold some, so the removal waits for its end.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import redis
from django.db import connection
from psycopg.types.json import Jsonb

from apps.conversations.eventlog import log_key, readers_key
from apps.conversations.types import ACTIVE
from apps.core.valkey import valkey
from apps.files.types import DeletedFile, OtherStore, Retryable

BATCH = 200
"""Messages that are blanked by one statement."""
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
            OR run.context->'left_out' @> jsonb_build_array(jsonb_build_object('file_id', %(file)s::text))
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

# Of whatever conversation: a copy of one has no runs. The expression is that of the index.
_CITED = "jsonb_path_query_array(citations, '$[*].file_id') ? %(file)s"
_COUNT_QUOTES = f"SELECT count(*) FROM conversations_message WHERE {_CITED}"  # noqa: S608 - constants
# What stays is named, so that whatever a citation comes to hold goes by itself. A message that is being copied or
# written is passed over rather than waited for: the count behind it finds it, and the removal is tried again.
_BLANK = f"""
    WITH chosen AS (
        SELECT conversation_id, id FROM conversations_message WHERE {_CITED}
        LIMIT {BATCH} FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE conversations_message AS message SET citations = (
        SELECT jsonb_agg(CASE WHEN cited->>'file_id' = %(file)s THEN (
            SELECT jsonb_object_agg(key, value) FROM jsonb_each(cited) WHERE key = ANY(%(kept)s)
        ) || %(blank)s ELSE cited END ORDER BY place)
        FROM jsonb_array_elements(message.citations) WITH ORDINALITY AS one(cited, place)
    ) FROM chosen WHERE message.conversation_id = chosen.conversation_id AND message.id = chosen.id
"""  # noqa: S608 - constants
_KEPT = ["n", "passage_id", "page", "table", "source", "attributed", "unsupported"]
_NOTHING = Jsonb({"file_id": None, "file_name": "", "heading": "", "text": "", "boxes": []})


def _count_quotes(file: DeletedFile) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_QUOTES, {"file": str(file.id)})
        return int(cursor.fetchone()[0])


def _blank_quotes(file: DeletedFile) -> None:
    """A batch a statement: each is done for good, so that a removal that is killed goes on where it was."""
    values: dict[str, Any] = {"file": str(file.id), "kept": _KEPT, "blank": _NOTHING}
    with connection.cursor() as cursor:
        cursor.execute(_BLANK, values)
        while cursor.rowcount == BATCH:
            cursor.execute(_BLANK, values)


QUOTES = OtherStore("quotes in answers", _count_quotes, _blank_quotes)
"""Messages whose citations hold passages of the file. Behind the runs that may still write some."""
