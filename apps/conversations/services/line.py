"""A run's place in the shared line, taken before the run is written: who cannot be served is told at once, and why.

The runner that takes the run up asks again with the same ticket and exact sizes. While Valkey is away or no runner
lives there is no line, and `admission` counts instead.
"""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

import redis
from django.conf import settings

from apps.accounts.types import Actor, ModelPolicy
from apps.conversations.metrics import REJECTIONS
from apps.conversations.services.registry import known_candidates, known_line, known_models
from apps.conversations.services.routing import usable_models
from apps.conversations.types import LEAST_OUTPUT_TOKENS, estimate_tokens
from apps.conversations.types import Lane as RunLane
from apps.core.errors import AppError, Overloaded, RateLimited, TooLarge
from apps.core.valkey import valkey
from inference.admission import Ask, Gate, Lane, Policy, Tier
from inference.admission.verbs import UNBOUNDED, NoneReady, Refused
from inference.protocol import ModelInfo
from inference.queueing import WaitState

_ADVICE = {
    "user_limit": "Wait for one to end, or stop one.",
    "organization_limit": "Wait for one to end.",
    "user_tokens": "Try again later.",
    "organization_tokens": "Try again later.",
}


def admission_policy() -> Policy:
    """With the operator's budgets; the same in all processes."""
    policy: Policy = settings.ADMISSION_POLICY
    return policy


def runs_at_most(actor: Actor) -> int:
    """Answers that the actor may have in progress, also while there is no line."""
    return admission_policy().users[Tier(actor.tier)].concurrency or UNBOUNDED


@lru_cache(maxsize=1)
def _gate() -> Gate:
    return Gate(valkey, admission_policy())


def enter_line(actor: Actor, model: ModelInfo, run_id: UUID, *, text: str, max_tokens: int | None) -> bool:
    """Ask for a place in the run's name. False when there is no line to ask. `text`: what is known of the prompt.

    Raises Overloaded, RateLimited or TooLarge, with the seconds after which it is worth asking again.
    """
    ask = Ask(
        ticket=run_id.hex,
        model=known_line(model.id, actor.policy.region),
        lane=lane_of(RunLane.INTERACTIVE, prompt := estimate_tokens(text)),
        tier=Tier(actor.tier),
        user=str(actor.user_id),
        organization=str(actor.organization_id),
        prompt_tokens=prompt,
        output_tokens=min(max_tokens or LEAST_OUTPUT_TOKENS, LEAST_OUTPUT_TOKENS),
        smaller=_smaller_than(model.id, actor.policy),
    )
    try:
        reply = _gate().ask(ask)
    except redis.RedisError:
        return False
    if isinstance(reply, Refused):
        REJECTIONS.labels(model.id, reply.code).inc()
        raise _refusal(model, ask, reply)
    return not isinstance(reply, NoneReady)


def leave_line(run_id: UUID) -> None:
    """Give up a place that no runner has taken up. Without Valkey it lapses by itself."""
    try:
        _gate().leave(run_id.hex)
    except redis.RedisError:
        return


def standing_of(run_id: UUID) -> WaitState | None:
    """Where a waiting run is in the line; None when it does not wait there, or nobody knows."""
    try:
        place = _gate().where(run_id.hex)
    except redis.RedisError:
        return None
    return place if isinstance(place, WaitState) else None


def lane_of(lane: str, prompt_tokens: int) -> Lane:
    """Batch work stays batch; a long prompt has a lane of its own, so that it cannot freeze short ones."""
    if lane == RunLane.BATCH:
        return Lane.BATCH
    return Lane.LONG if prompt_tokens > settings.RUN_LONG_PROMPT_TOKENS else Lane.INTERACTIVE


def _smaller_than(model: str, policy: ModelPolicy) -> str:
    """The strongest model below this one that has room and that the organization may use; empty when there is none."""
    candidates = known_candidates(policy.region)
    level = next((c.level for c in candidates if c.id == model), 0)
    roomy = [c for c in candidates if c.level < level and c.ready and c.pressure < 1]
    if not roomy:
        return ""
    usable = {usable.id for usable in usable_models(policy)}
    best = max((c for c in roomy if c.id in usable), key=lambda c: (c.level, -c.pressure), default=None)
    return best.id if best else ""


def _refusal(model: ModelInfo, ask: Ask, refused: Refused) -> AppError:
    why = refused.error(ask).reason
    if refused.code == "too_large":
        return TooLarge(f"This is too long for {model.name}: {why}. Shorten it or choose another model.")
    wait = round(refused.retry_s or 1.0, 1)
    if advice := _ADVICE.get(refused.code):
        sentence = f"{why[0].upper()}{why[1:]}. {advice}"
        return RateLimited(sentence, retry_after_s=wait, reason=refused.code)
    other = next((m for m in known_models() if m.id == ask.smaller), None)
    if other is None:
        sentence = f"{model.name} is busy: {why}. Try again later."
        return Overloaded(sentence, retry_after_s=wait, reason=refused.code)
    sentence = f"{model.name} is busy: {why}. {other.name} has room: choose it, or try again later."
    return Overloaded(sentence, retry_after_s=wait, reason=refused.code, alternative=other.id)
