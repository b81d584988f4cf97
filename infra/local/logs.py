"""Logs of every piece: merged on the terminal with a coloured name, and one rotating file each."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from infra.local.console import paint

LARGEST = 10 << 20
KEPT = 3
# Longer lines are cut: a runaway line must not fill memory.
LONGEST_LINE = 16_384


class RotatingLog:
    """An append-only file that is moved aside at `LARGEST` bytes; `KEPT` old ones stay."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("ab")
        path.chmod(0o600)

    def write(self, line: bytes) -> None:
        if self._file.tell() > LARGEST:
            self._rotate()
        self._file.write(line + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for number in range(KEPT, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
        self._file = self._path.open("ab")


class LogHub:
    """Takes lines of named pieces to their files and, unless `muted`, to the terminal."""

    def __init__(self, folder: Path, *, muted: bool = False) -> None:
        self._folder = folder
        self.muted = muted
        self._files: dict[str, RotatingLog] = {}

    def line(self, name: str, colour: str, text: bytes) -> None:
        self._file(name).write(text)
        if not self.muted:
            self._show(name, colour, text.decode(errors="replace"))

    def note(self, name: str, text: str) -> None:
        """Something about a piece that a person should see at any time."""
        self._file(name).write(f"-- {text}".encode())
        self._show(name, "yellow", text)

    def _file(self, name: str) -> RotatingLog:
        if name not in self._files:
            self._files[name] = RotatingLog(self._folder / f"{name}.log")
        return self._files[name]

    def _show(self, name: str, colour: str, text: str) -> None:
        sys.stdout.write(f"{paint(f'{name:<9}', colour)} {text}\n")
        sys.stdout.flush()

    async def follow(self, name: str, colour: str, stream: asyncio.StreamReader, seen: Callable[[bytes], None]) -> None:
        """Pass on the lines of a stream until it ends; `seen` gets each."""
        rest = b""
        while chunk := await stream.read(65_536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.line(name, colour, line.rstrip(b"\r")[:LONGEST_LINE])
                seen(line)
            if len(rest) > LONGEST_LINE:
                self.line(name, colour, rest[:LONGEST_LINE])
                rest = b""
        if rest:
            self.line(name, colour, rest[:LONGEST_LINE])

    def close(self) -> None:
        for file in self._files.values():
            file.close()
