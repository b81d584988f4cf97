"""Looks for what is left of a file in every store, without believing any list of what there should be.

Tables and columns come from Postgres's own catalogue, so a new table is looked at from its first day; object storage,
Valkey and the state folder are read from end to end. Nothing here knows how a file is removed. What may stay by
decision is named in `KEPT` with the reason, and is reported as kept.

`markers` are words of the file's content: with them content is found that no longer carries the file's id. Numbers
made of text (vectors, token ids) cannot be searched for words, and compressed originals only by the id in their key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.files.lifecycle.places import database, disk, objects, valkeys
from apps.files.lifecycle.places.needles import Needles

KEPT: dict[str, str] = {
    "files_file.id": "tombstone: conversations refer to it",
    "files_deletion_receipt.id": "receipt of the deletion",
    "files_sync_item.current_id": "which file an item outside became, so that it is not fetched again",
    "files_sync_item.external_id": "the name of an item that is still there outside",
    "conversations_message.file_ids": "the conversation's own: which files its questions named",
    "conversations_message.text": "the conversation's own words",
    "conversations_message.notices": "the conversation's own: pages that were not ready",
    "conversations_message.error": "the conversation's own words",
    "conversations_turnposting.lexeme": "the conversation's own words",
    "conversations_branchsummary.text": "the conversation's own words, summed up",
    "conversations_conversation.title": "the conversation's own words",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`count` rows, keys or files at one place of a store. `kept`: why they may be there; empty for a leftover."""

    store: str
    place: str
    count: int
    kept: str = ""


def scan(file_id: UUID, markers: Sequence[str] = ()) -> list[Finding]:
    """What is found of the file, leftovers first. Reads every store from end to end: minutes on a large one."""
    needles = Needles.of(file_id, markers)
    findings = [*_database(needles), *_objects(needles), *_valkey(needles), *_disk(needles)]
    return sorted(findings, key=lambda finding: bool(finding.kept))


def leftovers(file_id: UUID, markers: Sequence[str] = ()) -> list[Finding]:
    return [finding for finding in scan(file_id, markers) if not finding.kept]


def _database(needles: Needles) -> Iterator[Finding]:
    for place, count in database.search(needles):
        yield Finding("database", place, count, KEPT.get(place, ""))


def _objects(needles: Needles) -> Iterator[Finding]:
    for place, count in objects.search(needles):
        yield Finding("objects", place, count)


def _valkey(needles: Needles) -> Iterator[Finding]:
    for place, count, kept in valkeys.search(needles):
        yield Finding("valkey", place, count, kept)


def _disk(needles: Needles) -> Iterator[Finding]:
    for place, count, kept in disk.search(needles):
        yield Finding("disk", place, count, kept)
