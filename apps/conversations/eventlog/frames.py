"""The bytes of one event: an SSE frame, encoded once by the runner and relayed unchanged."""

from __future__ import annotations

from typing import Any

import orjson

_DONE = b'data: {"type":"done"'


def encode_frame(seq: int, event: dict[str, Any]) -> bytes:
    """`id: <seq>` and the JSON of `event`, whose first key must be `type`."""
    return b"id: %d\ndata: %b\n\n" % (seq, orjson.dumps(event, option=orjson.OPT_UTC_Z, default=str))


def frame_seq(frame: bytes) -> int:
    return int(frame[4 : frame.index(b"\n")])


def frame_data(frame: bytes) -> bytes:
    """The JSON of a frame."""
    return frame[frame.index(b"\n") + 7 : -2]


def is_done(frame: bytes) -> bool:
    """Whether this is a run's last event."""
    start = frame.index(b"\n") + 1
    return frame.startswith(_DONE, start)
