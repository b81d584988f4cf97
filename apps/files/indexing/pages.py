# ruff: noqa: S608 - the statements are made of constants
"""Publishing a page to keyword search: its passages and their postings, in one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from apps.core.ids import new_id
from apps.files.indexing.lexical import CONFIGURATION, LEXEME_MAX_CHARS, prepare
from apps.files.indexing.passages import Draft, cut, with_context
from apps.files.models import File, Page, PageState

_REMOVE = """
WITH gone AS (
    DELETE FROM files_passage WHERE file_id = %(file)s AND page_number = %(page)s RETURNING id
)
DELETE FROM files_posting WHERE file_id = %(file)s AND passage_id IN (SELECT id FROM gone)
"""

# Lexemes are made where the questions' are, by the same dictionary. Positions stop at 255 a lexeme: beyond that
# more occurrences say nothing.
_INSERT = f"""
WITH input AS (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(ordinals)s::int[], %(headings)s::text[], %(texts)s::text[], %(boxes)s::text[],
        %(locators)s::text[], %(tokens)s::int[], %(indexed)s::text[]
    ) AS draft(id, ordinal, heading, text, boxes, locator, token_count, indexed)
),
lexed AS MATERIALIZED (
    SELECT input.id, word.lexeme, cardinality(word.positions) AS tf
    FROM input, unnest(to_tsvector('{CONFIGURATION}', input.indexed)) AS word
    WHERE length(word.lexeme) <= {LEXEME_MAX_CHARS}
),
lengths AS (SELECT id, sum(tf) AS length FROM lexed GROUP BY id),
stored AS (
    INSERT INTO files_passage (
        id, organization_id, owner_id, file_id, page_number, ordinal, heading, text, boxes, locator, source,
        token_count, length, embedding_version
    )
    SELECT input.id, %(organization)s, %(owner)s, %(file)s, %(page)s, input.ordinal, input.heading, input.text,
        input.boxes::jsonb, input.locator::jsonb, %(source)s, input.token_count, coalesce(lengths.length, 0), ''
    FROM input LEFT JOIN lengths ON lengths.id = input.id
),
marked AS (UPDATE files_page SET indexed_at = statement_timestamp() WHERE id = %(page_id)s)
INSERT INTO files_posting (file_id, passage_id, lexeme, organization_id, tf)
SELECT %(file)s, id, lexeme, %(organization)s, tf FROM lexed
"""


CARDS = 0
"""The page number of passages that describe a file's tables. Pages begin with 1."""


def _parameters(file: File, drafts: Sequence[Draft], page: Page | None) -> dict[str, Any]:
    return {
        "organization": file.organization_id,
        "owner": file.owner_id,
        "file": file.id,
        "page_id": page.id if page else None,
        "page": page.number if page else CARDS,
        "source": (page.source if page else "") or "digital",
        "ids": [new_id() for _ in drafts],
        "ordinals": list(range(len(drafts))),
        "headings": [draft.heading for draft in drafts],
        "texts": [draft.text for draft in drafts],
        "boxes": [json.dumps(draft.boxes, separators=(",", ":")) for draft in drafts],
        "locators": [json.dumps(draft.locator.as_json()) if draft.locator else None for draft in drafts],
        "tokens": [draft.token_count for draft in drafts],
        "indexed": [prepare(with_context(draft.heading, draft.text)) for draft in drafts],
    }


def index_page(page_id: UUID) -> int:
    """Replace the page's passages and postings by those of its present text; returns how many passages.

    One that waits for recognition has those of its own text, unless that is in doubt. A page that has failed, or whose
    file was removed meanwhile, has none.
    """
    with transaction.atomic(savepoint=False):  # mostly inside the transaction that stores the page
        page = (
            Page.objects.select_related("file")
            .select_for_update(of=("self",))
            .only(
                "organization_id", "number", "state", "source", "elements", "headings", "confidence", "indexed_at",
                "file__organization_id", "file__owner_id", "file__deleted_at",
            )
            .filter(id=page_id)
            .first()
        )  # fmt: skip
        if page is None:
            return 0
        waits = page.state == PageState.OCR
        readable = page.state == PageState.READY or (waits and page.confidence is None)
        drafts = cut(page.elements, page.headings) if readable and page.file.deleted_at is None else []
        if waits and not drafts and page.indexed_at is None:
            return 0
        with connection.cursor() as cursor:
            if page.indexed_at is not None:
                cursor.execute(_REMOVE, {"file": page.file_id, "page": page.number})
            cursor.execute(_INSERT, _parameters(page.file, drafts, page))
    return len(drafts)


def index_cards(file: File, drafts: Sequence[Draft]) -> None:
    """Replace the passages that describe the file's tables: the ordinal of each is the table's number less one.

    Call inside the transaction that stores the tables.
    """
    with connection.cursor() as cursor:
        cursor.execute(_REMOVE, {"file": file.id, "page": CARDS})
        cursor.execute(_INSERT, _parameters(file, drafts, None))
