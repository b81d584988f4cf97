"""Which model a run gets, and why: the user's choice, else what the question needs, among the models that are there
and that the organization may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.accounts.types import ModelPolicy
from apps.conversations.metrics import REJECTIONS
from apps.conversations.services.registry import known_candidates, known_models, known_rules
from apps.core.errors import Invalid, ModelNotFound, NoReplica, PermissionDenied
from inference.client import AUTO
from inference.protocol import ModelInfo, ModelState
from inference.routing.router import forbidden, route, unfit
from inference.routing.scorer import load_scorer
from inference.routing.types import Decision, NoCandidate, Question, Reason, RoutingPolicy, Step

WAIT_FOR_MODEL_S = 15
LEAST_QUALITY = 0.5


@dataclass(frozen=True, slots=True)
class Choice:
    """A model and the reasons, in the form that a run keeps."""

    model: ModelInfo
    decision: dict[str, Any]


def choose_model(
    requested: str,
    text: str = "",
    *,
    policy: ModelPolicy,
    prompt_tokens: int = 0,
    needs: frozenset[str] = frozenset(),
    history: Callable[[], int] | None = None,
) -> Choice:
    """`text`: what was asked. `prompt_tokens`: of all that is sent, an estimate that only `auto` goes by. `needs`: see
    `inference.routing.types.Question`. `history`: tokens of the conversation before it, asked for only where a rule
    goes by them. Raises ModelNotFound, PermissionDenied (the organization may not use it), NoReplica, and Invalid when
    no model can answer this."""
    candidates = known_candidates(policy.region)
    if not candidates:
        raise NoReplica("No model is running yet. Try again in a moment.", retry_after_s=WAIT_FOR_MODEL_S)
    excluded = _forbidden(policy)
    _refuse_what_is_forbidden(requested, excluded, len(candidates))
    models = usable_models(policy)
    question = Question(text, 0, prompt_tokens, requested, organization="", region=policy.region, needs=needs)
    rules = _rules(policy)
    fit = [candidate for candidate in candidates if not unfit(candidate, question, rules)]
    if requested != AUTO or not fit:
        # Only the model's own count may refuse what is too long.
        question = replace(question, prompt_tokens=0)
    elif len({candidate.level for candidate in fit}) == 1:
        usable = {candidate.id for candidate in fit}
        return _usable(_default([model for model in models if model.id in usable], policy))
    elif history is not None and any(rule.history_tokens_from for rule in rules.rules):
        question = replace(question, history_tokens=history())
    try:
        decision = route(question, candidates, policy=rules, scorer=load_scorer())
    except NoCandidate as error:
        if error.known:
            raise Invalid(f"No model may answer this: {error}.") from error
        names = ", ".join([AUTO, *(model.id for model in models)])
        raise ModelNotFound(f"There is no model named {requested[:80]!r}. Choose one of: {names}.") from error
    found = next(model for model in models if model.id == decision.model)
    return _usable(Choice(found, _view(found, policy, decision.reasons, decision)))


def usable_models(policy: ModelPolicy) -> tuple[ModelInfo, ...]:
    """The models that an organization may use, the default one first."""
    excluded = _forbidden(policy)
    return tuple(model for model in known_models(policy.region) if model.id not in excluded)


def _rules(policy: ModelPolicy) -> RoutingPolicy:
    return RoutingPolicy(
        models=policy.models, level_at_most=policy.level_at_most, rules=known_rules(), least_quality=LEAST_QUALITY
    )


def _forbidden(policy: ModelPolicy) -> dict[str, str]:
    """The models that an organization may not use, and why not."""
    rules, region = _rules(policy), policy.region
    return {c.id: why for c in known_candidates(region) if (why := forbidden(c, rules, region))}


def _refuse_what_is_forbidden(requested: str, excluded: dict[str, str], known: int) -> None:
    if why := excluded.get(requested):
        raise PermissionDenied(f"{requested} cannot be used here: {why}.")
    if requested == AUTO and len(excluded) == known:
        told = "; ".join(f"{name}: {why}" for name, why in excluded.items())
        raise PermissionDenied(f"Your organization may use none of the models that run ({told}).")


def _default(models: Sequence[ModelInfo], policy: ModelPolicy) -> Choice:
    """Where all models are alike, `auto` is the operator's default one, or another while that is not ready."""
    model = next((m for m in models if m.state is ModelState.READY), models[0])
    reason = Reason(Step.RULE, f"{model.name} is what auto stands for at this time.", {"requested": AUTO})
    return Choice(model, _view(model, policy, (reason,)))


def _view(
    model: ModelInfo, policy: ModelPolicy, reasons: Sequence[Reason], decision: Decision | None = None
) -> dict[str, Any]:
    """`region` binds the placing of the run, whatever becomes of the policy meanwhile."""
    if policy.region:
        text = f"The data stay in {policy.region}: no replica elsewhere is used."
        reasons = (Reason(Step.POLICY, text, {"region": policy.region}), *reasons)
    return {
        "model": model.id,
        "region": policy.region,
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
