"""How long things took the last time on this machine, so that a page can say how long they will take now.

A small JSON file in the state folder; losing it only makes the first estimate a guess.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import orjson

log = logging.getLogger(__name__)

_NEWEST_SHARE = 0.6
_LEAST_LEFT_S = 3.0


class Durations:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _read(file)

    def expected(self, name: str, guess: float) -> float:
        return self._known.get(name, guess)

    def remember(self, name: str, seconds: float) -> None:
        """Weighs the newest most: a machine's load changes."""
        before = self._known.get(name, seconds)
        self._known[name] = round(_NEWEST_SHARE * seconds + (1 - _NEWEST_SHARE) * before, 1)
        aside = self._file.with_suffix(f".{os.getpid()}")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(orjson.dumps(self._known))
            aside.replace(self._file)
        except OSError as error:
            log.warning("durations cannot be kept: %s", error)


def seconds_left(expected: float, elapsed: float) -> float:
    """Time until the end. What is late is expected to be late by a fifth of what has passed, not to be done now."""
    return max(_LEAST_LEFT_S, expected - elapsed, elapsed / 5 if elapsed > expected else 0.0)


def _read(file: Path) -> dict[str, float]:
    try:
        raw = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return {str(k): float(v) for k, v in raw.items() if isinstance(v, int | float)} if isinstance(raw, dict) else {}
