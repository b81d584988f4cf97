"""One run's output in this process: what was generated, what the log has been given, what is still to go.

Pure bookkeeping without I/O, so that a flush of a thousand runs is a loop over plain objects.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

from apps.conversations.eventlog import Append, encode_frame, frame_data, pack_ids
from apps.conversations.services.runs import Progress
from inference.continuation import NOBODY, Origin
from inference.protocol import Delta, DeltaStream, ReplicaInfo, Usage

TAKEOVER_JUMP = 10_000
"""How far a new attempt's numbers jump: past anything a reader can have seen of a log that lost its tail."""


class FencedOut(Exception):
    """A newer attempt owns the run; this one must write nothing more."""


class RunWriter:
    """The text, token ids and events of one attempt, in order. `seq` is the last number given out."""

    def __init__(self, run_id: UUID, attempt: int, *, seq: int = 0) -> None:
        self.run_id, self.attempt, self.seq = run_id, attempt, seq
        self.text_parts: list[str] = []
        self.text_length = 0  # code points
        self.token_ids: list[int] = []
        self.prompt_token_ids: tuple[int, ...] = ()
        self.ids_known = True
        self.origin = NOBODY
        self.tokens = 0
        self.usage: Usage | None = None
        self.stream: DeltaStream | None = None
        self.ended: asyncio.Future[str] | None = None
        self.first_token_at: float | None = None
        self.fenced = False
        self._unsent: list[str] = []
        self._unsent_ids: list[int] = []
        self._queue: list[Append] = []
        self._sticky: list[dict[str, Any]] = []
        self._saved_seq = seq

    @property
    def text(self) -> str:
        if len(self.text_parts) > 1:
            self.text_parts = ["".join(self.text_parts)]
        return self.text_parts[0] if self.text_parts else ""

    def restore(self, text: str, token_ids: tuple[int, ...], prompt_ids: tuple[int, ...], tokens: int) -> None:
        """Continue after output that an earlier attempt committed; `origin` is to be told beside it."""
        self.text_parts, self.text_length = [text] if text else [], len(text)
        self.token_ids, self.prompt_token_ids, self.tokens = list(token_ids), prompt_ids, tokens
        self.ids_known = bool(token_ids) or not text
        self._unsent, self._unsent_ids = [], []

    def begin(self, replica: ReplicaInfo) -> None:
        """The replica goes on from here, or begins. Ids are dropped where they stand for other text there; those of a
        prompt alone, too, since the next one may be another."""
        written = bool(self.text_length or self.token_ids)
        if not written or not self.origin.reads_alike(replica):
            self._frame_text()
            self.token_ids, self.prompt_token_ids = [], ()
            self.ids_known = not self.text_length
        self.origin = Origin.of(replica)

    def take(self, delta: Delta) -> None:
        """Add what a replica produced."""
        if delta.prompt_token_ids is not None and not self.prompt_token_ids:
            self.prompt_token_ids = delta.prompt_token_ids
        if delta.usage is not None:
            self.usage = delta.usage
        self.tokens += delta.tokens
        if delta.token_ids and self.ids_known:
            self.token_ids.extend(delta.token_ids)
            self._unsent_ids.extend(delta.token_ids)
        elif delta.text and not delta.token_ids:
            self.ids_known = False
        if delta.text:
            if self.first_token_at is None:
                self.first_token_at = time.monotonic()
            self.text_parts.append(delta.text)
            self.text_length += len(delta.text)
            self._unsent.append(delta.text)

    def emit(self, event: dict[str, Any], *, final: bool = False, sticky: bool = False) -> None:
        """Queue an event after the text so far. `sticky` ones are told again when the log was lost."""
        self._frame_text()
        if sticky:
            self._sticky.append(event)
        self._push(event, final=final)

    def _push(self, event: dict[str, Any], ids: bytes = b"", *, final: bool = False) -> None:
        self.seq += 1
        self._queue.append(Append(self.run_id, self.attempt, self.seq, encode_frame(self.seq, event), ids, final))

    def _frame_text(self) -> None:
        if not self._unsent:
            return
        text = self._unsent[0] if len(self._unsent) == 1 else "".join(self._unsent)
        ids = pack_ids(self._unsent_ids) if self._unsent_ids else b""
        self._unsent, self._unsent_ids = [], []
        self._push({"type": "text", "at": self.text_length - len(text), "text": text}, ids)

    @property
    def has_queued(self) -> bool:
        return bool(self._queue)

    def next_seq(self) -> int:
        """The number of the next event, once all text so far has one."""
        self._frame_text()
        return self.seq + 1

    def drain(self) -> list[Append]:
        """The entries to append now; they leave the queue."""
        self._frame_text()
        entries, self._queue = self._queue, []
        return entries

    def log_was_lost(self, *, final: Append | None = None) -> None:
        """Tell readers everything again: the log has forgotten what came before. `final` was the last entry."""
        self._unsent, self._unsent_ids, self._queue = [], [], []
        self.snapshot()
        if final is not None:
            self.seq += 1
            frame = b"id: %d\ndata: %b\n\n" % (self.seq, frame_data(final.frame))
            self._queue.append(final._replace(seq=self.seq, frame=frame))

    def snapshot(self) -> None:
        for event in self._sticky:
            self._push(event)
        self._push({"type": "snapshot", "text": self.text})

    def progress(self) -> Progress | None:
        """What to checkpoint, or None when nothing is new since the last time."""
        self._frame_text()
        if self.seq == self._saved_seq:
            return None
        self._saved_seq = self.seq
        ids = tuple(self.token_ids) if self.ids_known else ()
        prompt = self.prompt_token_ids
        return Progress(self.run_id, self.attempt, self.seq, self.text, ids, prompt, self.tokens, self.origin)
