"""What the cells of a column are: a candidate is a pattern that a cell must match whole, and how SQL converts it.

The patterns mean the same to Python, which chooses by a sample, and to DuckDB, which then reads every cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from apps.files.extraction.tabular.types import ColumnType

TYPED_SHARE = 0.9
"""Of the cells that are not empty, so many must be of a type for the column to have it."""

_DAY, _CLOCK = r"\d{1,2}", r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?"
_ISO = r"\d{4}-\d{2}-\d{2}"
_WHOLE = r"(?:0|[1-9]\d*)"
_ID = re.compile(r"-?0\d+|\+\d+|-?\d{19,}")
"""Digits that are a name rather than a number: leading zeros would be lost."""
UNITS = ("$", "€", "£", "¥", "%")


@dataclass(frozen=True)
class Candidate:
    """`take` is SQL with `{0}` for the trimmed cell. `plain` is SQL of a number's usual form, where it is a number."""

    type: ColumnType
    pattern: str
    take: str
    plain: str = ""
    unit: str = field(default="")

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.ASCII)

    def matches(self, cells: Iterable[str]) -> int:
        return sum(self._compiled.fullmatch(cell) is not None for cell in cells)


def _number(body: str, plain: str, unit: str) -> Candidate:
    if not unit:
        return Candidate("decimal", f"-?{body}", plain, plain)
    sign = "\\" + unit if unit == "$" else unit
    pattern = f"-?{body} ?{unit}" if unit == "%" else f"-?(?:{sign} ?{body}|{body} ?{sign})"
    bare = f"trim(replace({{0}}, '{unit}', ''))"
    plain = plain.replace("{0}", bare)
    return Candidate("decimal", pattern, plain, plain, unit)


_NUMBERS = (
    (rf"{_WHOLE}(?:\.\d+)?(?:[eE][+-]?\d{{1,3}})?", "{0}"),
    (r"(?:0|[1-9]\d{0,2}(?:,\d{3})*|[1-9]\d*)(?:\.\d+)?", "replace({0}, ',', '')"),
    (r"(?:0|[1-9]\d{0,2}(?:\.\d{3})*|[1-9]\d*)(?:,\d+)?", "replace(replace({0}, '.', ''), ',', '.')"),
    (
        r"(?:0|[1-9]\d{0,2}(?:[ '\x{a0}\x{202f}’]\d{3})*|[1-9]\d*)(?:[.,]\d+)?",
        r"replace(regexp_replace({0}, '[ ''\x{a0}\x{202f}’]', '', 'g'), ',', '.')",
    ),
)
_POINT, _THOUSANDS, _COMMA, _SPACED = range(4)


def _python(pattern: str) -> str:
    return pattern.replace(r"\x{a0}", "\u00a0").replace(r"\x{202f}", "\u202f")


def _numbers(unit: str) -> list[Candidate]:
    return [_number(_python(body), _python(plain), unit) for body, plain in _NUMBERS]


def _date(pattern: str, *forms: str) -> Candidate:
    return Candidate("date", pattern, f"CAST(try_strptime({{0}}, {list(forms)!r}) AS DATE)")


