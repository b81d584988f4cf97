"""A prompt that fills a model's context, and not more: corrects estimated sizes by what the replica counts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import structlog

from apps.conversations.runner.context import Context
from inference.protocol import ChatMessage, InferenceError

log = structlog.get_logger(__name__)
MAX_COUNTS = 3
COUNT_TIMEOUT_S = 2.0
FULL = 0.9
"""A prompt that fits and has this part of its limit is not made longer."""


async def fit_context(
    build: Callable[[float], Context],
    count: Callable[[Sequence[ChatMessage]], Awaitable[int]],
    *,
    timeout_s: float = COUNT_TIMEOUT_S,
) -> Context:
    """The context by exact counts where the estimate is near its limit, else by the estimate, which costs nothing.

    `build` takes the density of `build_context`. Where `count` fails or is slow, the best one known so far.
    """
    context = build(1.0)
    if not context.near_limit:
        return context
    best, most = None, 0
    for _ in range(MAX_COUNTS):
        try:
            async with asyncio.timeout(timeout_s):
                tokens = await count(context.messages)
        except (InferenceError, TimeoutError) as error:
            log.info("context.estimated", error=type(error).__name__)
            break
        if most < tokens <= context.limit:
            best, most = context, tokens
        corrected = build(tokens / context.estimated)
        if corrected.messages == context.messages:
            return corrected
        if FULL * context.limit <= tokens <= context.limit:
            return context
        context = corrected
    return best or context
