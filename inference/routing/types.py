"""What routing is told and what it answers: the question, the models that could answer, the policy, the decision.

Leaves to `router` how they are combined, to `scorer` how hard a question looks, and to admission which replica of
the chosen model answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from inference.protocol import InferenceError

NO_FACTS: Mapping[str, Any] = MappingProxyType({})


ABILITIES = frozenset({"tools", "structured"})
"""What a model is taken to be able to, unless the manifest says that it cannot."""


class Step(StrEnum):
    """Where in the order of decisions a reason was given."""

    USER = "user"
    POLICY = "policy"
    RULE = "rule"
    COMPLEXITY = "complexity"
    LOAD = "load"
    ESCALATION = "escalation"


@dataclass(frozen=True, slots=True)
class Question:
    """`text`: what the person wrote last. `history_tokens`: the conversation before it. `prompt_tokens`: all that is
    sent. `requested`: `auto` or a model's id. `region`: where the data must stay, empty when it may go anywhere.
    `needs`: abilities without which the answer cannot be given."""

    text: str
    history_tokens: int
    prompt_tokens: int
    requested: str
    organization: str
    region: str = ""
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model. `level` 1 is the smallest. `context_length` 0 is unknown. `regions`: where its replicas stand,
    whether they are ready or not.
    `pressure`: work over slots, above 1 when some waits. `cost_per_mtok`: of a million tokens, in any one currency.
    `quality`: measured share of answers that were good (0..1), None until measured."""

    id: str
    level: int
    context_length: int
    capabilities: frozenset[str]
    regions: frozenset[str]
    ready: bool
    pressure: float
    cost_per_mtok: float
    quality: float | None


@dataclass(frozen=True, slots=True)
class Reason:
    """One step's part in a decision. `text` is for people, `facts` for machines (JSON values)."""

    step: Step
    text: str
    facts: Mapping[str, Any] = field(default_factory=lambda: NO_FACTS)


@dataclass(frozen=True, slots=True)
class Decision:
    """`alternatives`: the other models that policy and rules would allow, next best first. `score`: the complexity
    estimate, None where none was made."""

    model: str
    level: int
    reasons: tuple[Reason, ...]
    alternatives: tuple[str, ...] = ()
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A floor or a fixed level for questions of a kind. All conditions that are set must hold; `words_at_most` bounds
    the length of the text itself. A rule with `fixed` decides; one without sets the lowest level."""

    name: str
    level: int
    fixed: bool = False
    needs: frozenset[str] = frozenset()
    prompt_tokens_from: int = 0
    history_tokens_from: int = 0
    words_at_most: int | None = None

    def matches(self, question: Question) -> bool:
        return (
            self.needs <= question.needs
            and question.prompt_tokens >= self.prompt_tokens_from
            and question.history_tokens >= self.history_tokens_from
            and (self.words_at_most is None or len(question.text.split()) <= self.words_at_most)
        )


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """What an organization allows and prefers. `models` None allows all. `output_tokens` is the room an answer needs
    in the context. `thresholds`: ascending scores, each of which takes one level more; None takes the scorer's own.
    `busy`: the pressure from which a stronger model with room is used instead. `least_quality`: a model measured
    below it is used only when there is no other."""

    models: frozenset[str] | None = None
    level_at_most: int | None = None
    output_tokens: int = 512
    rules: tuple[Rule, ...] = ()
    thresholds: tuple[float, ...] | None = None
    busy: float = 1.0
    least_quality: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """`score`: expected gain of the stronger model, as a share of right answers (-1..1). `threshold`: from where the
    stronger one is worth it. `unfamiliar` says why the score is not to be trusted, empty when it is."""

    score: float
    threshold: float
    unfamiliar: str = ""


class Scorer(Protocol):
    """A complexity estimate: deterministic, without I/O, well under a millisecond of CPU."""

    def estimate(self, text: str) -> Estimate: ...


class NoCandidate(InferenceError):
    """No model may answer this question. `str(error)` and `reasons` are for people; `excluded` says for each model
    why not; `known` is false when the requested name is no model at all."""

    def __init__(self, text: str, *, excluded: Mapping[str, str] = NO_FACTS, known: bool = True) -> None:
        super().__init__(text)
        self.excluded = excluded
        self.known = known
        self.reasons = (Reason(Step.POLICY, text, {"excluded": dict(excluded)}),)
