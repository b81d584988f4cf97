"""Finding the passages a question needs, and holding an answer to the passages it was given.

`search_passages` (`asearch_passages` in async code) ranks inside SQL that already knows who is asking. `context` and
`citations` are pure. Making passages findable is `apps.files.indexing`'s part; asking the model is the caller's.
"""

from __future__ import annotations

from apps.files.retrieval.citations import cite
from apps.files.retrieval.context import GivenSources, fit_sources
from apps.files.retrieval.search import asearch_passages, search_passages
from apps.files.retrieval.survey import fit_found, survey_note, survey_view

__all__ = [
    "GivenSources", "asearch_passages", "cite", "fit_found", "fit_sources", "search_passages", "survey_note",
    "survey_view",
]  # fmt: skip
