"""From what an answer goes on elsewhere: token ids where they stand for the same text, else the text."""

from __future__ import annotations

from uuid import uuid4

import pytest

from apps.conversations.eventlog import Entry, encode_frame, pack_ids
from apps.conversations.runner.context import Context
from apps.conversations.runner.request import build_request
from apps.conversations.runner.takeover import restore
from apps.conversations.runner.writer import RunWriter
from apps.conversations.types import Checkpoint
from inference.continuation import Origin
from inference.protocol import ChatMessage, Delta, ModelInfo, ModelState, ReplicaInfo, ReplicaState, Resume
from tests.factories.runner import claimed_run

A, LIKE_A, B = (
    ReplicaInfo(id, "m", "http://h", "vllm", ReplicaState.READY, tokenizer_digest=tokenizer)
    for id, tokenizer in (("a", "t"), ("like a", "t"), ("b", "u"))
)
SAVED = Checkpoint("One", (1, 2), (7, 8), 2, 5, Origin("a", "", "t"))


def resume_of(writer: RunWriter) -> Resume | None:
    context = Context((ChatMessage("user", "?"),), 100, None)
    model = ModelInfo("m", "M", ModelState.READY, 4096)
    return build_request(claimed_run(), context, model, writer, number=1, extra={}).resume


def written_by(replica: ReplicaInfo) -> RunWriter:
    writer = RunWriter(uuid4(), 1)
    writer.begin(replica)
    writer.take(Delta("One", (1, 2), 2, prompt_token_ids=(7, 8)))
    return writer


def test_where_ids_stand_for_the_same_they_are_used() -> None:
    writer = written_by(A)
    writer.begin(LIKE_A)
    assert resume_of(writer) == Resume((7, 8), (1, 2), "One")
    writer.take(Delta(" two", (3,), 1, prompt_token_ids=(9, 9)))
    assert resume_of(writer) == Resume((7, 8), (1, 2, 3), "One two")


def test_where_they_do_not_the_text_is_used_from_then_on() -> None:
    writer = written_by(A)
    writer.begin(B)
    assert resume_of(writer) == Resume((), (), "One")
    writer.take(Delta(" two", (33,), 1, prompt_token_ids=(70, 80)))
    assert writer.tokens == 3
    for replica in (B, A):
        writer.begin(replica)
        resume = resume_of(writer)
        assert resume is not None
        assert not resume.by_ids, "the ids of two tokenizers make no text together"


def test_a_prompts_ids_alone_are_not_kept_for_the_next() -> None:
    writer = RunWriter(uuid4(), 1)
    writer.begin(A)
    writer.take(Delta(prompt_token_ids=(7, 8)))
    writer.begin(B)
    writer.take(Delta("One", (11,), 1, prompt_token_ids=(70, 80)))
    assert resume_of(writer) == Resume((70, 80), (11,), "One")


def test_a_checkpoint_keeps_who_wrote_it() -> None:
    progress = written_by(A).progress()
    assert progress is not None
    assert progress.origin == Origin("a", "", "t")


def entry(seq: int, event: dict[str, object], *ids: int) -> Entry:
    return Entry(encode_frame(seq, event), pack_ids(ids) if ids else b"")


def text(seq: int, at: int, said: str, *ids: int) -> Entry:
    return entry(seq, {"type": "text", "at": at, "text": said}, *ids)


def running(seq: int, replica: str) -> Entry:
    return entry(seq, {"type": "state", "state": "running", "replica": replica})


@pytest.mark.parametrize(
    ("saved", "entries", "origin", "ids"),
    [
        (SAVED, [], Origin("a", "", "t"), (1, 2)),
        (SAVED, [running(6, "a"), text(7, 3, " two", 3)], Origin("a", "", "t"), (1, 2, 3)),
        (SAVED, [text(6, 3, " two", 3), running(7, "b"), text(8, 7, "!", 9)], Origin("b"), ()),
        (Checkpoint(), [running(1, "b"), text(2, 0, "One", 9)], Origin("b"), (9,)),
        (
            Checkpoint("", (1,), (7,), 1, 1, Origin("a", "", "t")),
            [running(2, "b"), text(3, 0, "X", 9)],
            Origin("b"),
            (9,),
        ),
    ],
)
def test_who_takes_over_knows_what_the_ids_are_of(
    saved: Checkpoint, entries: list[Entry], origin: Origin, ids: tuple[int, ...]
) -> None:
    writer = RunWriter(uuid4(), 2)
    restore(writer, saved, entries)
    assert (writer.origin, tuple(writer.token_ids)) == (origin, ids)
    if origin.replica != saved.origin.replica:
        writer.begin(B)
        resume = resume_of(writer)
        assert resume is not None
        assert not resume.by_ids


def test_text_without_ids_is_not_made_up_for_by_later_ones() -> None:
    writer = RunWriter(uuid4(), 2)
    restore(writer, SAVED, [text(6, 3, " two")])
    writer.begin(A)
    assert resume_of(writer) == Resume((), (), "One two")
