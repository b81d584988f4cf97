"""Search in a part of a large index: what the vector index loses against comparing every passage, and the time.

The passages are those of a stored set twenty-odd times over, their vectors moved a little, with made-up words.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from apps.accounts.types import Actor
from apps.files.indexing.embedder import VERSION
from apps.files.indexing.embedding import as_literal
from apps.files.retrieval import sql
from apps.files.retrieval.search import QuestionVector, _Question, _Search
from tests.bench.retrieval.stored import StoredSet
from tests.factories.passages import make_file

PASSAGES = 100_000
FILES = 100
LEXEMES = 24
NOISE = 0.02
"""Of each number of a vector, which are 0.05 on average: near its origin, and still nobody's copy."""
QUESTIONS = 100
SHARES = {"scope": 0.02, "scope_large": 0.2}
"""Of the passages that are searched: below `EXACT_BELOW`, and above it."""

_DROP = "DROP INDEX files_passage_hnsw"
_DEFINITION = "SELECT pg_get_indexdef('files_passage_hnsw'::regclass)"
_PASSAGES = """
COPY files_passage (id, organization_id, owner_id, file_id, page_number, ordinal, heading, text, boxes, source,
    token_count, length, embedding, embedding_version) FROM STDIN
"""
# Some words are in every second passage and most in few (Zipf's law).
_POSTINGS = f"""
INSERT INTO files_posting (file_id, passage_id, lexeme, organization_id, tf)
SELECT file_id, id, 'word' || floor(exp(random() * ln(20000)))::int + 0 * n, organization_id, 1
FROM files_passage, generate_series(1, {LEXEMES}) AS n WHERE organization_id = %s
ON CONFLICT DO NOTHING
"""


def _fill(actor: Actor, vectors: np.ndarray) -> list[UUID]:
    """All passages, with the vector index built once instead of row by row."""
    chance = np.random.default_rng(5)
    files = [make_file(actor, name=f"{number}.txt", pages=1).id for number in range(FILES)]
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = 0")  # the copying takes as long as the machine lets it
        cursor.execute(_DEFINITION)
        (definition,) = cursor.fetchone()
        cursor.execute(_DROP)
        with cursor.copy(_PASSAGES) as copy:
            for number in range(PASSAGES):
                vector = vectors[number % len(vectors)] + chance.normal(0, NOISE, vectors.shape[1])
                literal = as_literal(vector / np.linalg.norm(vector))
                copy.write_row(
                    (UUID(int=(7 << 96) + number), actor.organization_id, actor.user_id, files[number % FILES], 1,
                     number // FILES, "", f"text {number}", "[]", "digital", 1, LEXEMES, literal, VERSION)
                )  # fmt: skip
        cursor.execute(_POSTINGS, [actor.organization_id])
        cursor.execute("SET maintenance_work_mem = '1GB'")
        cursor.execute(definition)
        cursor.execute("VACUUM (ANALYZE) files_passage, files_posting")
    return files


def _nearest(search: _Search, depth: int) -> set[UUID]:
    """The truly nearest, by comparing all."""
    rows = search.rows(f"WITH {sql._SCOPE}, {sql.nearest((None,))} SELECT id FROM vectors", depth=depth)
    return {row[0] for row in rows}


def _ask(actor: Actor, files: Sequence[UUID], vector: str, words: str) -> tuple[float, float]:
    """Recall of the ten nearest among the candidates, and milliseconds."""
    search = _Search(actor, files, _Question(words, (QuestionVector(VERSION, 384, vector),)))
    began = time.perf_counter()
    with transaction.atomic():
        search.ranked(8)
    took = (time.perf_counter() - began) * 1000
    with transaction.atomic():
        found = [found for found in search.candidates()[0] if found.cosine is not None]
    best = {found.passage_id for found in sorted(found, key=lambda one: -(one.cosine or 0))[:10]}
    return len(best & _nearest(search, 10)) / 10, took


def measure(stored: StoredSet) -> dict[str, float]:
    """`_recall10` and `_p95_ms` of each share of `SHARES`, asked with the set's own questions' vectors."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT embedding::text FROM files_passage WHERE file_id = ANY(%s)", [stored.files])
        vectors = np.array([np.fromstring(row[0][1:-1], sep=",") for row in cursor.fetchall()])
    files = _fill(stored.actor, vectors)
    chance = np.random.default_rng(6)
    figures = {}
    for name, share in SHARES.items():
        scope = files[: int(FILES * share)]
        asked = []
        for question in stored.judged.questions[:QUESTIONS]:
            words = " ".join(f"word{int(word)}" for word in np.exp(chance.random(12) * np.log(20_000)))
            asked.append(_ask(stored.actor, scope, stored.vector_of(question.text), words))
        times = sorted(took for _, took in asked[10:])
        figures[f"{name}_recall10"] = sum(found for found, _ in asked) / len(asked)
        figures[f"{name}_p95_ms"] = times[int(0.95 * len(times))]
    return figures
