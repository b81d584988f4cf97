"""What an attempt finds of the one before it: the longer of checkpoint and event log."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from apps.conversations.eventlog import Entry, frame_data, frame_seq, unpack_ids
from apps.conversations.runner.writer import TAKEOVER_JUMP, RunWriter
from apps.conversations.types import Checkpoint, RunState
from inference.continuation import Origin


def restore(writer: RunWriter, saved: Checkpoint, entries: Sequence[Entry]) -> None:
    """Put into the writer what was committed. `entries`: what the log has beyond the checkpoint."""
    text, ids, seq, tokens = saved.text, list(saved.token_ids), saved.seq, saved.completion_tokens
    known, prompt, origin = bool(ids) or not text, saved.prompt_token_ids, saved.origin
    for entry in entries:
        event, seq = orjson.loads(frame_data(entry.frame)), frame_seq(entry.frame)
        if event.get("state") == RunState.RUNNING and event["replica"] != origin.replica:
            # Of another replica than the checkpoint's: what it makes of ids was not saved.
            known, ids, prompt, origin = not text, [], (), Origin(event["replica"])
        if event["type"] == "text" and event["at"] == len(text):
            text += event["text"]
            more = unpack_ids(entry.token_ids)
            known = known and bool(more)
            ids.extend(more)
            tokens += len(more) or 1
        elif event["type"] == "snapshot" and len(event["text"]) >= len(text):
            known = known and event["text"] == text
            text = event["text"]
    writer.seq = seq + TAKEOVER_JUMP
    writer.origin = origin
    writer.restore(text, tuple(ids) if known else (), prompt, tokens)
