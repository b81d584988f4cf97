"""A judged set in the database as the product keeps it, and the product's candidates for its questions."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection, transaction

from apps.accounts.types import Actor
from apps.files.indexing import index_page
from apps.files.indexing.embedder import VERSION, embed_passages, embed_question
from apps.files.indexing.embedding import _store, as_literal, searched_text, unembedded
from apps.files.models import Page, PageState, Passage
from apps.files.retrieval.fusion import Candidate
from apps.files.retrieval.search import QuestionVector, _Question, _Search
from tests.bench.retrieval.sets import JudgedSet, Source, Span
from tests.factories.accounts import make_actor
from tests.factories.passages import make_file

CACHE = Path("build/cache")


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """Where a passage stands: the unit it is of, or the file's number and the characters it covers."""

    text: str
    unit: str
    file: int
    span: Span


class StoredSet:
    """A set in an account of its own. Indexing it is timed: `pages_per_cpu_s`."""

    def __init__(self, judged: JudgedSet) -> None:
        self.judged = judged
        self.actor: Actor = make_actor()
        self.files: list[UUID] = []
        pages = [page for source in judged.sources for page in self._add(source)]
        began = _cpu_s()
        for page in pages:
            index_page(page)
        self.pages_per_cpu_s = len(pages) / max(_cpu_s() - began, 1e-9)
        _embed(self.files, judged.name)
        with connection.cursor() as cursor:
            # What autovacuum does within a minute; index-only scans depend on it.
            cursor.execute("VACUUM (ANALYZE) files_passage, files_posting, files_page")
        self.passages = self._passages()

    def _add(self, source: Source) -> list[UUID]:
        file = make_file(self.actor, name=source.name, pages=len(source.pages))
        self.files.append(file.id)
        rows = [
            Page(
                file=file,
                organization_id=file.organization_id,
                number=page.number,
                state=PageState.READY,
                source=page.source or "digital",
                text=page.text,
                elements=[element.as_json() for element in page.elements],
                headings=[[heading.level, heading.text] for heading in page.headings],
            )
            for page in source.pages
        ]
        return [row.id for row in Page.objects.bulk_create(rows)]

    def _passages(self) -> dict[UUID, StoredPassage]:
        found: dict[UUID, StoredPassage] = {}
        for number, (file, source) in enumerate(zip(self.files, self.judged.sources, strict=True)):
            at = 0
            for row in Passage.objects.filter(file_id=file).order_by("page_number", "ordinal"):
                end = at + sum(not char.isspace() for char in row.text)
                unit = source.units[row.page_number - 1] if source.units else ""
                found[row.id] = StoredPassage(row.text, unit, number, (at, end))
                at = end
        return found

    def vector_of(self, question: str) -> str:
        """The question's vector as the database reads it."""
        return as_literal(embed_question(question))

    def candidates(self, question: str) -> list[Candidate]:
        with transaction.atomic():
            asked = _Question(question, (QuestionVector(VERSION, 384, self.vector_of(question)),))
            found, _ = _Search(self.actor, self.files, asked).candidates()
        return found


def _embed(files: Sequence[UUID], name: str) -> None:
    """As `embed_file` does, with what an earlier run of this program made taken from disk."""
    kept = CACHE / f"vectors-{name}-{VERSION}.npz"
    known: dict[str, Any] = dict(np.load(kept)) if kept.exists() else {}
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = 0
    for file in files:
        for row in unembedded(file).select_related("file"):
            text = searched_text(row)
            key = hashlib.sha256(text.encode()).hexdigest()[:20]
            if key not in known:
                (known[key],) = embed_passages([text])
                fresh += 1
                if fresh % 500 == 0:
                    np.savez(kept, **known)
            _store(file, VERSION, [row.id], [known[key]])
    if fresh:
        np.savez(kept, **known)


def _cpu_s() -> float:
    """CPU of this process and of the database's backend for it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    backend = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + backend
