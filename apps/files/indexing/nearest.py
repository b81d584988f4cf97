"""The vector indexes of Postgres: one for each number of dimensions, over the vectors that have it.

The index for 384 comes with the migrations. Another is made when a model with another number is chosen, before its
first vectors, when that is quick; without it large scopes are compared passage by passage, which is right and slow.
"""

from __future__ import annotations

from django.db import connection

COMMON = 384
_VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


def index_name(dimensions: int) -> str:
    return "files_passage_hnsw" if dimensions == COMMON else f"files_passage_hnsw_{dimensions}"


def definition(dimensions: int, *, concurrently: str = "") -> str:
    return (
        f"CREATE INDEX {concurrently} {index_name(dimensions)} ON files_passage "
        f"USING hnsw ((embedding::halfvec({dimensions:d})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) "
        f"WHERE vector_dims(embedding) = {dimensions:d}"
    )


def has_index(dimensions: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_VALID, [index_name(dimensions)])
        return bool(cursor.fetchone() == (True,))


def ensure_index(dimensions: int) -> bool:
    """Make the index unless it is there; false when somebody else is making it. To be called outside a transaction.

    One whose making was broken off is made anew.
    """
    if has_index(dimensions):
        return True
    name = index_name(dimensions)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [name])
        if cursor.fetchone() != (True,):
            return False
        try:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            cursor.execute(definition(dimensions, concurrently="CONCURRENTLY"))
        finally:
            cursor.execute("RESET statement_timeout")
            cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [name])
    return True
