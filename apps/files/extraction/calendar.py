"""Invitations (iCalendar): what, when, where, who."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.files.extraction import plain
from apps.files.extraction.assemble import clean
from apps.files.extraction.types import Category, Element

_FOLD = re.compile(r"\n[ \t]")
_LINE = re.compile(r"^([A-Za-z-]+)((?:;[^:\"]*(?:\"[^\"]*\")?)*):(.*)$")
_NAME = re.compile(r";CN=\"?([^;\":]+)", re.IGNORECASE)
_SHOWN = {
    "SUMMARY": "Summary", "DTSTART": "Start", "DTEND": "End", "LOCATION": "Location", "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee", "DESCRIPTION": "Description", "STATUS": "Status", "RRULE": "Repeats",
}  # fmt: skip
_DATE = re.compile(r"^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?$")
_ESCAPED = {"\\n": " ", "\\N": " ", "\\,": ",", "\\;": ";", "\\\\": "\\"}


def _date(value: str) -> str:
    found = _DATE.match(value)
    if found is None:
        return value
    year, month, day, hour, minute, utc = found.groups()
    return f"{year}-{month}-{day}" + (f" {hour}:{minute}{' UTC' if utc else ''}" if hour else "")


def _fields(text: str) -> Iterator[str]:
    inside = False
    for line in _FOLD.sub("", plain.prose(text)).split("\n"):
        found = _LINE.match(line.strip())
        if found is None:
            continue
        name, parameters, value = found.group(1).upper(), found.group(2), found.group(3)
        if name in ("BEGIN", "END"):
            inside = name == "BEGIN" and value.upper() in ("VEVENT", "VTODO", "VJOURNAL")
        elif inside and name in _SHOWN:
            value = clean(re.sub(r"\\[nN,;\\]", lambda mark: _ESCAPED[mark.group()], value))
            if name in ("DTSTART", "DTEND"):
                value = _date(value)
            if person := _NAME.search(parameters):
                value = f"{person.group(1)} {value}"
            if value:
                yield f"{_SHOWN[name]}: {value}"


def elements_of(text: str) -> list[Element]:
    lines = "\n".join(_fields(text))
    return [Element(Category.UNCATEGORIZED_TEXT, lines)] if lines else []
