"""Names a conversation after its first answer, off the critical path. The question's first words stay if it fails."""

from __future__ import annotations

import re

import structlog
from django.db import InterfaceError, OperationalError

from apps.conversations.runner.request import commission_for
from apps.conversations.services import runs
from apps.conversations.types import ClaimedRun
from apps.core.db import in_db
from inference.client import ReplicaPool
from inference.protocol import ChatMessage, InferenceError
from inference.writing import Text, write

log = structlog.get_logger(__name__)
TIMEOUT_S = 20
MAX_TOKENS = 16
MOST_PROMPT_TOKENS = 384
MAX_WORDS = 9
_ASK = "Write a title of at most six words for this conversation. Answer with the title alone."
_FILLER = re.compile(r"^(title|conversation|topic|sure|here)\b", re.IGNORECASE)


async def make_title(pool: ReplicaPool, run: ClaimedRun, question: str, answer: str) -> None:
    """Ask the model for a title and keep it when it is one. Failures are only logged."""
    excerpt = f"Question: {question[:400]}\nAnswer: {answer[:400]}"
    messages = (ChatMessage("system", _ASK), ChatMessage("user", excerpt))
    try:
        text = await write(
            pool,
            commission_for(run, within_s=TIMEOUT_S),
            Text(messages, MOST_PROMPT_TOKENS, MAX_TOKENS),
            ticket=f"{run.id.hex}-title",
        )
        if title := clean_title(text):
            await in_db(runs.set_title, run.conversation_id, title)
    except (InferenceError, OperationalError, InterfaceError) as error:
        log.info("title.skipped", error=type(error).__name__)


def clean_title(text: str) -> str:
    """A model's reply as a title; empty when it is not fit to be one."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    line = line.strip(" \"'`*#_-:.").removeprefix("Title:").strip(" \"'*")
    if not 3 <= len(line) <= 80 or len(line.split()) > MAX_WORDS or _FILLER.match(line):
        return ""
    return line
