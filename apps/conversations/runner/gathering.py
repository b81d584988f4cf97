"""What a question needs beside the newest turns: passages of its files, and older turns of its branch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from django.conf import settings

from apps.accounts.types import Actor
from apps.conversations.runner.context import Context
from apps.conversations.runner.patience import until_db
from apps.conversations.services import older
from apps.conversations.services.runs import MAX_TURNS
from apps.conversations.types import ClaimedRun, OlderTurns, Turn
from apps.core.db import in_db
from apps.files.public import SearchResult, TableCard, asearch_passages, cards_of, vector_of

QUERY_CHARS = 4_000


def actor_of_run(run: ClaimedRun) -> Actor:
    return Actor(user_id=run.user_id, organization_id=run.organization_id)


async def search_files(run: ClaimedRun, turns: Sequence[Turn]) -> SearchResult | None:
    """Passages for the question from the files of its branch; None where it has none."""
    file_ids = tuple(dict.fromkeys(id for turn in turns for id in turn.file_ids))
    if not file_ids:
        return None
    return await until_db(
        lambda: asearch_passages(
            actor_of_run(run),
            file_ids=file_ids,
            query=turns[-1].text,
            limit=settings.RUN_PASSAGES,
            survey_limit=settings.RUN_SURVEY_PASSAGES,
        )
    )


async def find_tables(run: ClaimedRun, turns: Sequence[Turn]) -> tuple[TableCard, ...]:
    """The tables of the branch's files, the newest files first."""
    file_ids = tuple(dict.fromkeys(id for turn in reversed(turns) for id in turn.file_ids))
    return await until_db(lambda: in_db(cards_of, actor_of_run(run), file_ids)) if file_ids else ()


async def find_older_turns(run: ClaimedRun, turns: Sequence[Turn], context: Context) -> OlderTurns | None:
    """What the question needs of the turns that `context` has no room for; None where it has all of the branch."""
    past = context.history
    if past is None or run.question_id is None or (past.left_out == 0 and len(turns) < MAX_TURNS):
        return None
    actor, leaf, question = actor_of_run(run), run.question_id, turns[-1].text[:QUERY_CHARS]
    vector = await asyncio.to_thread(vector_of, actor, question)
    sent = [leaf, *(turn.id for turn in past.sent if turn.id is not None)]
    return await until_db(
        lambda: in_db(older.find_older, actor, run.conversation_id, leaf, question=question, vector=vector, sent=sent)
    )
