"""What the child says of tables and of answers, for both sides. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

ColumnType = Literal["integer", "decimal", "boolean", "date", "timestamp", "time", "text"]
Cell = str | int | float | bool | None

MAX_TABLES = 100
MAX_COLUMNS = 500
NAME_CHARS = 63
LABEL_CHARS = 200
SHOWN_CHARS = 80
ROW = "_row"
"""The column of every table that holds the number of the row in its sheet. `SELECT *` leaves it out."""

_STRICT: Mapping[str, Any] = {"strict": True, "extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True, slots=True)
class TableColumn:
    """`name` is what SQL calls it, `label` what the header says. `least` and `most` are shown values, cut short.

    `raw` names the text column that holds the cells as written, where some of them are no values of `type`; `unit` is
    the sign that was written with each number.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    name: str
    label: str
    type: ColumnType
    empty: int = 0
    distinct: int = 0
    least: str = ""
    most: str = ""
    samples: tuple[str, ...] = ()
    unit: str = ""
    raw: str = ""
    unread: int = 0


@dataclass(frozen=True, slots=True)
class TableRecord:
    """One table; numbers of rows and columns are those of the sheet, from 1. `size` bytes of Parquet follow it."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    name: str
    sheet: str
    title: str
    header_row: int | None
    first_row: int
    last_row: int
    first_column: int
    last_column: int
    rows: int
    columns: tuple[TableColumn, ...]
    notes: tuple[str, ...]
    size: int
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of one question. `types` are the engine's own names; `truncated`: there were more, or longer cells."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    truncated: bool
