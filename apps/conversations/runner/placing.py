"""What a run asks of the admission: its lane, its tier, how much of a replica it may need, and what it begins with."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from itertools import takewhile

import orjson
from django.conf import settings

from apps.conversations.runner.context import Context, estimate_messages, estimate_tools
from apps.conversations.services.line import lane_of
from apps.conversations.types import LEAST_OUTPUT_TOKENS, ClaimedRun
from apps.core.isolation import cache_salt
from inference.client import Ask, Tier
from inference.protocol import ChatMessage

BEGINNING_FROM, BEGINNING_READ = 2_000, 8_000
"""Characters: a shorter beginning is read again faster than a busier replica is waited for; of a longer one so many
count."""


class AnswerLengths:
    """How long the answers of each model were lately, in tokens: what to reserve for the next one.

    Callers set limits high to be safe, so a limit says little. An engine whose memory runs out after all makes
    answers wait, not fail. Until enough was seen RUN_RESERVED_OUTPUT_TOKENS is reserved, and never more than that.
    """

    REMEMBERED = 256
    ENOUGH = 32

    def __init__(self) -> None:
        self._seen: dict[str, deque[int]] = {}

    def note(self, model: str, tokens: int) -> None:
        self._seen.setdefault(model, deque(maxlen=self.REMEMBERED)).append(tokens)

    def expected(self, model: str) -> int:
        """Nineteen of twenty answers were not longer; at least LEAST_OUTPUT_TOKENS."""
        most, seen = int(settings.RUN_RESERVED_OUTPUT_TOKENS), self._seen.get(model, ())
        if len(seen) < self.ENOUGH:
            return most
        return min(most, max(LEAST_OUTPUT_TOKENS, sorted(seen)[len(seen) * 19 // 20]))


def beginnings(run: ClaimedRun, messages: Sequence[ChatMessage]) -> tuple[str, ...]:
    """Digests of what the prompt begins with, for replicas that have read it already: up to its first question, and
    before that. None of what is too short to matter. Organizations share none, since they share no cache either."""
    before = list(takewhile(lambda message: message.role != "user", messages))
    tools = run.params.extra.get("tools")
    told = orjson.dumps(tools)[:BEGINNING_READ] if tools else b""
    digest = blake2b(told, digest_size=16, key=cache_salt(run.organization_id).encode())
    read, found = len(told), list[str]()
    for part in (before, messages[len(before) : len(before) + 1]):
        said = "".join(f"\0{message.role}\0{message.spoken[:BEGINNING_READ]}" for message in part)
        more = said[: max(0, BEGINNING_READ - read)]
        digest.update(more.encode())
        read += len(more)
        if more and read >= BEGINNING_FROM:
            found.insert(0, digest.hexdigest())
    return tuple(found)


def ask_of(
    run: ClaimedRun,
    context: Context,
    *,
    output_tokens: int,
    prefer: str,
    failed: Sequence[str],
    looked_up: int = 0,
) -> Ask:
    """`output_tokens` are expected of the answer; `looked_up`: tokens that the prompt may grow by. `failed`: replicas
    that broke off in this attempt. The ticket is the run's: the web got its place, or its place in line, and a new
    attempt takes that of the one before it. What was accepted then is not refused now."""
    prompt = estimate_messages(context.messages) + estimate_tools(run.params)
    return Ask(
        ticket=run.id.hex,
        model=run.model,
        lane=lane_of(run.lane, prompt),
        tier=Tier(run.tier),
        user=str(run.user_id),
        organization=str(run.organization_id),
        prompt_tokens=prompt + looked_up,
        output_tokens=min(context.max_tokens, output_tokens),
        prefer=prefer,
        avoid=tuple(failed),
        accepted=True,
        region=run.region,
        prefixes=beginnings(run, context.messages),
    )
