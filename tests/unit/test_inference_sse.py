"""The event parser gives the same events whatever way the bytes are split."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import pytest

from inference.engines.sse import SseError, SseParser

STREAMS: dict[bytes, list[bytes]] = {
    b'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n': [b'{"a":1}', b'{"b":2}', b"[DONE]"],
    b"data: crlf\r\n\r\ndata: more\r\n\r\n": [b"crlf", b"more"],
    b"data: cr\r\rdata: more\r\r": [b"cr", b"more"],
    b"data: mixed\r\n\ndata: ends\n\r\ndata: here\r\r\n": [b"mixed", b"ends", b"here"],
    b": a comment\n\ndata: after\n\n:another\n": [b"after"],
    b"data: two\ndata: lines\n\n": [b"two\nlines"],
    b"data:no space\n\ndata:  two spaces\n\n": [b"no space", b" two spaces"],
    b"event: error\nid: 7\nretry: 10\ndata: x\n\n": [b"x"],
    b"data\n\ndata:\n\n": [b"", b""],
    b"\n\n\ndata: late\n\n\n\n": [b"late"],
    b"\xef\xbb\xbfdata: marked\n\n": [b"marked"],
    "data: é日本🙂\n\ndata: δ\n\n".encode(): ["é日本🙂".encode(), "δ".encode()],
    b"data: cut off": [],
    b"data: cut off\n": [],
    b"other: x\nnonsense\n\ndata: y\n\n": [b"y"],
    b"data: a: b\n\ndatas: z\n\n": [b"a: b"],
}


def parse(pieces: Iterable[bytes]) -> list[bytes]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)]


@pytest.mark.parametrize(("stream", "events"), STREAMS.items(), ids=range(len(STREAMS)))
def test_every_pair_of_split_points_gives_the_same_events(stream: bytes, events: list[bytes]) -> None:
    assert parse([stream]) == events
    assert parse(stream[i : i + 1] for i in range(len(stream))) == events
    for first in range(len(stream) + 1):
        for second in range(first, len(stream) + 1):
            assert parse([stream[:first], stream[first:second], stream[second:]]) == events


def test_long_streams_in_random_pieces() -> None:
    chance = random.Random(7)
    for _ in range(200):
        parts = chance.choices(list(STREAMS)[:10], k=30)
        stream = b"".join(parts)
        expected = [event for part in parts for event in STREAMS[part]]
        cuts = sorted(chance.randrange(len(stream)) for _ in range(chance.randrange(60)))
        bounds = [0, *cuts, len(stream)]
        assert parse(stream[a:b] for a, b in pairwise(bounds)) == expected


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 300, b"data: xxxxxxxxxx\n" * 30])
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    parser = SseParser(limit=256)
    with pytest.raises(SseError):
        _ = [parser.feed(piece[i : i + 1]) for i in range(len(piece))]


def test_many_small_events_are_not_one_large_one() -> None:
    parser = SseParser(limit=256)
    assert len([e for _ in range(100) for e in parser.feed(b"data: xxxxxxxxxx\r\n\r\n")]) == 100
