"""Finding the passages a question needs, and holding an answer to the passages it was given.

`search_passages` ranks inside SQL that already knows who is asking. `context` and `citations` are pure. Making
passages findable is `apps.files.indexing`'s part; asking the model is the caller's.
"""

from __future__ import annotations

from apps.files.retrieval.citations import cite
from apps.files.retrieval.context import GivenSources, fit_sources
from apps.files.retrieval.search import search_passages

__all__ = ["GivenSources", "cite", "fit_sources", "search_passages"]
