"""One line of a checkup."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and, unless it is fine, what to do."""

    name: str
    level: Level
    found: str
    advice: str = ""


def ok(name: str, found: str) -> Finding:
    return Finding(name, Level.OK, found)


def warn(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Level.WARN, found, advice)


def fail(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Level.FAIL, found, advice)
