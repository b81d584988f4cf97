"""Set-up steps: run a command with progress and a log, skip it while its inputs are unchanged, explain failures."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from infra.local.console import StepLine, human_size, paint, say, size_of
from infra.local.layout import Layout

HINTS = (
    (("no space left on device", "disk quota exceeded"), "The disk is full. Free some space and run it again."),
    (
        (
            "temporary failure in name resolution",
            "could not resolve host",
            "dns error",
            "network is unreachable",
            "error sending request",
            "enotfound",
            "eai_again",
            "etimedout",
            "failed to establish a new connection",
        ),
        "A package registry could not be reached. Check the network (or the proxy and mirror settings of pip and "
        "npm, which are honoured) and run it again: what is already there is kept.",
    ),
    (
        ("hash mismatch", "eintegrity"),
        "A downloaded package is not the one that was locked. Do not work around this: find out which mirror "
        "served it.",
    ),
    (("eacces", "permission denied"), "A file belongs to another user, perhaps from a run with sudo."),
    (
        ("no interpreter found", "no virtual environment"),
        "No supported Python was found. Install Python 3.11, 3.12 or 3.13.",
    ),
)


class StepFailed(Exception):
    """A set-up step did not succeed; the message says what to do."""


def digest_of(paths: Iterable[Path], *extra: str) -> str:
    """One hash over file contents and any other inputs; a missing file counts as such."""
    sha = hashlib.sha256("\0".join(extra).encode())
    for path in sorted(paths):
        sha.update(str(path).encode())
        sha.update(path.read_bytes() if path.is_file() else b"\0missing")
    return sha.hexdigest()


class Steps:
    """Runs the steps of one command, each logged to `logs/setup.log`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.log = layout.logs / "setup.log"

    def is_current(self, name: str, digest: str) -> bool:
        stamp = self.layout.stamps / name
        return stamp.is_file() and stamp.read_text() == digest

    def mark(self, name: str, digest: str) -> None:
        self.layout.stamps.mkdir(parents=True, exist_ok=True)
        (self.layout.stamps / name).write_text(digest)

    def run(
        self,
        name: str,
        commands: Sequence[Sequence[str | Path]],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        measure: Path | None = None,
    ) -> None:
        """Run the commands in order under one line. Raises StepFailed with the log's end and advice."""
        line = StepLine(name)
        for command in commands:
            code, tail = self._execute(command, line, cwd or self.layout.repository, {**os.environ, **(env or {})})
            if code:
                line.end("FAIL", "red")
                raise StepFailed(explain(name, code, tail, self.log))
        line.end("ok", "green", human_size(size_of(measure)) if measure and measure.exists() else "")

    def _execute(
        self, command: Sequence[str | Path], line: StepLine, cwd: Path, env: Mapping[str, str]
    ) -> tuple[int, list[str]]:
        with self.log.open("a", errors="replace") as log:
            log.write(f"\n$ {' '.join(map(str, command))}\n")
            log.flush()
            start = log.tell()
            try:
                child = subprocess.Popen(
                    [str(part) for part in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            except OSError as error:
                return 127, [str(error)]
            try:
                while (code := child.poll()) is None:
                    time.sleep(0.1)
                    line.progress(self._last_line(start))
            except KeyboardInterrupt:
                child.terminate()
                child.wait()
                raise
        return code, self._tail(start)

    def _tail(self, start: int) -> list[str]:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")[-6000:].strip().splitlines()

    def _last_line(self, start: int) -> str:
        with self.log.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(start, log.tell() - 300))
            lines = log.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""


def explain(name: str, code: int, tail: Sequence[str], log: Path) -> str:
    """The end of a failed command's output, and what a person can do about it."""
    text = "\n".join(tail).lower()
    advice = [hint for words, hint in HINTS if any(word in text for word in words)]
    shown = [f"      {line}" for line in tail[-12:]]
    return "\n".join([f"{name} failed with exit code {code}:", *shown, *advice, f"The whole output is in {log}."])


def skipped(name: str, detail: str = "") -> None:
    say(f"  {paint('ok  ', 'grey')}  {name:<34}   current  {detail}")
