"""Asking a server through the HTTP engine, for tests that look at what goes over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from inference.engines.http import Timeouts
from inference.engines.openai_http import OpenAIEngine
from inference.protocol import ChatMessage, GenerationRequest, InferenceError, ReplicaInfo, ReplicaState
from tests.contracts.raw_server import token

DONE = b"[DONE]"
QUICK = Timeouts(connect=1, first_byte=1, silence=0.6, first_token=1.2, idle=0.6, small=1)


def info_of(url: str, **more: object) -> ReplicaInfo:
    return ReplicaInfo("r", "fake", url, "openai", ReplicaState.READY, **more)  # type: ignore[arg-type]


def ask(text: str = "hello", **more: object) -> GenerationRequest:
    values: dict[str, object] = {"max_tokens": 100_000, **more}
    id = str(values.pop("request_id", "req-1"))
    return GenerationRequest(id, "fake", (ChatMessage("user", text),), **values)  # type: ignore[arg-type]


async def read(engine: OpenAIEngine, request: GenerationRequest) -> tuple[str, InferenceError | None]:
    """The text, and the error that ended it."""
    text = ""
    answer = engine.generate(request)
    try:
        async for delta in answer:
            text += delta.text
    except InferenceError as error:
        return text, error
    finally:
        await answer.aclose()
    return text, None


@asynccontextmanager
async def engine_for(url: str, timeouts: Timeouts = QUICK, **more: object) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(info_of(url, **more), timeouts=timeouts)
    try:
        yield engine
    finally:
        await engine.close()


ONE = token("kept")
