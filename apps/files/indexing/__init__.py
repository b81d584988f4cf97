"""What makes pages findable: passages, keyword postings, vectors.

`index_page` publishes a page to keyword search, `embed_file` adds vectors afterwards. Both may be run again at
any time. Which page is indexed when is decided by `apps.files.pipeline`; ranking is `apps.files.retrieval`'s.
"""

from __future__ import annotations

from apps.files.indexing.embedding import embed_file, embed_some, unembedded
from apps.files.indexing.pages import index_cards, index_page
from apps.files.indexing.vectors import vectors_version

__all__ = ["embed_file", "embed_some", "index_cards", "index_page", "unembedded", "vectors_version"]
