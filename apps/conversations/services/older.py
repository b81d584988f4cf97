# ruff: noqa: S608 - the statements are made of constants
"""Older turns of long conversations: made findable, found for a question, and summarised branch by branch.

Every search starts from the conversation's owner and walks the branch of the question inside the same statement, so
that neither another branch nor anybody else's conversation can contribute a word. What is kept here is derived from the
messages; it is made only for conversations that do not fit a prompt, and goes when the conversation is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from apps.accounts.types import Actor
from apps.conversations.access import access_conversation
from apps.conversations.models import BranchSummary, Conversation, TurnIndex, TurnPosting
from apps.conversations.types import TERMINAL, Memo, OlderTurns, Turn
from apps.core.errors import NotFound
from apps.files.public import SEARCH_CONFIGURATION, Candidate, fuse, prepare, vectors_version

MAX_BRANCH = 4_000
"""Messages of a branch that are looked at, from its end."""
INDEXED_AT_ONCE = 400
INDEXED_AT_A_QUESTION = 200
"""Somebody waits: of a conversation that no run has left its index of (a copy, say) the rest follows behind it."""
EMBEDDED_AT_ONCE = 32
DEPTH = 40
MAX_HITS = 12
LEAST_COSINE = 0.35
"""Below it a message has nothing to do with the question; keywords are a reason of their own."""
MAX_INDEXED_CHARS = 20_000
K1, B = 1.2, 0.75

# `mine` is empty for a conversation of somebody else's, and then so is everything that follows from it.
_BRANCH = """
mine AS MATERIALIZED (
    SELECT id FROM conversations_conversation
    WHERE id = %(c)s AND organization_id = %(organization)s AND owner_id = %(owner)s AND deleted_at IS NULL
), branch AS (
    SELECT m.id, m.parent_id, 1 AS depth FROM conversations_message m
    WHERE m.conversation_id = %(c)s AND m.id = %(leaf)s AND EXISTS (SELECT FROM mine)
    UNION ALL
    SELECT m.id, m.parent_id, b.depth + 1
    FROM branch b JOIN conversations_message m ON m.conversation_id = %(c)s AND m.id = b.parent_id
    WHERE b.depth < %(limit)s
)
"""
_UNINDEXED = f"""
WITH RECURSIVE {_BRANCH}
SELECT m.id, left(m.text, {MAX_INDEXED_CHARS})
FROM branch JOIN conversations_message m ON m.conversation_id = %(c)s AND m.id = branch.id
WHERE m.status = ANY(%(ended)s) AND NOT EXISTS (
    SELECT FROM conversations_turnindex i WHERE i.conversation_id = %(c)s AND i.message_id = branch.id
)
ORDER BY branch.depth DESC LIMIT %(most)s
"""
_INDEX = f"""
WITH input AS (SELECT * FROM unnest(%(ids)s::uuid[], %(texts)s::text[]) AS given(id, text)),
lexed AS MATERIALIZED (
    SELECT input.id, word.lexeme, cardinality(word.positions) AS tf
    FROM input, unnest(to_tsvector('{SEARCH_CONFIGURATION}', input.text)) AS word WHERE length(word.lexeme) <= 64
),
stored AS (
    INSERT INTO conversations_turnindex (conversation_id, message_id, length)
    SELECT %(c)s, input.id, coalesce((SELECT sum(tf) FROM lexed WHERE lexed.id = input.id), 0) FROM input
    ON CONFLICT DO NOTHING
)
INSERT INTO conversations_turnposting (conversation_id, message_id, lexeme, tf)
SELECT %(c)s, id, lexeme, tf FROM lexed
ON CONFLICT DO NOTHING
"""
_WALK = f"""
WITH RECURSIVE {_BRANCH}
SELECT id FROM branch ORDER BY depth DESC
"""
# Every turn of the conversation's index with BM25 and the cosine; which of them are of the branch is then a look into a
# set. To join the walk here costs ten times as much, since nobody can tell the planner how long it is.
_SCORES = f"""
WITH mine AS MATERIALIZED (
    SELECT id FROM conversations_conversation
    WHERE id = %(c)s AND organization_id = %(organization)s AND owner_id = %(owner)s AND deleted_at IS NULL
), statistics AS MATERIALIZED (
    SELECT count(*)::float8 AS turns, greatest(coalesce(avg(length), 1), 1)::float8 AS length
    FROM conversations_turnindex WHERE conversation_id = %(c)s
), found AS MATERIALIZED (
    SELECT posting.message_id, posting.tf, count(*) OVER (PARTITION BY posting.lexeme) AS turns
    FROM conversations_turnposting posting
    WHERE posting.conversation_id = %(c)s AND posting.lexeme = ANY(ARRAY(
        SELECT lexeme FROM unnest(to_tsvector('{SEARCH_CONFIGURATION}', %(question)s)) LIMIT 48
    ))
), keywords AS (
    SELECT found.message_id, sum(
        ln(1 + (statistics.turns - found.turns + 0.5) / (found.turns + 0.5))
        * found.tf * {K1 + 1} / (found.tf + {K1} * ({1 - B} + {B} * i.length / statistics.length))
    ) AS score
    FROM found JOIN conversations_turnindex i ON i.conversation_id = %(c)s AND i.message_id = found.message_id
    CROSS JOIN statistics GROUP BY found.message_id
)
SELECT i.message_id, coalesce(keywords.score, 0),
    CASE WHEN i.embedding_version = %(version)s THEN 1 - (i.embedding <=> %(vector)s::vector) END
