"""What a person sees while Parley is installed and started: steps, colours, sizes."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TextIO

COLOURS = {"grey": "90", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}


def coloured(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def paint(text: str, colour: str, stream: TextIO = sys.stdout) -> str:
    return f"\033[{COLOURS[colour]}m{text}\033[0m" if coloured(stream) else text


def say(text: str = "") -> None:
    print(text, flush=True)


def size_of(path: Path) -> int:
    """Bytes used below a folder; files that vanish meanwhile count as nothing."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return total


def human_size(size: int) -> str:
    if size >= 1 << 30:
        return f"{size / (1 << 30):.1f} GB"
    if size >= 1 << 20:
        return f"{size / (1 << 20):.0f} MB"
    return f"{size / 1024:.0f} kB"


class StepLine:
    """One step's line: rewritten in place on a terminal, repeated now and then where output is kept."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.began = time.monotonic()
        self._live = sys.stdout.isatty()
        self._said = self.began
        if not self._live:
            say(f"  ....  {name}")

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def progress(self, detail: str) -> None:
        now = time.monotonic()
        if self._live:
            print(f"\r\033[K  ....  {self.name:<34} {self.elapsed:6.1f} s  {detail[:60]}", end="", flush=True)
        elif now - self._said >= 15:
            self._said = now
            say(f"  ....  {self.name:<34} {self.elapsed:6.1f} s  {detail[:60]}")

    def end(self, word: str, colour: str, detail: str = "") -> None:
        start = "\r\033[K" if self._live else ""
        say(f"{start}  {paint(f'{word:<4}', colour)}  {self.name:<34} {self.elapsed:6.1f} s  {detail}")
