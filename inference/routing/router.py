"""Which model answers a question, and why. Pure functions: the same arguments give the same decision.

The order: the user's choice (never overridden), policy, rules, the complexity estimate, load and measured quality.
Each step only narrows what the ones before it left, and leaves a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from inference.routing.types import (
    Candidate,
    Decision,
    NoCandidate,
    Question,
    Reason,
    RoutingPolicy,
    Rule,
    Scorer,
    Step,
)

AUTO = "auto"
UNMEASURED_QUALITY = 1.0
"""Of a model of which nothing is known yet: it would never be measured if it were not asked."""


def route(
    question: Question, candidates: Sequence[Candidate], *, policy: RoutingPolicy, scorer: Scorer | None
) -> Decision:
    """NoCandidate when policy leaves no model, or the requested one is unknown or may not answer this."""
    if question.requested != AUTO:
        return _chosen_by_user(question, candidates, policy)
    usable, reason = _apply_policy(question, sorted(candidates, key=lambda c: c.id), policy)
    asked = _level_for(question, _levels(usable), policy, scorer)
    pick, load = _apply_load(usable, asked, policy)
    others = tuple(c.id for c in _next_best(usable, pick, policy))
    return Decision(pick.id, pick.level, (reason, *asked.reasons, load), others, asked.score)


def escalate(decision: Decision, candidates: Sequence[Candidate], *, why: str) -> Decision | None:
    """The next level above, among the models that the decision left as alternatives and that are ready. None at the
    top, and where the user had chosen the model: their choice is not replaced by a better one either."""
    if any(reason.step is Step.USER for reason in decision.reasons):
        return None
    order = {name: place for place, name in enumerate(decision.alternatives)}
    above = [c for c in candidates if c.id in order and c.ready and c.level > decision.level]
    if not above:
        return None
    pick = min(above, key=lambda c: (c.level, order[c.id]))
    text = f"{decision.model} did not manage ({why}); {pick.id} answers instead"
    reason = Reason(Step.ESCALATION, text, {"from": decision.model, "to": pick.id, "why": why})
    left = tuple(name for name in decision.alternatives if name != pick.id)
    return Decision(pick.id, pick.level, (*decision.reasons, reason), left, decision.score)


# ---------------------------------------------------------------- the user, policy


def _chosen_by_user(question: Question, candidates: Sequence[Candidate], policy: RoutingPolicy) -> Decision:
    chosen = next((c for c in candidates if c.id == question.requested), None)
    if chosen is None:
        raise NoCandidate(f"there is no model named {question.requested[:80]!r}", known=False)
    if why_not := unfit(chosen, question, policy):
        raise NoCandidate(f"{chosen.id} cannot answer this: {why_not}", excluded={chosen.id: why_not})
    reason = Reason(Step.USER, f"{chosen.id} was chosen for this question", {"requested": chosen.id})
    return Decision(chosen.id, chosen.level, (reason,))


def forbidden(candidate: Candidate, policy: RoutingPolicy, region: str = "") -> str:
    """Why the organization may not use a model, whatever is asked; empty when it may."""
    if policy.models is not None and candidate.id not in policy.models:
        return "the organization does not allow it"
    if policy.level_at_most is not None and candidate.level > policy.level_at_most:
        return f"the organization allows models up to level {policy.level_at_most}"
    if region and region not in candidate.regions:
        return f"the data must stay in {region}"
    return ""


def unfit(candidate: Candidate, question: Question, policy: RoutingPolicy) -> str:
    """Why policy keeps a model from answering; empty when it does not."""
    if why := forbidden(candidate, policy, question.region):
        return why
    if missing := question.needs - candidate.capabilities:
        return f"it lacks {', '.join(sorted(missing))}"
    wanted = question.prompt_tokens + policy.output_tokens
    if candidate.context_length and wanted > candidate.context_length:
        return f"{wanted:,} tokens do not fit its context of {candidate.context_length:,}"
    return ""


def _apply_policy(
    question: Question, candidates: Sequence[Candidate], policy: RoutingPolicy
) -> tuple[list[Candidate], Reason]:
    """The models that may answer: those that are ready, or the others while none is."""
    excluded = {c.id: why for c in candidates if (why := unfit(c, question, policy))}
    allowed = [c for c in candidates if c.id not in excluded]
    if not allowed:
        told = "; ".join(f"{name}: {why}" for name, why in excluded.items())
        raise NoCandidate(f"no model may answer this ({told or 'none is served'})", excluded=excluded)
    usable = [c for c in allowed if c.ready] or allowed
    text = f"{len(usable)} of {len(candidates)} models may answer"
    if not usable[0].ready:
        text += "; none of them is ready yet"
    facts = {"usable": [c.id for c in usable], "excluded": excluded, "ready": usable[0].ready}
    return usable, Reason(Step.POLICY, text, facts)


# ---------------------------------------------------------------- rules, complexity


@dataclass(frozen=True, slots=True)
class _Asked:
    """The level that rules and the estimate ask for."""

    level: int
    reasons: tuple[Reason, ...] = ()
    score: float | None = None


def _levels(candidates: Sequence[Candidate]) -> list[int]:
    return sorted({c.level for c in candidates})


def _level_for(question: Question, levels: list[int], policy: RoutingPolicy, scorer: Scorer | None) -> _Asked:
    """The first rule that fixes a level decides; the highest floor of the others bounds the estimate from below."""
    matching = [rule for rule in policy.rules if rule.matches(question)]
    if fixed := next((rule for rule in matching if rule.fixed), None):
        return _Asked(_at_least(levels, fixed.level), (_by_rule(fixed),))
    floor = max(matching, key=lambda rule: rule.level, default=None)
    reasons = (_by_rule(floor),) if floor else ()
    lowest = _at_least(levels, floor.level) if floor else levels[0]
    left = [level for level in levels if level >= lowest]
    if len(left) == 1 or scorer is None:
        return _Asked(lowest, reasons)
    estimated = _estimate(question, left, policy, scorer)
    return replace(estimated, reasons=(*reasons, *estimated.reasons))


def _at_least(levels: list[int], wanted: int) -> int:
    """The lowest level that is not below `wanted`; the highest there is when all are."""
    return next((level for level in levels if level >= wanted), levels[-1])


def _by_rule(rule: Rule) -> Reason:
    word = "" if rule.fixed else "at least "
    text = f"rule {rule.name!r}: {word}level {rule.level}"
    return Reason(Step.RULE, text, {"rule": rule.name, "level": rule.level, "fixed": rule.fixed})


def _estimate(question: Question, levels: list[int], policy: RoutingPolicy, scorer: Scorer) -> _Asked:
    """Each threshold that the score reaches takes one level more. What the scorer does not know goes to the top."""
    estimate = scorer.estimate(question.text)
    thresholds = (estimate.threshold,) if policy.thresholds is None else policy.thresholds
    facts = {"score": estimate.score, "thresholds": list(thresholds), "unfamiliar": estimate.unfamiliar}
    if estimate.unfamiliar:
        text = f"unlike the questions that the estimate was made from ({estimate.unfamiliar}): the strongest model"
        return _Asked(levels[-1], (Reason(Step.COMPLEXITY, text, facts),), estimate.score)
    rungs = sum(estimate.score >= threshold for threshold in thresholds)
    level = levels[min(rungs, len(levels) - 1)]
    word = "looks simple enough for" if level == levels[0] else "asks for"
    text = f"the question {word} level {level} (score {estimate.score:.2f})"
    return _Asked(level, (Reason(Step.COMPLEXITY, text, facts),), estimate.score)


# ---------------------------------------------------------------- load and quality


def _apply_load(usable: list[Candidate], asked: _Asked, policy: RoutingPolicy) -> tuple[Candidate, Reason]:
    """The best of the level asked for. When all of it is busy, one of a level above that has room; never one below:
    a smaller model is offered openly by admission, not taken in silence."""
    same = [c for c in usable if c.level == asked.level]
    best = min(same, key=lambda c: _rank(c, policy))
    roomy = [c for c in usable if c.level > asked.level and c.pressure < policy.busy and _is_good(c, policy)]
    if best.pressure < policy.busy or not roomy:
        text = f"{best.id} has the best quality and load of level {best.level}" if len(same) > 1 else f"{best.id} it is"
        return best, Reason(Step.LOAD, text, _load_facts(best))
    pick = min(roomy, key=lambda c: (c.level, _rank(c, policy)))
    text = f"level {asked.level} is busy; {pick.id} has room"
    return pick, Reason(Step.LOAD, text, _load_facts(pick) | {"busy": best.id, "busy_pressure": best.pressure})


def _load_facts(candidate: Candidate) -> dict[str, object]:
    return {"pressure": candidate.pressure, "quality": candidate.quality, "cost_per_mtok": candidate.cost_per_mtok}


def _is_good(candidate: Candidate, policy: RoutingPolicy) -> bool:
    return policy.least_quality is None or candidate.quality is None or candidate.quality >= policy.least_quality


def _rank(candidate: Candidate, policy: RoutingPolicy) -> tuple[bool, bool, float, float, float, str]:
    """Sort key, smallest first: good, with room, quality, cost, pressure; the id makes it definite."""
    quality = UNMEASURED_QUALITY if candidate.quality is None else candidate.quality
    busy = candidate.pressure >= policy.busy
    good = _is_good(candidate, policy)
    return (not good, busy, -quality, candidate.cost_per_mtok, candidate.pressure, candidate.id)


def _next_best(usable: list[Candidate], pick: Candidate, policy: RoutingPolicy) -> list[Candidate]:
    """The same level first, then stronger ones from near to far, then weaker ones from near to far."""
    rest = [c for c in usable if c.id != pick.id]
    return sorted(rest, key=lambda c: (c.level < pick.level, abs(c.level - pick.level), _rank(c, policy)))
