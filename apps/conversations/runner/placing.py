"""What a run asks of the admission: its lane, its tier and how much of a replica it may need. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from apps.conversations.runner.context import MESSAGE_OVERHEAD, Context, estimate_tokens
from apps.conversations.types import ClaimedRun
from apps.conversations.types import Lane as RunLane
from inference.client import Ask, Lane, Tier


def ask_of(run: ClaimedRun, context: Context, *, prefer: str, failed: Sequence[str]) -> Ask:
    """Of a limit that callers set high to be safe only what answers usually need is reserved: an engine whose memory
    runs out after all makes answers wait, not fail. `failed`: replicas that broke off in this attempt. The ticket is
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
        output_tokens=min(context.max_tokens, settings.RUN_RESERVED_OUTPUT_TOKENS),
        prefer=prefer,
        avoid=tuple(failed),
        accepted=run.attempt > 1 or bool(failed),
    )


def lane_of(run: ClaimedRun, prompt_tokens: int) -> Lane:
    """Batch work stays batch; a long prompt has a lane of its own, so that it cannot freeze short ones."""
    if run.lane == RunLane.BATCH:
        return Lane.BATCH
    return Lane.LONG if prompt_tokens > settings.RUN_LONG_PROMPT_TOKENS else Lane.INTERACTIVE
