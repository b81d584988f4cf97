"""Publishing a file's tables: Parquet beside its object, a row and a card to be found by for each.

Sheets and delimited text become tables before their pages are read, so that half a million rows can be asked at once;
tables of documents are cut out of the pages behind that. Whatever goes wrong costs the tables alone, never the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.core.errors import NotFound
from apps.core.scratch import scratch
from apps.files import indexing
from apps.files.extraction import ExtractionFailed, Reason
from apps.files.extraction.tabular.run import FOUND, make_tables
from apps.files.extraction.tabular.types import TableRecord
from apps.files.indexing.cards import card_of
from apps.files.models import File, FileState, Page, PageState, Table
from apps.files.pipeline.leases import Claim, LeaseLost, fence
from apps.files.pipeline.removal import prefix
from apps.files.storage import storage

SHEETS = ("sheet", "csv")
_WITHOUT = (*SHEETS, "image", "code", "text")
PARQUET = "application/vnd.apache.parquet"
LEAST_ROWS, LEAST_COLUMNS = 20, 2
"""A smaller table of a document stands whole in its passages."""
MAX_FOUND_ROWS = 200_000
_RULE = re.compile(r"[|:\s-]+")
_TOO_LARGE = (Reason.TIMED_OUT, Reason.OUT_OF_MEMORY, Reason.TOO_LARGE)


def key(file: File, number: int) -> str:
    return f"{prefix(file)}/tables/{number}.parquet"


def publish_sheets(held: Claim, file: File, path: Path) -> tuple[str, ...]:
    """The tables of a spreadsheet or of delimited text, once. Returns notices. Raises LeaseLost."""
    if file.kind not in SHEETS or Table.objects.filter(file=file).exists():
        return ()
    return _publish(held, file, path, file.kind)


def publish_found(held: Claim, file: File) -> tuple[str, ...]:
    """The large tables on the pages of a document, once. Returns notices. Raises LeaseLost."""
    if file.kind in _WITHOUT or Table.objects.filter(file=file).exists():
        return ()
    with scratch("tables") as folder:
        path = folder / "found.jsonl"
        with path.open("w", encoding="utf-8") as found:
            for table in found_tables(file):
                found.write(json.dumps(table) + "\n")
        return _publish(held, file, path, FOUND) if path.stat().st_size else ()


def _publish(held: Claim, file: File, path: Path, kind: str) -> tuple[str, ...]:
    records: list[TableRecord] = []

    def keep(record: TableRecord, parquet: bytes) -> None:
        records.append(record)
        storage().put(key(file, len(records)), parquet, content_type=PARQUET)

    try:
        whole = make_tables(path, kind, name=Path(file.name).stem, on_table=keep)
        with fence(held):
            rows = [_row(file, number, record) for number, record in enumerate(records, start=1)]
            Table.objects.bulk_create(rows)
            indexing.index_cards(file, [card_of(file.name, row) for row in rows])
    except ExtractionFailed as failed:
        _forget(file)
        return ("tables_too_large" if failed.reason in _TOO_LARGE else "tables_unread",)
    except LeaseLost:
        if File.objects.filter(id=file.id, state=FileState.DELETED).exists():
            _forget(file)  # the purge may have been here already
        raise
    return () if whole else ("tables_cut",)


def numbers(file_id: UUID) -> list[int]:
    return list(Table.objects.filter(file_id=file_id).order_by("number").values_list("number", flat=True))


def copy_objects(file: File) -> list[int]:
    """Copy the Parquet of the earlier file with this content; the numbers of its tables. Repeatable."""
    if file.same_as_id is None:
        return []
    source = File.objects.filter(id=file.same_as_id, owner_id=file.owner_id).first()
    if source is None:
        return []
    copied = []
    for number in numbers(source.id):
        try:
            parquet = b"".join(storage().read(key(source, number)))
        except NotFound:
            return []  # removed meanwhile
        storage().put(key(file, number), parquet, content_type=PARQUET)
        copied.append(number)
    return copied


def _forget(file: File) -> None:
    storage().delete_prefix(f"{prefix(file)}/tables")


def _row(file: File, number: int, record: TableRecord) -> Table:
    value = asdict(record)
    return Table(file=file, organization_id=file.organization_id, number=number, **value)


# Tables of documents


def found_tables(file: File) -> Iterator[dict[str, Any]]:
    """Tables of the file's pages that are large enough, those that go on over pages joined."""
    rows = 0
    for table in _joined(_pages(file)):
        width = _usual_width(table["rows"])
        if len(table["rows"]) > LEAST_ROWS and width >= LEAST_COLUMNS:
            rows += len(table["rows"])
            if rows > MAX_FOUND_ROWS:
                return
            yield table


def _pages(file: File) -> Iterator[tuple[int, list[Mapping[str, Any]], str]]:
    pages = Page.objects.filter(file=file, state=PageState.READY, elements__contains=[{"category": "Table"}])
    for page in pages.order_by("number").only("number", "elements", "headings").iterator(chunk_size=50):
        yield page.number, page.elements, str(page.headings[-1][1]) if page.headings else ""


def _joined(pages: Iterable[tuple[int, list[Mapping[str, Any]], str]]) -> Iterator[dict[str, Any]]:
    last: dict[str, Any] | None = None
    for number, elements, above in pages:
        beginning, heading = last is not None and last["ends"] == number - 1, above
        for element in elements:
            if element["category"] in ("Header", "Footer", "PageNumber"):
                continue
            if element["category"] != "Table":
                heading = element["text"] if element["category"] == "Title" else heading
                beginning = False
                if last is not None:
                    last["ends"] = 0
                continue
            rows = cells_of(element["text"])
            if beginning and last is not None and _usual_width(rows) == _usual_width(last["rows"]):
                last["rows"] += rows[1:] if rows[0] == last["rows"][0] else rows
            else:
                if last is not None:
                    yield last
                last = {"name": heading[:200], "page": number, "rows": rows}
            last["ends"] = number
            beginning = True  # a long table of a kind without pages is several elements
    if last is not None:
        yield last


def cells_of(text: str) -> list[list[str]]:
    """Rows of a table in text form; the marks and rules that Markdown writes around cells are left out."""
    rows = []
    for line in map(str.strip, text.split("\n")):
        bare = line
        if line.startswith("|") and line.endswith("|") and len(line) > 1:
            if _RULE.fullmatch(line):
                continue
            bare = line[1:-1]
        rows.append([cell.strip() for cell in bare.split("|")])
    return rows or [[""]]


def _usual_width(rows: list[list[str]]) -> int:
    widths = [len(row) for row in rows[:200]]
    return max(set(widths), key=widths.count)