FROM mine JOIN conversations_turnindex i ON i.conversation_id = mine.id
LEFT JOIN keywords ON keywords.message_id = i.message_id
"""
_MEMOS = """
SELECT s.message_id FROM conversations_branchsummary s JOIN conversations_conversation c ON c.id = s.conversation_id
WHERE c.id = %(c)s AND c.organization_id = %(organization)s AND c.owner_id = %(owner)s AND c.deleted_at IS NULL
"""
_TURNS = """
SELECT m.id, m.role, m.text FROM conversations_message m JOIN conversations_conversation c ON c.id = m.conversation_id
WHERE m.conversation_id = %(c)s AND m.id = ANY(%(ids)s::uuid[])
    AND c.organization_id = %(organization)s AND c.owner_id = %(owner)s AND c.deleted_at IS NULL
"""
_MEMO = """
SELECT s.message_id, s.turns, s.text, s.model
FROM conversations_branchsummary s JOIN conversations_conversation c ON c.id = s.conversation_id
WHERE s.conversation_id = %(c)s AND s.message_id = %(id)s
    AND c.organization_id = %(organization)s AND c.owner_id = %(owner)s AND c.deleted_at IS NULL
"""
_NEXT = f"""
WITH RECURSIVE {_BRANCH}, numbered AS (SELECT id, (SELECT max(depth) FROM branch) - depth + 1 AS number FROM branch)
SELECT m.id, m.role, m.text, numbered.number
FROM numbered JOIN conversations_message m ON m.conversation_id = %(c)s AND m.id = numbered.id
WHERE numbered.number > %(after)s AND numbered.number <= %(upto)s
ORDER BY numbered.number LIMIT %(most)s
"""


class _Branch:
    """Statements about the branch that ends with a message, as far as the actor may see it."""

    def __init__(self, actor: Actor, conversation_id: UUID, leaf: UUID) -> None:
        self.parameters: dict[str, Any] = {
            "c": conversation_id,
            "leaf": leaf,
            "organization": actor.organization_id,
            "owner": actor.user_id,
            "limit": MAX_BRANCH,
        }

    def rows(self, statement: str, **extra: Any) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(statement, {**self.parameters, **extra})
            return cursor.fetchall() if cursor.description else []

    def numbers(self) -> dict[UUID, int]:
        """Its messages with their numbers, from 1."""
        return {id: number for number, (id,) in enumerate(self.rows(_WALK), start=1)}

    def memo(self, numbers: Mapping[UUID, int]) -> Memo | None:
        """The summary that covers most of it."""
        last = max((id for (id,) in self.rows(_MEMOS) if id in numbers), key=numbers.__getitem__, default=None)
        rows = self.rows(_MEMO, id=last) if last else []
        return Memo(*rows[0]) if rows else None


# Finding


def find_older(
    actor: Actor, conversation_id: UUID, leaf: UUID, *, question: str, vector: str | None, sent: Sequence[UUID]
) -> OlderTurns:
    """What the question needs of its branch beyond the messages that are `sent` anyway, and the summary of its start.

    Messages that are not in the index yet are put there first, a bounded number of them. A conversation that is not the
    actor's has nothing.
    """
    branch = _Branch(actor, conversation_id, leaf)
    version = vectors_version() if vector else "-"
    wanted = {"question": prepare(question), "vector": vector, "version": version}
    numbers = branch.numbers()
    rows = branch.rows(_SCORES, **wanted)
    if numbers.keys() - {leaf} - {id for id, *_ in rows} and _index(branch, actor, INDEXED_AT_A_QUESTION):
        rows = branch.rows(_SCORES, **wanted)
    left_out = numbers.keys() - {leaf, *sent}
    candidates = _best([Candidate(id, conversation_id, *scores) for id, *scores in rows if id in left_out])
    best = [id for id, _ in fuse(candidates)][:MAX_HITS]
    said = {id: (role, text) for id, role, text in branch.rows(_TURNS, ids=best)} if best else {}
    return OlderTurns(
        total=len(numbers),
        hits=tuple(Turn(*said[id], id=id, number=numbers[id]) for id in best if id in said),
        mode="hybrid" if any(candidate.cosine is not None for candidate in candidates) else "keyword",
        memo=branch.memo(numbers),
    )


def _best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that rank high by keywords or by meaning, and have something to do with the question."""
    near = [c for c in candidates if c.keyword > 0 or (c.cosine or 0.0) >= LEAST_COSINE]
    by_keyword = sorted(near, key=lambda c: -c.keyword)[:DEPTH]
    by_meaning = sorted(near, key=lambda c: -(c.cosine or 0.0))[:DEPTH]
    return list({c.passage_id: c for c in (*by_keyword, *by_meaning)}.values())


