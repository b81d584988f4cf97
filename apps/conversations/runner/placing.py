"""What a run asks of the admission: its lane, its tier and how much of a replica it may need."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from django.conf import settings

from apps.conversations.runner.context import Context, estimate_messages, estimate_tools
from apps.conversations.services.line import lane_of
from apps.conversations.types import LEAST_OUTPUT_TOKENS, ClaimedRun
from inference.client import Ask, Tier


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
    )
