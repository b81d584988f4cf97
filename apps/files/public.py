"""What other apps may use of files: summaries, retrieval, the data block and citations made from it, and what makes any
text findable the way files are."""

from __future__ import annotations

from collections.abc import Sequence

from apps.accounts.types import Actor
from apps.files.indexing import vectors_version
from apps.files.indexing.embedder import EmbedderUnavailable
from apps.files.indexing.embedding import as_literal
from apps.files.indexing.lexical import CONFIGURATION as SEARCH_CONFIGURATION
from apps.files.indexing.lexical import prepare
from apps.files.indexing.vectors import embed_passages, embed_question
from apps.files.pipeline.freshness import freshness_counts, recent_freshness
from apps.files.pipeline.removal import add_store
from apps.files.retrieval import (
    GivenSources,
    asearch_passages,
    cite,
    fit_found,
    fit_sources,
    search_passages,
    survey_note,
    survey_view,
)
from apps.files.retrieval.context import as_data
from apps.files.retrieval.fusion import Candidate, fuse
from apps.files.selectors import summarize_files, summarize_known_files
from apps.files.tables.queries import QueryResult, TableCard, cards_of, query_table
from apps.files.types import Box, FileSummary, LeftOut, PassageHit, SearchResult, UnreadyFile

__all__ = [
    "SEARCH_CONFIGURATION",
    "Box",
    "Candidate",
    "EmbedderUnavailable",
    "FileSummary",
    "GivenSources",
    "LeftOut",
    "PassageHit",
    "QueryResult",
    "SearchResult",
    "TableCard",
    "UnreadyFile",
    "add_store",
    "as_data",
    "asearch_passages",
    "cards_of",
    "cite",
    "fit_found",
    "fit_sources",
    "freshness_counts",
    "fuse",
    "prepare",
    "query_table",
    "recent_freshness",
    "search_passages",
    "sources_block",
    "summarize_files",
    "summarize_known_files",
    "survey_note",
    "survey_view",
    "vector_of",
    "vectors_of",
    "vectors_version",
]  # fmt: skip


def vector_of(actor: Actor, question: str) -> str | None:
    """A question's vector of the present version as pgvector reads it; None while nothing makes one."""
    try:
        return as_literal(embed_question(question, user_id=actor.user_id, organization_id=actor.organization_id))
    except EmbedderUnavailable:
        return None


def vectors_of(actor: Actor, texts: Sequence[str]) -> list[str]:
    """Vectors of a person's texts as pgvector reads them, in their order. Nobody waits. Raises EmbedderUnavailable."""
    made = embed_passages(texts, user_id=actor.user_id, organization_id=actor.organization_id)
    return [as_literal(vector) for vector in made]


def sources_block(hits: Sequence[PassageHit], *, max_tokens: int) -> str:
    """The data block of as many of the passages as fit. `fit_sources` also says which those were."""
    return fit_sources(hits, max_tokens=max_tokens).block
