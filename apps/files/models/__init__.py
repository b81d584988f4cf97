"""Rows of files: what is read of them (`reading`, `tables`), `summaries`, and what else happens (`lifecycle`)."""

from __future__ import annotations

from apps.files.models.lifecycle import DeletionReceipt, Sync, SyncItem, VectorVersion
from apps.files.models.reading import (
    ENDED,
    File,
    FileStage,
    FileState,
    Page,
    PageState,
    Passage,
    Posting,
    Searchable,
    StageName,
    StageState,
    UploadPart,
)
from apps.files.models.summaries import Summary, SummarySection, SummaryState
from apps.files.models.tables import Table

__all__ = [
    "ENDED",
    "DeletionReceipt",
    "File",
    "FileStage",
    "FileState",
    "Page",
    "PageState",
    "Passage",
    "Posting",
    "Searchable",
    "StageName",
    "StageState",
    "Summary",
    "SummarySection",
    "SummaryState",
    "Sync",
    "SyncItem",
    "Table",
    "UploadPart",
    "VectorVersion",
]
