"""Every table and column of the database, as Postgres's catalogue names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import connection, transaction
from psycopg import sql

from apps.files.lifecycle.places.needles import Needles

_STATEMENT_TIMEOUT = "SET LOCAL statement_timeout = '600s'"
# Partitions are read through the tables they belong to.
_COLUMNS = """
    SELECT columns.table_name, columns.column_name, columns.udt_name
    FROM information_schema.columns AS columns
    JOIN pg_class ON pg_class.relname = columns.table_name AND pg_class.relnamespace = 'public'::regnamespace
    WHERE columns.table_schema = 'public' AND pg_class.relkind IN ('r', 'p') AND NOT pg_class.relispartition
        AND columns.udt_name = ANY(%s)
    ORDER BY columns.table_name, columns.ordinal_position
"""
_IDS = ("uuid", "_uuid")
_TEXTS = ("text", "varchar", "bpchar", "json", "jsonb", "_text", "_varchar", "hstore", "xml", "citext", "tsvector")


def search(needles: Needles) -> Iterator[tuple[str, int]]:
    """(`table.column`, rows) of each column that holds the id or a marker."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_STATEMENT_TIMEOUT)
        cursor.execute(_COLUMNS, [[*_IDS, *_TEXTS, "bytea"]])
        tables: dict[str, list[tuple[str, str]]] = {}
        for table, column, kind in cursor.fetchall():
            tables.setdefault(table, []).append((column, kind))
        for table, columns in tables.items():
            counts = sql.SQL(", ").join(_count(column, kind, needles) for column, kind in columns)
            cursor.execute(sql.SQL("SELECT {} FROM {}").format(counts, sql.Identifier(table)).as_string(None))
            for (column, _), found in zip(columns, cursor.fetchone(), strict=True):
                if found:
                    yield f"{table}.{column}", found


def _count(column: str, kind: str, needles: Needles) -> sql.Composed:
    return sql.SQL("count(*) FILTER (WHERE {})").format(_holds(sql.Identifier(column), kind, needles))


def _holds(column: sql.Identifier, kind: str, needles: Needles) -> sql.Composable:
    if kind == "uuid":
        return sql.SQL("{} = {}::uuid").format(column, sql.Literal(str(needles.id)))
    if kind == "_uuid":
        return sql.SQL("{}::uuid = ANY({})").format(sql.Literal(str(needles.id)), column)
    if kind == "bytea":
        return _any(
            sql.SQL("position({} IN {}) > 0").format(sql.Literal(word.encode()), column) for word in needles.words
        )
    return _any(
        sql.SQL("position({} IN lower({}::text)) > 0").format(sql.Literal(word), column) for word in needles.words
    )


def _any(tests: Iterator[sql.Composed]) -> sql.Composed:
    each: Sequence[sql.Composed] = list(tests)
    return sql.SQL("({})").format(sql.SQL(" OR ").join(each))
