"""What other apps may use of files: summaries, retrieval, and the data block and citations made from it."""

from __future__ import annotations

from collections.abc import Sequence

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
from apps.files.selectors import summarize_files, summarize_known_files
from apps.files.types import Box, FileSummary, PassageHit, SearchResult, UnreadyFile

__all__ = [
    "Box", "FileSummary", "GivenSources", "PassageHit", "SearchResult", "UnreadyFile", "add_store",
    "asearch_passages", "cite",
    "fit_found", "fit_sources", "search_passages", "sources_block", "summarize_files", "summarize_known_files",
    "survey_note", "survey_view",
]  # fmt: skip


def sources_block(hits: Sequence[PassageHit], *, max_tokens: int) -> str:
    """The data block of as many of the passages as fit. `fit_sources` also says which those were."""
    return fit_sources(hits, max_tokens=max_tokens).block
