"""What an engine has against a question, as a sentence that helps to ask it better. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from apps.core.errors import AppError
from apps.files.extraction import ExtractionFailed, Reason

_NO_COLUMN = re.compile(r'(?:Referenced column "([^"]+)" (?:was )?not found|does not have a column named "([^"]+)")')
_LINE = re.compile(r"\n\nLINE \d+:.*", re.DOTALL)
_KIND = re.compile(r"^[A-Z][A-Za-z -]+ Error: ")
_MOST_CHARS = 500


class QueryFailed(AppError):
    """The SQL was refused, or could not be run; `reason` says which: refused, invalid, timed_out, out_of_memory."""

    code, status, title = "query_failed", 422, "The question cannot be answered"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, reason=reason)
        self.reason = reason


_SENTENCES: Mapping[Reason, str] = {
    Reason.TIMED_OUT: "The question took too long and was stopped. Ask for fewer rows, or join by equal values.",
    Reason.OUT_OF_MEMORY: "The question needed too much memory and was stopped. Group or filter before that.",
    Reason.CRASHED: "The question needed more than is allowed and was stopped.",
    Reason.TOO_LARGE: "The answer is too large. Ask for fewer rows or columns.",
}


def stopped(failed: ExtractionFailed) -> QueryFailed:
    reason = failed.reason if failed.reason in _SENTENCES else Reason.CRASHED
    return QueryFailed(reason.value, _SENTENCES[reason])


def refused(text: str, columns: Sequence[Mapping[str, Any]]) -> QueryFailed:
    """`text` is the engine's; `columns` are those of the tables that were asked."""
    found = _NO_COLUMN.search(text)
    if found is None:
        plain = re.sub(r"\s+", " ", _KIND.sub("", _LINE.sub("", text))).strip()
        return QueryFailed("invalid", plain[:_MOST_CHARS] or "The SQL cannot be run.")
    wanted = found[1] or found[2]
    close = similar(wanted, columns)
    meant = f" Did you mean {' or '.join(close)}?" if close else f" There are: {_all(columns)}."
    return QueryFailed("invalid", f"There is no column {wanted}.{meant}")


def similar(wanted: str, columns: Sequence[Mapping[str, Any]]) -> list[str]:
    """Up to three columns whose name or header is like what was asked for, the most alike first."""
    names = {str(column[key]).casefold(): str(column["name"]) for column in columns for key in ("label", "name")}
    close = difflib.get_close_matches(wanted.casefold(), names, n=3, cutoff=0.65)
    return list(dict.fromkeys(names[name] for name in close))


def _all(columns: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(str(column["name"]) for column in columns[:30])
