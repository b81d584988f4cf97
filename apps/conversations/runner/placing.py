"""What a run asks of the admission: its lane, its tier and how much of a replica it may need."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from django.conf import settings

from apps.conversations.runner.context import MESSAGE_OVERHEAD, Context, estimate_tokens
from apps.conversations.types import ClaimedRun
from apps.conversations.types import Lane as RunLane
from inference.client import Ask, Lane, Tier


class AnswerLengths:
    """How long the answers of each model were lately, in tokens: what to reserve for the next one.

    Callers set limits high to be safe, so a limit says little. An engine whose memory runs out after all makes
    answers wait, not fail. Until enough was seen RUN_RESERVED_OUTPUT_TOKENS is reserved, and never more than that.
    """

    REMEMBERED = 256
    ENOUGH = 32
    LEAST = 256

    def __init__(self) -> None:
        self._seen: dict[str, deque[int]] = {}

    def note(self, model: str, tokens: int) -> None:
        self._seen.setdefault(model, deque(maxlen=self.REMEMBERED)).append(tokens)

    def expected(self, model: str) -> int:
        """Nineteen of twenty answers were not longer; at least LEAST."""
        most, seen = int(settings.RUN_RESERVED_OUTPUT_TOKENS), self._seen.get(model, ())
        if len(seen) < self.ENOUGH:
            return most
        return min(most, max(self.LEAST, sorted(seen)[len(seen) * 19 // 20]))


def ask_of(run: ClaimedRun, context: Context, *, output_tokens: int, prefer: str, failed: Sequence[str]) -> Ask:
    """`output_tokens` are expected of the answer. `failed`: replicas that broke off in this attempt. The ticket is
    the run's: a new attempt takes the place of the one before it. No answer that was begun is refused its place."""
    prompt = sum(estimate_tokens(message.content) + MESSAGE_OVERHEAD for message in context.messages)
    return Ask(
        ticket=run.id.hex,
        model=run.model,
        lane=lane_of(run, prompt),
        tier=Tier(run.tier),
        user=str(run.user_id),
        organization=str(run.organization_id),
        prompt_tokens=prompt,
        output_tokens=min(context.max_tokens, output_tokens),
        prefer=prefer,
        avoid=tuple(failed),
        accepted=run.attempt > 1 or bool(failed),
        region=run.region,
    )


def lane_of(run: ClaimedRun, prompt_tokens: int) -> Lane:
    """Batch work stays batch; a long prompt has a lane of its own, so that it cannot freeze short ones."""
    if run.lane == RunLane.BATCH:
        return Lane.BATCH
    return Lane.LONG if prompt_tokens > settings.RUN_LONG_PROMPT_TOKENS else Lane.INTERACTIVE