def _moment(pattern: str, *forms: str) -> Candidate:
    timed = [f"{form} {clock}" for form in forms for clock in ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f")]
    return Candidate("timestamp", rf"{pattern} {_CLOCK}", f"try_strptime({{0}}, {timed!r})")


_NAMED = r"[A-Za-z]{3,9}"
_DATES = (
    Candidate("date", _ISO, "TRY_CAST({0} AS DATE)"),
    Candidate("timestamp", rf"{_ISO}(?:[ T]{_CLOCK})?", "TRY_CAST({0} AS TIMESTAMP)"),
    Candidate("timestamp", rf"{_ISO}[ T]{_CLOCK}(?:Z|\+00:?00)", "TRY_CAST({0}[:19] AS TIMESTAMP)", unit="UTC"),
    _date(r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    _date(rf"{_DAY}\.{_DAY}\.\d{{4}}", "%d.%m.%Y"),
    _moment(rf"{_DAY}\.{_DAY}\.\d{{4}}", "%d.%m.%Y"),
    _date(rf"{_DAY}[ -]{_NAMED}[ -]\d{{4}}", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%d-%B-%Y"),
    _date(rf"{_NAMED} {_DAY}, \d{{4}}", "%b %d, %Y", "%B %d, %Y"),
    Candidate("time", _CLOCK, "TRY_CAST({0} AS TIME)"),
)
_SLASHED = rf"({_DAY})([/-])({_DAY})[/-]\d{{4}}(?: {_CLOCK})?"
_TRUTH = Candidate("boolean", "(?i:true|false)", "TRY_CAST({0} AS BOOLEAN)")
_INTEGER = Candidate("integer", r"-?(?:0|[1-9]\d{0,17})", "TRY_CAST({0} AS BIGINT)", "{0}")


def _slashed(cells: Sequence[str]) -> list[Candidate]:
    """3/4/2024 is the third of April or the fourth of March: only a number above twelve tells."""
    found = [match for cell in cells if (match := re.fullmatch(_SLASHED, cell))]
    first = any(int(match[1]) > 12 for match in found)
    second = any(int(match[3]) > 12 for match in found)
    if not found or first == second:
        return []
    mark = found[0][2]
    form = f"%d{mark}%m{mark}%Y" if first else f"%m{mark}%d{mark}%Y"
    pattern = rf"{_DAY}{mark}{_DAY}{mark}\d{{4}}"
    return [_date(pattern, form), _moment(pattern, form)]


def _impossible(cells: Sequence[str], semicolons: bool) -> set[int]:
    """Forms of numbers that these cells speak against: 1,234 and 1.234 are whole or not by what stands around them."""
    ruled: set[int] = set()
    comma_ends = [cell.rpartition(",")[2] for cell in cells if "," in cell and "." not in cell]
    long = any(re.fullmatch(r"-?[1-9]\d{3,}", cell) for cell in cells)
    if comma_ends and all(len(end) == 3 for end in comma_ends) and (long or semicolons):
        ruled.add(_THOUSANDS)
    elif comma_ends and all(len(end) == 3 for end in comma_ends):
        ruled.add(_COMMA)
    return ruled


def candidates(cells: Sequence[str], *, semicolons: bool) -> list[Candidate]:
    """In the order in which they are preferred, of those that match the same cells."""
    ruled = _impossible(cells, semicolons)
    found = [_INTEGER, _TRUTH]
    units = ["", *(unit for unit in UNITS if any(unit in cell for cell in cells[:200]))]
    for unit in units:
        found += [number for index, number in enumerate(_numbers(unit)) if index not in ruled]
    return [*found, *_DATES, *_slashed(cells)]


def choose(cells: Sequence[str], *, semicolons: bool) -> Candidate | None:
    """What most of these cells are; None for text. `cells` are trimmed and not empty."""
    if not cells or any_id(cells):
        return None
    best, most = None, 0
    for candidate in candidates(cells, semicolons=semicolons):
        count = candidate.matches(cells)
        if count > most:
            best, most = candidate, count
        if count == len(cells):
            break
    return best if most >= TYPED_SHARE * len(cells) else None


def any_id(cells: Iterable[str]) -> bool:
    return any(_ID.fullmatch(cell) for cell in cells)


def is_value(cell: str) -> bool:
    """Whether a cell is a number, a date or the like rather than a word that could head a column."""
    cell = cell.strip()
    return bool(cell) and any(candidate.matches([cell]) for candidate in _LOOKS)


_LOOKS = (
    _INTEGER, _TRUTH, *_numbers(""), *(item for unit in UNITS for item in _numbers(unit)), *_DATES,
    Candidate("date", _SLASHED, ""),
)  # fmt: skip
