"""A scripted pooling replica beside synchronous tests, and its record in the registry."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from apps.core.valkey import valkey
from inference.engines.fake_pooling import FakePooling
from inference.engines.fake_replica import FakeReplica, Options
from inference.engines.fake_server import serve
from inference.protocol import Purpose, ReplicaInfo, ReplicaState
from inference.registry import REPLICAS_KEY, ModelCard, Record, encode_record, stamp


@contextmanager
def pooling_server() -> Iterator[tuple[str, FakePooling]]:
    """Its address and what it pools with, to be told how to misbehave."""
    with scripted_server() as (url, replica):
        yield url, replica.pooling


@contextmanager
def scripted_server(options: Options | None = None) -> Iterator[tuple[str, FakeReplica]]:
    """A server on a loop in a thread of its own: its address and what answers there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(serve(options or Options()), loop).result(10)
    try:
        yield server.url, server.replica
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def publish_pooler(
    model: str, url: str, purpose: Purpose = Purpose.EMBEDDINGS, *, state: ReplicaState = ReplicaState.READY
) -> None:
    info = ReplicaInfo(f"{model}-1", model, url, "openai", state, slots=4, capabilities=frozenset({"token_ids"}))
    record = Record(stamp(info, lasting_s=120), ModelCard(model, model, purpose=purpose))
    valkey().hset(REPLICAS_KEY, info.id, encode_record(record))
