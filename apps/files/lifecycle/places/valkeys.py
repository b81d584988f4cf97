"""All keys and values of Valkey: event logs, hints, limits, caches, queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from django.conf import settings

from apps.core.valkey import valkey
from apps.files.lifecycle.places.needles import Needles, unwrapped

BATCH = 1_000
ON_ITS_WAY = "a queue's message: names the file, and goes when a worker reads it"
SHORT_LIVED = "a mark that names the file and expires within a second"
_UNACKED = "unacked"


def search(needles: Needles) -> Iterator[tuple[str, int, str]]:
    """(key, entries, why they may stay) of each key that is named after the file or holds something of it."""
    for key in valkey().scan_iter(count=BATCH):
        found = [item for item in _entries(key) if needles.in_bytes(unwrapped(item))]
        named = needles.in_bytes(key)
        if found or named:
            content = any(needles.content_in_bytes(unwrapped(item)) for item in (key, *found))
            yield key.decode(errors="replace"), max(1, len(found)), "" if content else _kept(key)


def _kept(key: bytes) -> str:
    routes = {str(route["queue"]) for route in settings.CELERY_TASK_ROUTES.values()}
    if key.decode(errors="replace") in {settings.CELERY_TASK_DEFAULT_QUEUE, _UNACKED, *routes}:
        return ON_ITS_WAY
    return SHORT_LIVED if 0 <= valkey().pttl(key) <= 1_000 else ""


def _entries(key: bytes) -> Iterator[bytes]:
    """Everything under a key, piece by piece; nothing when it went meanwhile."""
    readers: dict[bytes, Callable[[bytes], Iterator[bytes]]] = {
        b"string": lambda name: iter([cast(bytes, valkey().get(name) or b"")]),
        b"list": _list,
        b"hash": lambda name: _flat(valkey().hscan_iter(name, count=BATCH)),
        b"set": lambda name: iter(valkey().sscan_iter(name, count=BATCH)),
        b"zset": lambda name: (member for member, _ in valkey().zscan_iter(name, count=BATCH)),
        b"stream": _stream,
    }
    reader = readers.get(cast(bytes, valkey().type(key)))
    return reader(key) if reader else iter(())


def _flat(pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
    for field, value in pairs:
        yield field
        yield value


def _list(key: bytes) -> Iterator[bytes]:
    start = 0
    while batch := cast(list[bytes], valkey().lrange(key, start, start + BATCH - 1)):
        yield from batch
        start += BATCH


def _stream(key: bytes) -> Iterator[bytes]:
    after = b"-"
    while batch := cast(list[tuple[bytes, dict[bytes, bytes]]], valkey().xrange(key, after, count=BATCH)):
        for _, fields in batch:
            yield from _flat(cast(Any, fields.items()))
        after = b"(" + batch[-1][0]
