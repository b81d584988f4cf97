"""Readers in the background, for tests that break something while they read."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from inference.engines.script import expected_text
from tests.client import Api, Broken, Refused, eventually
from tests.reader import Audit, Event


class Background(threading.Thread):
    """Asks one question and reads its answer to the end, on whichever web answers. Notes when each event came.
    `under`: a conversation and the answer there that the question follows; without it a conversation is made."""

    def __init__(self, webs: Sequence[Api], tokens: int, prompt: str, under: tuple[str, str] | None = None) -> None:
        super().__init__(daemon=True)
        self.webs, self.tokens, self.seed = list(webs), tokens, uuid.uuid4().hex[:10]
        conversation, parent = under or (webs[0].new_conversation(), None)
        self.posted: Any = webs[0].ask(conversation, f"{prompt} n:{tokens} seed:{self.seed}", parent=parent)
        self.asked_at = time.monotonic()
        self.run_id: str = self.posted["run"]["id"]
        self.audit = Audit()
        self.events: list[tuple[float, Event]] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self.audit.reading.ended:
                self._follow()
        except Exception as error:  # noqa: BLE001 - a thread's edge
            self.error = error

    def _follow(self) -> None:
        try:
            with self.webs[0].events(self.run_id, after=self.audit.reading.seq, idle=60) as stream:
                for event in stream:
                    self.events.append((time.monotonic(), event))
                    self.audit.take(event)
        except Broken:
            self.webs.append(self.webs.pop(0))
            time.sleep(0.05)
        except Refused as refused:
            if refused.status != 503:
                raise
            time.sleep(0.2)

    @property
    def text(self) -> str:
        return self.audit.reading.text

    def kinds(self) -> list[str]:
        return [event.type for _, event in self.events]

    def gap_after(self, moment: float) -> float:
        """Seconds from a moment to the first event that came after it."""
        return next((at - moment for at, _ in self.events if at > moment), float("inf"))


def start(webs: Sequence[Api], count: int, *, tokens: int, prompt: str) -> list[Background]:
    """Readers that are all in the middle of their answers."""
    readers = [Background(webs, tokens, prompt) for _ in range(count)]
    for reader in readers:
        reader.start()
    until(readers, lambda reader: bool(reader.text))
    return readers


def until(readers: Sequence[Background], wanted: Callable[[Background], bool], within: float = 30.0) -> None:
    def look() -> bool:
        broken = [reader.error for reader in readers if reader.error]
        assert not broken, broken
        return all(map(wanted, readers))

    eventually(look, within=within)


def check(readers: Sequence[Background]) -> None:
    """Wait for the ends; each has the whole text, once, and it is what is stored."""
    until(readers, lambda reader: reader.audit.reading.ended, within=60)
    for reader in readers:
        audit, expected = reader.audit, expected_text(reader.tokens, reader.seed)
        assert (audit.repeated, audit.lost) == ([], []), reader.run_id
        assert reader.text == expected
        rows = eventually(lambda reader=reader: _stored(reader))  # type: ignore[misc]
        assert [(row["role"], row["status"]) for row in rows] == [("user", "completed"), ("assistant", "completed")]
        assert rows[1]["text"] == expected


def _stored(reader: Background) -> list[Any] | None:
    """The messages; None while the database is away."""
    try:
        return reader.webs[0].messages(reader.posted["answer"]["conversation_id"])
    except Refused as refused:
        if refused.status != 503:
            raise
        return None
