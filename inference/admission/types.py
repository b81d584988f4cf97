"""The words of admission: what a run asks for and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Lane(StrEnum):
    """The kind of work. Long prompts have a lane of their own, so that they cannot freeze short ones."""

    INTERACTIVE = "interactive"
    LONG = "long"
    BATCH = "batch"


class Tier(StrEnum):
    """What a tenant pays for."""

    FREE = "free"
    PLUS = "plus"
    ENTERPRISE = "enterprise"


@dataclass(frozen=True, slots=True)
class Ask:
    """A run that asks for a place; `ticket` is its id, unique among all that wait or hold.

    Whoever asks with a ticket takes it over, with the age of its place in the line, from whoever had it before, so that
    a run taken over from a dead process does not take two places. `accepted`: it was in line or at work before, and is
    not refused now; it may have to wait.

    `prompt_tokens` and `output_tokens`, the most it can produce, are together reserved of a replica's KV memory.
    `prefer`: a replica with a warm prefix, used unless it is much busier than the best. `avoid`: replicas that just
    failed this ticket, used only when there is no other. `smaller`: a model that may be offered instead. `region`:
    where it must be placed, empty for anywhere; for whoever picks the line, which the scripts know as `model`.
    `budgeted`: it is held to the budgets of its user and organization, and charged to them.
    `prefixes`: hex digests of the prompt's beginnings, the longest first; where `prefer` says nothing, a replica is
    preferred that was given a prompt with one of them lately. They must differ between those who share no cache.
    """

    ticket: str
    model: str
    lane: Lane
    tier: Tier
    user: str
    organization: str
    prompt_tokens: int
    output_tokens: int
    prefer: str = ""
    avoid: tuple[str, ...] = ()
    accepted: bool = False
    smaller: str = ""
    region: str = ""
    budgeted: bool = True
    prefixes: tuple[str, ...] = ()

    @property
    def need(self) -> int:
        """Tokens of KV memory."""
        return max(1, self.prompt_tokens + self.output_tokens)


@dataclass(frozen=True, slots=True)
class Grant:
    """A slot and KV memory on `replica`, until the `async with` ends."""

    ticket: str
    replica: str
    waited_s: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits of one class: tickets and the tokens that they would reserve."""

    lane: Lane
    tier: Tier
    tickets: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How a model stands. `tokens_per_s`: reserved tokens released a second, None until measured. `level`: 0 to 4 on
    the pressure ladder."""

    slots: int
    running: int
    tokens_per_s: float | None
    level: int
    waiting: tuple[Waiting, ...]
