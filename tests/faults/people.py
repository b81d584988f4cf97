"""People who ask, read to the end and ask again while servers die under them.

Each is a thread with a conversation of its own. A post is retried under its client id until some web acknowledges it;
a broken stream is resumed on another web from the last event. Everything they see is audited.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.engines.script import expected_text
from tests.client import Api, Broken, Refused
from tests.reader import Audit, Reading

PATIENCE_S = 60.0
"""After so long without a word from anyone, something is stuck."""
IDLE_S = 8.0
JUMP = 5_000
"""An event number this far ahead is the first of a new attempt."""


@dataclass(slots=True)
class Asked:
    """A question that was acknowledged, and what its reader saw."""

    conversation: str
    question: str
    answer: str
    run: str
    seed: str
    audit: Audit = field(default_factory=Audit)


class Stuck(Exception):
    """Nothing came for longer than anybody would wait."""


class Person(threading.Thread):
    """Asks and reads until told to stop, and then finishes what they are reading."""

    def __init__(self, webs: Sequence[Api], prompt: str, tokens: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.webs, self.prompt, self.tokens, self.halt = list(webs), prompt, tokens, stop
        self.asked: list[Asked] = []
        self.current: Asked | None = None
        self.web: Api | None = None
        self.problems: list[str] = []
        self.resumed: list[float] = []
        self.retries = self.breaks = 0
        self._lock = threading.Lock()
        self._hit: tuple[float, bool] | None = None
        self._seq_at_hit = 0

    # ------------------------------------------------ what the killer sees

    @property
    def is_reading(self) -> bool:
        """In the middle of an answer."""
        asked = self.current
        return asked is not None and bool(asked.audit.reading.text) and not asked.audit.reading.ended

    def hit(self, at: float, *, takeover: bool) -> None:
        """The process that served this person died at `at`. `takeover`: it was the runner."""
        with self._lock:
            self._hit = (at, takeover)
            self._seq_at_hit = self.current.audit.reading.seq if self.current else 0

    @property
    def waits(self) -> bool:
        return self._hit is not None

    def _heard(self, seq: int, kind: str) -> None:
        with self._lock:
            if self._hit is None:
                return
            at, takeover = self._hit
            if kind not in ("text", "done"):
                return
            if takeover and seq < self._seq_at_hit + JUMP:
                # On its way before the kill; an end means that there was nothing left to take over.
                self._hit = None if kind == "done" else self._hit
                return
            self.resumed.append(time.monotonic() - at)
            self._hit = None

    # ------------------------------------------------ what they do

    def run(self) -> None:
        try:
            conversation = self._retry(lambda web: web.new_conversation())
            parent: str | None = None
            while not self.halt.is_set():
                asked = self._ask(conversation, parent)
                self.current = asked
                self._read(asked)
                self.current, parent = None, asked.answer
        except Exception as error:  # noqa: BLE001 - a thread's edge: the report says it
            self.problems.append(f"{type(error).__name__}: {error}")

    def _ask(self, conversation: str, parent: str | None) -> Asked:
        client_id, seed = str(uuid.uuid4()), uuid.uuid4().hex[:10]
        text = f"{self.prompt} n:{self.tokens} seed:{seed}"
        posted = self._retry(lambda web: web.ask(conversation, text, parent=parent, client_id=client_id))
        asked = Asked(conversation, posted["question"]["id"], posted["answer"]["id"], posted["run"]["id"], seed)
        self.asked.append(asked)
        return asked

    def _retry(self, call: Any) -> Any:
        """Try webs in turn until one answers. What a server refuses for a while is asked again."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            web = random.choice(self.webs)
            try:
                return call(web)
            except Broken:
                self.retries += 1
            except Refused as refused:
                if refused.status not in (429, 503) or "retry-after" not in refused.reply.headers:
                    raise
                self.retries += 1
            time.sleep(0.1)
        raise Stuck("no web answered a post")

    def _read(self, asked: Asked) -> None:
        audit, deadline = asked.audit, time.monotonic() + PATIENCE_S
        while not audit.reading.ended:
            if time.monotonic() > deadline:
                raise Stuck(f"run {asked.run} said nothing after event {audit.reading.seq}")
            self.web = random.choice(self.webs)
            try:
                with self.web.events(asked.run, after=audit.reading.seq, idle=IDLE_S) as stream:
                    for event in stream:
                        audit.take(event)
                        self._heard(event.seq, event.type)
                        deadline = time.monotonic() + PATIENCE_S
            except Broken:
                self.breaks += 1
                time.sleep(0.05)
            except Refused as refused:
                if refused.status == 503:
                    time.sleep(0.1)
                    continue
                if refused.status != 410:
                    raise
                self._given(asked, refused.reply.json["message"])
        if audit.reading.text != expected_text(self.tokens, asked.seed):
            audit.lost.append(f"{audit.reading.state} with {len(audit.reading.text)} characters: {audit.reading.error}")

    def _given(self, asked: Asked, message: dict[str, Any]) -> None:
        """The stream is over and its log is gone or read to the end: the message is the rest."""
        audit = asked.audit
        if not message["text"].startswith(audit.reading.text):
            audit.lost.append("the saved text is not what was streamed")
        audit.late.append("given as a message")
        ended = {"text": message["text"], "state": message["status"], "message": message, "ended": True}
        audit.reading = Reading(**ended, seq=audit.reading.seq)
        self._heard(audit.reading.seq + JUMP, "done")
