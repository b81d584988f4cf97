"""The golden streams, read in Python: the same end as in the page, whatever way the bytes were cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.conversations.eventlog import encode_frame, frame_data, frame_seq, is_done
from tests.reader import Audit, Event, Reading, parse, read, reduce

FOLDER = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in FOLDER.glob("*.sse"))
TEXTS = ("", "plain", "Grüße 👋🏽 東京\u2028\u0085", 'say "no"\\\n\r\n: hb\n\ndata: {}', "\ufeffmark")


def load(name: str) -> tuple[bytes, dict[str, Any]]:
    return (FOLDER / f"{name}.sse").read_bytes(), json.loads((FOLDER / f"{name}.json").read_text())


def test_each_stream_has_its_expected_end_and_there_are_enough() -> None:
    assert len(NAMES) >= 8
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_in_one_piece(name: str) -> None:
    data, expected = load(name)
    assert read([data]).view() == expected


@pytest.mark.parametrize("name", NAMES)
def test_cut_anywhere(name: str) -> None:
    data, expected = load(name)
    wrong = [at for at in range(len(data) + 1) if read([data[:at], data[at:]]).view() != expected]
    assert wrong == []
    assert read(data[at : at + 1] for at in range(len(data))).view() == expected


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("snapshot")])
def test_a_reader_that_comes_back_behind_its_place_sees_no_difference(name: str) -> None:
    data, expected = load(name)
    events = list(parse([data]))
    for seen in range(len(events) + 1):
        for back in range(seen + 1):
            reading = Reading()
            for event in (*events[:seen], *events[back:]):
                reading = reduce(reading, event)
            assert reading.view() == expected, f"{seen} events seen, resumed after {back}"


@pytest.mark.parametrize("text", TEXTS)
def test_the_servers_frames_say_what_went_in(text: str) -> None:
    event = {"type": "text", "at": 3, "text": text}
    frame = encode_frame(41, event)
    assert frame.count(b"\n\n") == 1
    assert frame.endswith(b"\n\n")
    assert list(parse(frame[at : at + 1] for at in range(len(frame)))) == [Event(41, event)]
    assert frame_seq(frame) == 41
    assert json.loads(frame_data(frame)) == event


def test_only_the_last_event_counts_as_the_end() -> None:
    assert is_done(encode_frame(7, {"type": "done", "state": "completed"}))
    assert not is_done(encode_frame(8, {"type": "text", "at": 0, "text": 'data: {"type":"done"'}))


def audit(*events: dict[str, Any]) -> Audit:
    audit = Audit()
    for seq, event in enumerate(events, 1):
        audit.take(Event(event.pop("seq", seq), event))
    return audit


def done(text: str) -> dict[str, Any]:
    return {"type": "done", "state": "completed", "usage": {}, "error": None, "message": {"text": text}}


ONE, TWO = {"type": "text", "at": 0, "text": "One "}, {"type": "text", "at": 4, "text": "two"}


def snapshot(text: str) -> dict[str, Any]:
    return {"type": "snapshot", "text": text}


@pytest.mark.parametrize(
    ("events", "notes"),
    [
        ((ONE, TWO, done("One two")), ""),
        ((ONE, snapshot("One "), TWO, done("One two")), ""),
        ((ONE, snapshot("One two"), done("One two")), ""),
        ((ONE, ONE | {"seq": 1}, TWO | {"seq": 2}), "repeated"),
        ((ONE, ONE), "repeated"),
        ((ONE, done("One "), TWO), "repeated"),
        ((TWO,), "lost"),
        ((ONE, done("Two")), "lost"),
        ((ONE, done("One two")), "late"),
        ((ONE, snapshot("On")), "rewound"),
        ((ONE, snapshot("Two")), "rewound"),
    ],
)
def test_the_audit_notes_what_a_forgiving_reader_hides(events: tuple[dict[str, Any], ...], notes: str) -> None:
    found = audit(*(dict(event) for event in events))
    kinds = {"repeated": found.repeated, "lost": found.lost, "late": found.late, "rewound": found.rewound}
    assert {kind: len(noted) for kind, noted in kinds.items() if noted} == ({notes: 1} if notes else {})
    assert found.is_clean is not bool(notes)
