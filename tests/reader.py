"""What a reader of a run must end up with, as a pure function of the bytes it received.

The same rules as the page's reducer; `tests/contracts/golden` fixes both. `Audit` is stricter: it is what the fault
and load tests hold a stream to, since a reader that forgives would hide what a server did wrong.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

KNOWN = frozenset({"state", "snapshot", "text", "passages", "reconstructed", "escalated", "citations", "done"})
_BREAK = re.compile(r"\r\n|\n|\r")


class Event(NamedTuple):
    seq: int
    data: dict[str, Any]

    @property
    def type(self) -> str:
        return str(self.data["type"])


class EventParser:
    """Bytes of an event stream, cut anywhere, to events. Comments and unknown fields are skipped."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._first = True
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completed."""
        text = self._decoder.decode(chunk)
        if self._first and text:
            self._first, text = False, text.removeprefix("\ufeff")
        text = self._rest + text
        # A final CR may be half of a CRLF.
        end = len(text) - 1 if text.endswith("\r") else len(text)
        events, at = [], 0
        for found in _BREAK.finditer(text, 0, end):
            if (event := self._line(text[at : found.start()])) is not None:
                events.append(event)
            at = found.end()
        self._rest = text[at:]
        return events

    def _line(self, line: str) -> Event | None:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "id" and "\0" not in value:
                self._id = value
            return None
        id, data = self._id, "\n".join(self._data)
        self._id, self._data = None, []
        if id is None or not data:
            return None
        return Event(int(id), json.loads(data))


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader holds of a run."""

    text: str = ""
    state: str = "queued"
    citations: tuple[Any, ...] = ()
    error: Mapping[str, Any] | None = None
    notices: tuple[Mapping[str, Any], ...] = ()
    seq: int = 0
    attempt: int = 1
    message: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    ended: bool = False
    gap: bool = False

    def view(self) -> dict[str, Any]:
        """What the golden files fix."""
        return {
            "text": self.text,
            "state": self.state,
            "citations": list(self.citations),
            "error": self.error,
            "notices": list(self.notices),
            "seq": self.seq,
        }


def reduce(reading: Reading, event: Event) -> Reading:
    """The reading after one more event; repetitions, unknown types and what follows the end change nothing."""
    seq, data = event
    kind = data["type"]
    if reading.ended or kind not in KNOWN:
        return reading
    if kind == "snapshot":
        return replace(reading, seq=seq, text=data["text"], gap=False)
    if seq <= reading.seq:
        return reading
    if kind == "text":
        return _append(reading, seq, data)
    if reading.gap and kind != "done":
        return reading
    return replace(_APPLY[kind](reading, data), seq=seq)


def _append(reading: Reading, seq: int, data: Mapping[str, Any]) -> Reading:
    at = data["at"]
    if at > len(reading.text):
        return replace(reading, gap=True)
    state = "running" if reading.state == "queued" else reading.state
    return replace(reading, seq=seq, text=reading.text[:at] + data["text"], state=state, gap=False)


def _state(reading: Reading, data: Mapping[str, Any]) -> Reading:
    return replace(reading, state=data["state"], attempt=data["attempt"])


_OF_MODE = {"keyword": "keyword_only", "away": "keyword_away", "mixed": "keyword_partly"}


def _passages(reading: Reading, data: Mapping[str, Any]) -> Reading:
    notices = list(reading.notices)
    if kind := _OF_MODE.get(data["mode"]):
        notices.append({"kind": kind})
    if data["unready"]:
        notices.append({"kind": "unready", "files": data["unready"]})
    if data.get("left_out"):
        notices.append({"kind": "left_out", "left_out": data["left_out"]})
    return replace(reading, notices=tuple(notices))


def _reconstructed(reading: Reading, data: Mapping[str, Any]) -> Reading:
    notice = {"kind": "reconstructed", **{key: data[key] for key in ("at", "attempt", "replica")}}
    text = reading.text[: data["at"]]
    return replace(reading, text=text, attempt=data["attempt"], notices=(*reading.notices, notice))


def _escalated(reading: Reading, data: Mapping[str, Any]) -> Reading:
    notice = {"kind": "escalated", **{key: data[key] for key in ("from_model", "to_model", "why")}}
    return replace(reading, notices=(*reading.notices, notice))


def _citations(reading: Reading, data: Mapping[str, Any]) -> Reading:
    return replace(reading, citations=tuple(data["citations"]))


def _done(reading: Reading, data: Mapping[str, Any]) -> Reading:
    message = data["message"] or {}
    return replace(
        reading,
        text=message.get("text", reading.text),
        state=data["state"],
        citations=tuple(message.get("citations", reading.citations)),
        notices=tuple(message.get("notices", reading.notices)),
        error=data["error"],
        message=data["message"],
        usage=data["usage"],
        ended=True,
        gap=False,
    )


_APPLY = {
    "state": _state,
    "passages": _passages,
    "reconstructed": _reconstructed,
    "escalated": _escalated,
    "citations": _citations,
    "done": _done,
}


def read(chunks: Iterable[bytes], reading: Reading = Reading()) -> Reading:
    """Read a whole stream, in whatever pieces it came."""
    for event in parse(chunks):
        reading = reduce(reading, event)
    return reading


def parse(chunks: Iterable[bytes]) -> Iterator[Event]:
    parser = EventParser()
    for chunk in chunks:
        yield from parser.feed(chunk)


@dataclass
class Audit:
    """Follows one reader of one run over all its connections, and notes what a correct server never does.

    `repeated`: events or text given twice. `lost`: text that was skipped, or that differs from what was saved.
    Two more are right only after a fault. `rewound`: a snapshot took text back (the log had been lost). `late`: the
    end told text that the stream had not (its last moment was lost).
    """

    reading: Reading = field(default_factory=Reading)
    repeated: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    rewound: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.repeated or self.lost or self.rewound or self.late)

    def take(self, event: Event) -> None:
        seq, data = event
        kind, at, text = data["type"], data.get("at", 0), self.reading.text
        if self.reading.ended:
            self.repeated.append(f"{seq} {kind} after the end")
        elif seq <= self.reading.seq:
            self.repeated.append(f"{seq} {kind} after {self.reading.seq}")
        elif kind == "text" and at < len(text):
            self.repeated.append(f"{seq} text at {at} while the reader has {len(text)}")
        elif kind in ("text", "reconstructed") and at > len(text):
            self.lost.append(f"{seq} {kind} at {at} while the reader has {len(text)}")
        elif kind == "snapshot" and not data["text"].startswith(text):
            self.rewound.append(f"{seq} snapshot of {len(data['text'])} while the reader has {len(text)}")
        elif kind == "done" and data["message"]:
            self._end(seq, text, data["message"]["text"])
        self.reading = reduce(self.reading, event)

    def _end(self, seq: int, text: str, saved: str) -> None:
        if not saved.startswith(text):
            self.lost.append(f"{seq} the saved text is not what was streamed")
        elif len(saved) > len(text):
            self.late.append(f"{seq} the end has {len(saved)} characters, the stream {len(text)}")
