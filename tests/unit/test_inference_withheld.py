"""What a reader gets of an answer that is held back, and when."""

from __future__ import annotations

import pytest

from inference.engines.fake import FakeEngine
from inference.engines.script import Script, expected_text
from inference.protocol import ChatMessage, Delta, EngineFailed, EngineUnavailable, GenerationRequest
from inference.withheld import WithheldStream


class Refused(Exception):
    pass


def refuse(answer: Delta) -> Delta:
    raise Refused


def ask(text: str, **more: object) -> WithheldStream:
    engine = FakeEngine(default=Script(itl_ms=2), merge_s=0.005)
    request = GenerationRequest("r", "fake", (ChatMessage("user", text),), 100, extra={"tools": [{}]})
    return WithheldStream(engine.generate(request), **more)  # type: ignore[arg-type]


async def read(stream: WithheldStream) -> list[Delta]:
    return [delta async for delta in stream]


async def test_all_of_it_comes_at_once_when_it_was_checked() -> None:
    (whole,) = await read(ask("n:20 seed:a", settle=lambda answer: answer))
    assert (whole.text, whole.tokens, len(whole.token_ids)) == (expected_text(20, "a"), 20, 20)
    assert whole.prompt_token_ids
    assert whole.finish_reason == "stop"
    assert whole.usage is not None


async def test_what_is_refused_is_kept_for_counting() -> None:
    stream = ask("n:20", settle=refuse)
    with pytest.raises(Refused):
        await anext(stream)
    assert stream.kept.tokens == 20
    assert stream.kept.usage is not None


async def test_text_goes_on_as_it_comes_once_it_may_be_seen() -> None:
    stream = ask("n:60 seed:a", settle=refuse, holds=lambda text: len(text) < 50)
    deltas = await read(stream)
    assert len(deltas) > 2
    assert len(deltas[0].text) >= 50
    assert "".join(delta.text for delta in deltas) == expected_text(60, "a")
    assert stream.kept == Delta()


async def test_a_stream_that_breaks_off_gives_nothing_of_what_was_held() -> None:
    stream = ask("n:20 die:5", settle=lambda answer: answer)
    with pytest.raises((EngineFailed, EngineUnavailable)):
        await anext(stream)
    assert stream.kept.tokens == 5


async def test_calls_come_with_the_end() -> None:
    (whole,) = await read(ask("call:now {}", settle=lambda answer: answer))
    assert [(call.name, call.arguments) for call in whole.tool_calls] == [("now", "{}")]
