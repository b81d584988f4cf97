"""What of its files an answer cannot rest on: for the model in sentences, for readers in the form of events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.files.public import LeftOut, UnreadyFile, as_data

_NAMED_FILES, _NAMED_RANGES = 5, 12


def unready_note(files: Sequence[UnreadyFile]) -> str:
    """Tells the model, in sentences, which files and pages it could not be given, and why."""
    waiting, locked, unreadable = list[str](), list[str](), list[str]()
    for file in files:
        name = as_data(file.file_name)
        if file.pages_pending:
            waiting.append(f"{page_ranges(file.pages_pending)} of {name}")
        if file.pages_failed:
            unreadable.append(f"{page_ranges(file.pages_failed)} of {name}")
        if file.pages_pending or file.pages_failed:
            continue
        if file.state == "needs_password":
            locked.append(name)
        elif file.state == "failed":
            unreadable.append(f"{name} ({as_data(file.reason).rstrip('.')})" if file.reason else name)
        else:
            waiting.append(f"all pages of {name}")
    said = (("Not read yet", waiting), ("Not opened without its password", locked), ("Could not be read", unreadable))
    notes = [f"{what}: {_first(which)}." for what, which in said if which]
    return f"\n\n({' '.join(notes)})" if notes else ""


def left_out_note(files: Sequence[LeftOut]) -> str:
    """Tells the model, in sentences, which files were not read whole."""
    notes = [as_data(sentence) for file in files[:_NAMED_FILES] for sentence in file.sentences]
    if (more := len(files) - _NAMED_FILES) > 0:
        notes.append(f"{more} more {'file was' if more == 1 else 'files were'} not read whole.")
    return f"\n\n({' '.join(notes)})" if notes else ""


def _first(which: Sequence[str]) -> str:
    more = len(which) - _NAMED_FILES
    return ", ".join(which[:_NAMED_FILES]) + (f" and {more} more" if more > 0 else "")


def page_ranges(numbers: Sequence[int]) -> str:
    """[7, 8, 9, 12] as "pages 7-9, 12"; the last of a long list are left out."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number <= ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_NAMED_RANGES]]
    more = " and others" if len(ranges) > _NAMED_RANGES else ""
    return f"{'page' if len(numbers) == 1 else 'pages'} {', '.join(words)}{more}"


def unready_view(file: UnreadyFile) -> dict[str, Any]:
    return {
        "file_id": str(file.file_id),
        "file_name": file.file_name,
        "pages_pending": list(file.pages_pending),
        "pages_failed": list(file.pages_failed),
        "state": file.state,
        "reason": file.reason,
    }


def left_out_view(file: LeftOut) -> dict[str, Any]:
    return {"file_id": str(file.file_id), "file_name": file.file_name, "sentences": file.sentences}
