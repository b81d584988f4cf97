"""One answer between a producer and a slow or fast consumer."""

from __future__ import annotations

import asyncio

import pytest

from inference.engines.stream import BUFFER_CHARS, MergedStream, Ticker
from inference.protocol import Delta, EngineFailed, EngineOverloaded, EngineUnavailable, Usage


class Producer:
    """A source that only notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def open(self, stream: MergedStream) -> None:
        self.told.append("open")

    def drain(self, stream: MergedStream) -> None:
        self.told.append("drain")

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    async def close(self, *, ended: bool) -> None:
        self.told.append(f"close ended={ended}")


def make(period: float = 0.02) -> tuple[Producer, MergedStream]:
    producer = Producer()
    return producer, MergedStream(producer, Ticker(period))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_slow_consumer_gets_one_delta_with_all_that_came() -> None:
    _, stream = make()
    stream.set_prompt((1, 2))
    for i in range(100):
        stream.push(f"{i} ", [i], 1)
    delta = await anext(stream)
    assert delta.text == "".join(f"{i} " for i in range(100))
    assert (delta.tokens, delta.token_ids, delta.prompt_token_ids) == (100, tuple(range(100)), (1, 2))
    stream.push("x", [7], 1)
    stream.finish("stop", Usage(2, 101))
    assert await anext(stream) == Delta("x", (7,), 1, None, "stop", Usage(2, 101))
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    assert stream.take() is None


async def test_the_first_data_wakes_at_once_and_later_data_at_the_tick() -> None:
    _, stream = make(period=0.05)
    loop = asyncio.get_running_loop()
    first = asyncio.create_task(anext(stream))
    await settle()
    stream.push("a", None, 1)
    began = loop.time()
    await first
    assert loop.time() - began < 0.04
    wakes = []

    async def consume() -> None:
        wakes.extend([delta.text async for delta in stream])

    consumer = asyncio.create_task(consume())
    for i in range(30):
        stream.push(str(i % 10), None, 1)
        await asyncio.sleep(0.005)
    stream.finish("stop", None)
    await consumer
    assert "".join(wakes) == "0123456789" * 3
    assert len(wakes) <= 8


async def test_the_end_does_not_wait_for_the_tick() -> None:
    _, stream = make(period=30)
    stream.push("a", None, 1)
    await anext(stream)
    waiting = asyncio.create_task(anext(stream))
    await settle()
    stream.push("b", None, 1)
    await settle()
    assert not waiting.done()
    stream.finish("length", None)
    assert (await asyncio.wait_for(waiting, 1)).finish_reason == "length"


async def test_text_comes_before_the_error_after_it() -> None:
    _, stream = make()
    stream.push("kept", [5], 1)
    stream.fail(EngineFailed("gone"))
    assert (await anext(stream)).text == "kept"
    with pytest.raises(EngineFailed, match="gone"):
        await anext(stream)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_take_raises_what_iterating_raises() -> None:
    _, stream = make()
    stream.push("kept", [5], 1)
    await anext(stream)
    assert stream.take() is None
    stream.fail(EngineOverloaded())
    with pytest.raises(EngineFailed):
        stream.take()
    assert stream.take() is None


async def test_a_break_before_any_token_may_be_tried_elsewhere() -> None:
    _, stream = make()
    stream.fail(EngineFailed("died early"))
    with pytest.raises(EngineUnavailable, match="died early"):
        await anext(stream)


async def test_a_consumer_that_is_far_behind_stops_the_source() -> None:
    producer, stream = make()
    stream.push("a", None, 1)
    await anext(stream)
    for _ in range(BUFFER_CHARS // 1000 + 3):
        stream.push("x" * 1000, None, 1)
    assert producer.told.count("pause") == 1
    assert stream.take() is not None
    assert producer.told[-1] == "resume"


async def test_closing_tells_the_source_once_whether_it_was_over() -> None:
    producer, stream = make()
    stream.push("a", None, 1)
    await anext(stream)
    waiting = asyncio.create_task(anext(stream))
    await settle()
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await waiting
    await stream.aclose()
    assert producer.told[-2:] == ["close ended=False", "close ended=True"]
    assert stream.take() is None


async def test_notified_data_is_read_when_the_consumer_pulls() -> None:
    class Lazy(Producer):
        def drain(self, stream: MergedStream) -> None:
            super().drain(stream)
            stream.push("later", [1, 2], 2)

    producer = Lazy()
    stream = MergedStream(producer, Ticker())
    waiting = asyncio.create_task(anext(stream))
    await settle()
    for _ in range(10):
        stream.notify()
    assert (await waiting).tokens == 2
    assert producer.told == ["open", "drain"]
