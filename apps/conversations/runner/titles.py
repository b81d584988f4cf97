"""Names a conversation after its first answer, off the critical path. The question's first words stay if it fails."""

from __future__ import annotations

import asyncio
import re

import structlog
from django.db import InterfaceError, OperationalError

from apps.conversations.runner.request import cache_salt
from apps.conversations.services import runs
from apps.conversations.types import ClaimedRun
from apps.core.db import in_db
from inference.client import Ask, Lane, ReplicaPool, Tier
from inference.protocol import ChatMessage, GenerationRequest, InferenceError

log = structlog.get_logger(__name__)
TIMEOUT_S = 20
MAX_TOKENS = 16
MOST_PROMPT_TOKENS = 384
MAX_WORDS = 9
PRIORITY = 10
_ASK = "Write a title of at most six words for this conversation. Answer with the title alone."
_FILLER = re.compile(r"^(title|conversation|topic|sure|here)\b", re.IGNORECASE)


async def make_title(pool: ReplicaPool, run: ClaimedRun, question: str, answer: str) -> None:
    """Ask the model for a title and keep it when it is one. Failures are only logged."""
    excerpt = f"Question: {question[:400]}\nAnswer: {answer[:400]}"
    request = GenerationRequest(
        request_id=f"{run.id.hex}-title",
        model=run.model,
        messages=(ChatMessage("system", _ASK), ChatMessage("user", excerpt)),
        max_tokens=MAX_TOKENS,
        temperature=0.0,
        cache_salt=cache_salt(run.organization_id),
        priority=PRIORITY,
    )
    text = ""
    try:
        async with asyncio.timeout(TIMEOUT_S), pool.reserve(_place(run)) as lease:
            stream = lease.engine.generate(request)
            try:
                async for delta in stream:
                    text += delta.text
            finally:
                await stream.aclose()
        if title := clean_title(text):
            await in_db(runs.set_title, run.conversation_id, title)
    except (InferenceError, TimeoutError, OperationalError, InterfaceError) as error:
        log.info("title.skipped", error=type(error).__name__)


def _place(run: ClaimedRun) -> Ask:
    """A title is work that can wait."""
    return Ask(
        ticket=f"{run.id.hex}-title",
        model=run.model,
        lane=Lane.BATCH,
        tier=Tier(run.tier),
        user=str(run.user_id),
        organization=str(run.organization_id),
        prompt_tokens=MOST_PROMPT_TOKENS,
        output_tokens=MAX_TOKENS,
        region=run.region,
    )


def clean_title(text: str) -> str:
    """A model's reply as a title; empty when it is not fit to be one."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    line = line.strip(" \"'`*#_-:.").removeprefix("Title:").strip(" \"'*")
    if not 3 <= len(line) <= 80 or len(line.split()) > MAX_WORDS or _FILLER.match(line):
        return ""
    return line
