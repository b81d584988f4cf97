"""Rows of files: what is read of them (`reading`) and what happens to them besides (`lifecycle`)."""

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
    "Sync",
    "SyncItem",
    "UploadPart",
    "VectorVersion",
]
