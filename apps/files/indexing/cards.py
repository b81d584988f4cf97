"""Cards: the passage by which a table is found, and from which a model can write SQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.files.indexing.passages import MAX_HEADING_CHARS, Draft
from apps.files.indexing.tokens import estimate_tokens
from apps.files.models import Table

_MAX_CHARS = 3_000


def place(table: Table) -> str:
    """Where the table stands, for a person: its sheet and rows, or the page of a document."""
    if table.page is not None:
        return f"page {table.page}"
    rows = f"rows {table.first_row:,} to {table.last_row:,}"
    return f"sheet {table.sheet}, {rows}" if table.sheet else rows


def column_line(column: Mapping[str, Any]) -> str:
    """One column: what SQL calls it, its header where that is another, its type, its values."""
    label = f' "{column["label"]}"' if column["label"].casefold() not in ("", column["name"]) else ""
    unit = f" in {column['unit']}" if column["unit"] else ""
    text = f"- {column['name']}{label}: {column['type']}{unit}"
    if column["type"] != "text" and column["least"]:
        text += f", {column['least']} to {column['most']}"
    if column["type"] == "text" or column["distinct"] <= len(column["samples"]):
        text += f", {column['distinct']} different" if column["distinct"] > len(column["samples"]) else ""
        text += ", such as " + "; ".join(column["samples"]) if column["samples"] else ""
    return text + (f", {column['empty']} empty" if column["empty"] else "")


def card_text(table: Table) -> str:
    """The description of a table, of at most 3,000 characters."""
    title = f" {table.title}." if table.title else ""
    lines = [f"Table {table.name} ({place(table)}): {table.rows:,} rows, {len(table.columns)} columns.{title}"]
    lines += [column_line(column) for column in table.columns]
    lines[1:1] = table.notes
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > _MAX_CHARS:
            kept.append(f"... and {len(lines) - len(kept)} more lines")
            break
        kept.append(line)
    return "\n".join(kept)


def card_of(file_name: str, table: Table) -> Draft:
    heading = " > ".join(part for part in (file_name, table.sheet) if part)[:MAX_HEADING_CHARS]
    text = card_text(table)
    return Draft(heading, text, (), estimate_tokens(text))
