"""What a replica is asked for a run."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from apps.conversations.runner.context import Context
from apps.conversations.runner.writer import RunWriter
from apps.conversations.types import ClaimedRun
from inference.protocol import GenerationRequest, ModelInfo, Resume


def cache_salt(organization_id: object) -> str:
    """Isolates an organization's prefix cache: hex, since the engine refuses some characters."""
    return hmac.new(settings.CACHE_SALT_SECRET.encode(), str(organization_id).encode(), hashlib.sha256).hexdigest()


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