def index_turns(actor: Actor, conversation_id: UUID, leaf: UUID, *, most: int = INDEXED_AT_ONCE) -> int:
    """Make up to `most` messages of the branch findable by keywords, oldest first; how many were. Repeatable."""
    return _index(_Branch(actor, conversation_id, leaf), actor, most)


def _index(branch: _Branch, actor: Actor, most: int) -> int:
    rows = branch.rows(_UNINDEXED, most=most, ended=[state.value for state in TERMINAL])
    if not rows:
        return 0
    try:
        with transaction.atomic():
            # Whoever deletes the conversation waits for this, and finds what it has written.
            access_conversation(actor, branch.parameters["c"], lock=True)
            branch.rows(_INDEX, ids=[id for id, _ in rows], texts=[prepare(text) for _, text in rows])
    except NotFound:
        return 0
    return len(rows)


def unembedded(actor: Actor, conversation_id: UUID) -> list[tuple[UUID, str]]:
    """Some messages of the index without a vector of the present version, with their texts."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT i.message_id, left(m.text, 2000) FROM conversations_turnindex i
            JOIN conversations_conversation c ON c.id = i.conversation_id
            JOIN conversations_message m ON m.conversation_id = i.conversation_id AND m.id = i.message_id
            WHERE c.id = %s AND c.organization_id = %s AND c.owner_id = %s AND i.embedding_version <> %s LIMIT %s
            """,
            [conversation_id, actor.organization_id, actor.user_id, vectors_version(), EMBEDDED_AT_ONCE],
        )
        return [(id, text) for id, text in cursor.fetchall()]


def save_vectors(conversation_id: UUID, vectors: dict[UUID, str]) -> None:
    """Give messages of the index their vectors; those that were deleted meanwhile stay gone."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE conversations_turnindex AS turn SET embedding = made.vector::vector, embedding_version = %s
            FROM unnest(%s::uuid[], %s::text[]) AS made(id, vector)
            WHERE turn.conversation_id = %s AND turn.message_id = made.id
            """,
            [vectors_version(), list(vectors), list(vectors.values()), conversation_id],
        )


# Summaries


def turns_after(
    actor: Actor, conversation_id: UUID, leaf: UUID, *, after: int, upto: int, most: int
) -> tuple[Turn, ...]:
    """Messages `after + 1` to `upto` of the branch, by their numbers, as many as `most`."""
    rows = _Branch(actor, conversation_id, leaf).rows(_NEXT, after=after, upto=upto, most=most)
    return tuple(Turn(role, text, id=id, number=number) for id, role, text, number in rows)


def latest_memo(actor: Actor, conversation_id: UUID, leaf: UUID) -> Memo | None:
    """The summary that covers most of the branch."""
    branch = _Branch(actor, conversation_id, leaf)
    return branch.memo(branch.numbers())


@transaction.atomic
def save_memo(conversation_id: UUID, memo: Memo) -> bool:
    """Keep a summary; the first one of two that were made at once. False for a deleted conversation."""
    if not Conversation.objects.select_for_update().filter(id=conversation_id, deleted_at=None).exists():
        return False
    BranchSummary.objects.bulk_create(
        [
            BranchSummary(
                conversation_id=conversation_id,
                message_id=memo.message_id,
                turns=memo.turns,
                text=memo.text,
                model=memo.model,
            )
        ],
        ignore_conflicts=True,
    )
    return True


def forget_older(conversation_id: UUID) -> None:
    """Remove what was derived of a conversation's messages. It is made again when it is needed again."""
    for model in (TurnPosting, TurnIndex, BranchSummary):
        model._default_manager.filter(conversation_id=conversation_id).delete()
