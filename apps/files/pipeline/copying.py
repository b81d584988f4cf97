"""Content that its owner uploaded before is not read again: its derived rows are copied inside the database.

Each file keeps rows of its own, so that deleting one never touches another. Never across owners: the check
itself (`known_copy`) starts from the organization and the owner.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection
from django.db.models import Q

from apps.files.models import File, FileState

LONG_STATEMENTS = "SET LOCAL statement_timeout = '300s'"
"""For one transaction: a book has some hundred thousand postings."""

# Copies get random ids: uuidv7() only exists from Postgres 18 on, and their order carries nothing.
_PAGES = """
    INSERT INTO files_page (id, file_id, organization_id, number, state, source, text, width, height, elements,
                            headings, confidence, error_code, error_message, indexed_at, attempt, failures, lease_until)
    SELECT gen_random_uuid(), %(target)s, organization_id, number, state, source, text, width, height, elements,
           headings, confidence, error_code, error_message, indexed_at, 0, 0, NULL
    FROM files_page WHERE file_id = %(source)s
"""
_PASSAGES_AND_POSTINGS = """
    WITH names AS MATERIALIZED (
        SELECT id AS old, gen_random_uuid() AS new FROM files_passage WHERE file_id = %(source)s
    ), passages AS (
        INSERT INTO files_passage (id, file_id, organization_id, owner_id, page_number, ordinal, heading, text,
                                   boxes, locator, source, token_count, length, embedding, embedding_version)
        SELECT names.new, %(target)s, organization_id, owner_id, page_number, ordinal, heading, text,
               boxes, locator, source, token_count, length, embedding, embedding_version
        FROM files_passage JOIN names ON names.old = files_passage.id
    )
    INSERT INTO files_posting (organization_id, file_id, passage_id, lexeme, tf)
    SELECT organization_id, %(target)s, names.new, lexeme, tf
    FROM files_posting JOIN names ON names.old = files_posting.passage_id
    WHERE files_posting.file_id = %(source)s
"""
_TABLES = """
    INSERT INTO files_table (id, file_id, organization_id, number, name, sheet, title, page, header_row, first_row,
                             last_row, first_column, last_column, rows, size, columns, notes)
    SELECT gen_random_uuid(), %(target)s, organization_id, number, name, sheet, title, page, header_row, first_row,
           last_row, first_column, last_column, rows, size, columns, notes
    FROM files_table WHERE file_id = %(source)s
"""


def known_copy(file: File, sha256: str) -> UUID | None:
    """An earlier file of the same owner with this content. Call under the lock of `lock_content`."""
    return (
        File.objects.filter(
            organization_id=file.organization_id,
            owner_id=file.owner_id,
            sha256=sha256,
            same_as_id=None,
            kind=file.kind,
            state__in=(FileState.PROCESSING, FileState.READY, FileState.PARTIAL),
        )
        .exclude(Q(id=file.id) | Q(error_code="cancelled"))
        .order_by("id")
        .values_list("id", flat=True)
        .first()
    )


def lock_content(owner_id: UUID, sha256: str) -> None:
    """Two uploads of one content decide one after the other who reads it; held until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"files:{owner_id}:{sha256}"])


def lock_source(file: File) -> File | None:
    """The earlier file, kept from being removed while it is copied; None when it is of no use any more."""
    if file.same_as_id is None:
        return None
    return (
        File.objects.select_for_update(of=("self",))
        .filter(
            id=file.same_as_id,
            owner_id=file.owner_id,
            organization_id=file.organization_id,
            state__in=(FileState.PROCESSING, FileState.READY, FileState.PARTIAL),
        )
        .exclude(error_code="cancelled")
        .first()
    )


def copy_derived(source: UUID, target: UUID) -> None:
    """Copy pages, passages with their vectors, postings and tables. The target must have none."""
    with connection.cursor() as cursor:
        cursor.execute(LONG_STATEMENTS)
        cursor.execute(_PAGES, {"source": source, "target": target})
        cursor.execute(_TABLES, {"source": source, "target": target})
        cursor.execute(_PASSAGES_AND_POSTINGS, {"source": source, "target": target})
