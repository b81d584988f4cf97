"""What a replica is asked for a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.conversations.runner.context import Context
from apps.conversations.runner.writer import RunWriter
from apps.conversations.types import ClaimedRun
from apps.core.isolation import cache_salt
from inference.client import Tier
from inference.protocol import GenerationRequest, ModelInfo, Resume
from inference.writing import Commission


def build_request(
    run: ClaimedRun, context: Context, model: ModelInfo, written: RunWriter, *, number: int, extra: Mapping[str, Any]
) -> GenerationRequest:
    """The request of one pass, the `number`-th of this attempt, that goes on from what is written. `extra`: the run's
    additions as engines get them."""
    params, resume = run.params, None
    if written.text_length or written.token_ids:
        ids = tuple(written.token_ids) if written.ids_known else ()
        resume = Resume(written.prompt_token_ids if ids else (), ids, written.text)
    return GenerationRequest(
        request_id=f"{run.id.hex}-{run.attempt}-{number}",
        model=model.id,
        messages=context.messages,
        max_tokens=context.max_tokens,
        temperature=model.temperature if params.temperature is None else params.temperature,
        top_p=model.top_p if params.top_p is None else params.top_p,
        stop=params.stop,
        seed=params.seed,
        cache_salt=cache_salt(run.organization_id),
        priority=run.priority,
        resume=resume,
        session=run.conversation_id.hex,
        extra=extra,
    )


def commission_for(run: ClaimedRun, *, within_s: float) -> Commission:
    """For texts that are written after a run, for its owner and by its model, within its region."""
    return Commission(
        model=run.model,
        tier=Tier(run.tier),
        user=str(run.user_id),
        organization=str(run.organization_id),
        region=run.region,
        cache_salt=cache_salt(run.organization_id),
        within_s=within_s,
    )
