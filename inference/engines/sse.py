"""Server-sent events, incrementally: bytes in, data payloads out, whatever way the bytes were split.

Responsible for: the event stream format of the HTML standard (LF, CRLF and CR line ends, comments, data over
several lines, a byte order mark) with a bound on one event's size. Event names, ids and retry times are read over:
no OpenAI-compatible server gives them a meaning. Leaves to its caller what a payload means.
"""

from __future__ import annotations

MAX_EVENT_BYTES = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class SseError(ValueError):
    """An event is larger than the bound."""


class SseParser:
    __slots__ = ("_data", "_limit", "_line", "_size", "_started", "_swallow_lf")

    def __init__(self, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._line = b""
        self._data: list[bytes] = []
        self._size = 0
        self._started = False
        self._swallow_lf = False

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads of the events that `data` completes. SseError when an unfinished event passes the bound."""
        if not self._line and not self._data and not self._swallow_lf and data.endswith(b"\n\n"):
            plain = self._split_plain(data)
            if plain is not None:
                self._started = True
                return plain
        return self._feed_lines(data)

    @staticmethod
    def _split_plain(data: bytes) -> list[bytes] | None:
        """The usual case, whole `data: x` events with LF ends, without a look at every line; None if it is not."""
        events = data[:-2].split(b"\n\n")
        payloads = []
        for event in events:
            if not event.startswith(b"data: ") or b"\n" in event or b"\r" in event:
                return None
            payloads.append(event[6:])
        return payloads

    def _feed_lines(self, data: bytes) -> list[bytes]:
        if self._swallow_lf and data:
            self._swallow_lf = False
            data = data.removeprefix(b"\n")
        self._swallow_lf = data.endswith(b"\r") or (not data and self._swallow_lf)
        pieces = (self._line + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._line = pieces.pop()
        events: list[bytes] = []
        for line in pieces:
            self._take_line(line, events)
        if self._size + len(self._line) > self._limit:
            raise SseError(f"an event has more than {self._limit} bytes")
        return events

    def _take_line(self, line: bytes, events: list[bytes]) -> None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
                self._data, self._size = [], 0
            return
        name, _, value = line.partition(b":")
        if name != b"data":
            return
        value = value.removeprefix(b" ")
        self._data.append(value)
        self._size += len(value) + 1
        if self._size > self._limit:
            raise SseError(f"an event has more than {self._limit} bytes")
