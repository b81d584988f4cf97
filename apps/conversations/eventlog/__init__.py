"""The event log of a run, in Valkey: who may append, how entries are fenced, how readers are fed.

Keys of a run: `r:<id>:log` (a stream; an entry's id is its sequence number and its value a ready SSE frame),
`r:<id>:fence` (the newest attempt) and `r:<id>:readers` (feeds of the web processes that have readers).
One script call appends for all the runs of a runner's tick, and copies each frame to the feeds of its
readers, so that a web process pops one list whatever the number of its readers.

The log is a cache of what readers have not seen yet. Postgres holds the truth; see `services.runs`.
"""

from apps.conversations.eventlog.frames import encode_frame, frame_data, frame_seq, is_done
from apps.conversations.eventlog.log import (
    APPENDED,
    FENCED,
    LOST,
    Append,
    AsyncLog,
    Entry,
    alive_key,
    append_now,
    feed_key,
    lane_key,
    log_key,
    pack_ids,
    readers_key,
    unpack_ids,
)

__all__ = [
    "APPENDED",
    "FENCED",
    "LOST",
    "Append",
    "AsyncLog",
    "Entry",
    "alive_key",
    "append_now",
    "encode_frame",
    "feed_key",
    "frame_data",
    "frame_seq",
    "is_done",
    "lane_key",
    "log_key",
    "pack_ids",
    "readers_key",
    "unpack_ids",
]
