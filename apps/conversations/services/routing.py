"""Which model a run gets, and why: the user's choice, else what the question needs, among the models that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.conversations.metrics import REJECTIONS
from apps.conversations.services.registry import known_candidates, known_models
from apps.core.errors import Invalid, ModelNotFound, NoReplica
from inference.client import AUTO
from inference.protocol import ModelInfo, ModelState
from inference.routing.router import route
from inference.routing.scorer import load_scorer
from inference.routing.types import Decision, NoCandidate, Question, Reason, RoutingPolicy, Step

WAIT_FOR_MODEL_S = 15
POLICY = RoutingPolicy()


@dataclass(frozen=True, slots=True)
class Choice:
    """A model and the reasons, in the form that a run keeps."""

    model: ModelInfo
    decision: dict[str, Any]


def choose_model(requested: str, text: str = "", *, prompt_tokens: int = 0) -> Choice:
    """`text`: what was asked. Raises ModelNotFound, NoReplica, and Invalid when no model may answer this."""
    models = known_models()
    if not models:
        raise NoReplica("No model is running yet. Try again in a moment.", retry_after_s=WAIT_FOR_MODEL_S)
    if requested == AUTO and len({candidate.level for candidate in known_candidates()}) == 1:
        return _usable(_default(models))
    question = Question(text, 0, prompt_tokens, requested, organization="")
    try:
        decision = route(question, known_candidates(), policy=POLICY, scorer=load_scorer())
    except NoCandidate as error:
        if error.known:
            raise Invalid(f"No model may answer this: {error}.") from error
        names = ", ".join([AUTO, *(model.id for model in models)])
        raise ModelNotFound(f"There is no model named {requested[:80]!r}. Choose one of: {names}.") from error
    found = next(model for model in models if model.id == decision.model)
    return _usable(Choice(found, _view(found, decision.reasons, decision)))


def _default(models: Sequence[ModelInfo]) -> Choice:
    """Where all models are alike, `auto` is the operator's default one, or another while that is not ready."""
    model = next((m for m in models if m.state is ModelState.READY), models[0])
    reason = Reason(Step.RULE, f"{model.name} is what auto stands for at this time.", {"requested": AUTO})
    return Choice(model, _view(model, (reason,)))


def _view(model: ModelInfo, reasons: Sequence[Reason], decision: Decision | None = None) -> dict[str, Any]:
    return {
        "model": model.id,
        "score": None if decision is None else decision.score,
        "alternatives": [] if decision is None else list(decision.alternatives),
        "reasons": [{"step": r.step.value, "text": r.text, "facts": dict(r.facts)} for r in reasons],
    }


def _usable(choice: Choice) -> Choice:
    if choice.model.state is ModelState.UNAVAILABLE:
        REJECTIONS.labels(choice.model.id, "no_replica").inc()
        raise NoReplica(
            f"{choice.model.name} is not running. An operator can see why in the console; you can choose another "
            "model.",
            retry_after_s=WAIT_FOR_MODEL_S,
        )
    return choice
