"""One hostile file: its name, whose ending says what it claims to be, and how it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Poison:
    """`make` is called when the file is sent, so that no more than a few are held at a time."""

    name: str
    make: Callable[[], bytes]


def named(ending: str, **makers: Callable[[], bytes]) -> Iterator[Poison]:
    """Poisons of one ending; underscores of their names become hyphens."""
    for name, make in makers.items():
        yield Poison(f"{name.replace('_', '-')}.{ending}", make)
