"""What others may hold of conversations, messages and runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from inference.continuation import NOBODY, Origin
from inference.protocol import ChatMessage


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"
    FAILED = "failed"


ACTIVE = (RunState.QUEUED, RunState.RUNNING, RunState.WAITING_APPROVAL)
TERMINAL = (RunState.COMPLETED, RunState.INCOMPLETE, RunState.CANCELLED, RunState.FAILED)


CHARS_PER_TOKEN = 3.2
LEAST_OUTPUT_TOKENS = 256
"""What is reserved for an answer at the least, unless its caller wants less."""


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, on the high side for languages with long words and for code."""
    return int(len(text.encode()) / CHARS_PER_TOKEN) + 1


def queued_at(moment: datetime) -> dict[str, Any]:
    """The first entry of a run's transitions."""
    return {"state": RunState.QUEUED.value, "at": moment.isoformat(), "attempt": 0, "by": "web"}


class Lane(StrEnum):
    INTERACTIVE = "interactive"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class RunParams:
    """Sampling a caller may set; None leaves the model's own default."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def needs(self) -> frozenset[str]:
        """The abilities that a model must have to answer by these."""
        tools = bool(self.extra.get("tools")) and self.extra.get("tool_choice") != "none"
        found = (("tools", tools), ("structured", "response_format" in self.extra))
        return frozenset(name for name, needed in found if needed)


@dataclass(frozen=True, slots=True)
class StartedRun:
    run_id: UUID
    conversation_id: UUID
    answer_id: UUID
    created: bool = True


@dataclass(frozen=True, slots=True)
class RunFrame:
    """One event of a run's log: its sequence number and its JSON."""

    seq: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Turn:
    """A message on the branch that a run continues, oldest first."""

    role: Literal["user", "assistant"]
    text: str
    file_ids: tuple[UUID, ...] = ()
    replica: str = ""  # which wrote it, so has it in its prefix cache perhaps
    id: UUID | None = None
    number: int = 0  # in its branch, from 1; 0 where nobody counted


@dataclass(frozen=True, slots=True)
class Memo:
    """A summary of a branch's first `turns` messages, kept under the last of them."""

    message_id: UUID
    turns: int
    text: str
    model: str


@dataclass(frozen=True, slots=True)
class OlderTurns:
    """What is known of a branch before the turns that are sent. `total`: messages of it, the question included. `hits`
    are those that the question needs, best first; `mode` is "keyword" where no vectors were compared."""

    total: int
    hits: tuple[Turn, ...]
    mode: Literal["hybrid", "keyword"]
    memo: Memo | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What Postgres holds of an unfinished answer. `seq` is the last event it covers, `origin` who wrote it,
    `dispatched` how many tools were started for it."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    prompt_token_ids: tuple[int, ...] = ()
    completion_tokens: int = 0
    seq: int = 0
    origin: Origin = NOBODY
    dispatched: int = 0


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A run as its claim returned it. `prompt` is empty when the conversation is the prompt."""

    id: UUID
    organization_id: UUID
    user_id: UUID
    conversation_id: UUID
    question_id: UUID | None
    answer_id: UUID
    attempt: int
    requested: str
    model: str
    tier: str
    lane: str
    priority: int
    params: RunParams
    prompt: tuple[ChatMessage, ...]
    checkpoint: Checkpoint
    cancel_requested: bool
    decision: Mapping[str, Any] | None = None

    @property
    def region(self) -> str:
        """Where it must be answered, by the policy that held when it was accepted; empty for anywhere."""
        return str((self.decision or {}).get("region", ""))


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run as the runner saw it."""

    state: RunState
    text: str
    finish_reason: str | None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    replica: str = ""
    waited_ms: int | None = None
    ttft_ms: int | None = None
    decision: Mapping[str, Any] | None = None
    citations: tuple[dict[str, Any], ...] = ()
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    error: Mapping[str, Any] | None = None
    reconstructed: tuple[Mapping[str, Any], ...] = ()
    notices: tuple[Mapping[str, Any], ...] = ()
    seq: int = 0
