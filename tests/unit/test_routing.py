"""Routing keeps its order: user, policy, rules, complexity, load and quality; each leaves a reason."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from inference.routing.checks import failed_checks, may_be_refusal
from inference.routing.router import escalate, route
from inference.routing.types import (
    Candidate,
    Decision,
    Estimate,
    NoCandidate,
    Question,
    RoutingPolicy,
    Rule,
    Step,
)

SMALL = Candidate("small", 1, 8_192, frozenset(), frozenset({"eu", "us"}), True, 0.2, 0.1, None)
MIDDLE = replace(SMALL, id="middle", level=2, cost_per_mtok=1.0, capabilities=frozenset({"tools"}))
LARGE = replace(MIDDLE, id="large", level=3, context_length=131_072, cost_per_mtok=9.0, regions=frozenset({"us"}))
ALL = (SMALL, MIDDLE, LARGE)
PLAIN = Question("How tall is the Eiffel Tower in metres?", 0, 40, "auto", "org")
POLICY = RoutingPolicy()


class Fixed:
    """A scorer that always says the same."""

    def __init__(self, score: float, unfamiliar: str = "") -> None:
        self.given = Estimate(score, 0.3, unfamiliar)

    def estimate(self, text: str) -> Estimate:
        return self.given


def decide(
    question: Question = PLAIN,
    candidates: tuple[Candidate, ...] = ALL,
    policy: RoutingPolicy = POLICY,
    score: float | None = 0.0,
    unfamiliar: str = "",
) -> Decision:
    scorer = None if score is None else Fixed(score, unfamiliar)
    return route(question, candidates, policy=policy, scorer=scorer)


def steps(decision: Decision) -> list[Step]:
    return [reason.step for reason in decision.reasons]


# ---------------------------------------------------------------- the user


def test_a_choice_is_kept_though_everything_speaks_against_it() -> None:
    slow = replace(SMALL, pressure=9.0, quality=0.01, ready=False)
    policy = RoutingPolicy(rules=(Rule("all to the top", 3, fixed=True),), least_quality=0.9)
    decision = decide(replace(PLAIN, requested="small"), (slow, LARGE), policy, score=1.0, unfamiliar="odd")
    assert (decision.model, steps(decision), decision.score) == ("small", [Step.USER], None)
    assert escalate(decision, ALL, why="empty") is None


def test_an_unknown_choice_is_told_apart_from_a_forbidden_one() -> None:
    with pytest.raises(NoCandidate, match="no model named 'gone'") as unknown:
        decide(replace(PLAIN, requested="gone"))
    assert not unknown.value.known
    with pytest.raises(NoCandidate, match="large cannot answer this: the data must stay in eu") as forbidden:
        decide(replace(PLAIN, requested="large", region="eu"))
    assert forbidden.value.known
    assert forbidden.value.reasons[0].step is Step.POLICY


# ---------------------------------------------------------------- policy


@pytest.mark.parametrize(
    ("question", "policy", "left", "why"),
    [
        (PLAIN, RoutingPolicy(models=frozenset({"middle"})), "middle", "does not allow it"),
        (replace(PLAIN, needs=frozenset({"tools"})), POLICY, "middle", "it lacks tools"),
        (replace(PLAIN, prompt_tokens=8_000), POLICY, "large", "8,512 tokens do not fit its context of 8,192"),
    ],
)
def test_policy_excludes_with_a_reason(question: Question, policy: RoutingPolicy, left: str, why: str) -> None:
    decision = decide(question, policy=policy)
    assert decision.model == left
    excluded = decision.reasons[0].facts["excluded"]
    assert why in excluded["small"]
    assert left not in excluded


def test_a_prompt_that_just_fits_with_its_answer_fits() -> None:
    assert decide(replace(PLAIN, prompt_tokens=8_192 - 512)).model == "small"
    assert decide(replace(PLAIN, prompt_tokens=8_192 - 511)).model == "large"


def test_the_largest_level_can_be_forbidden() -> None:
    assert decide(policy=RoutingPolicy(level_at_most=2), score=1.0, unfamiliar="odd").model == "middle"


def test_data_stay_in_their_region_even_if_nobody_can_answer_there() -> None:
    with pytest.raises(NoCandidate, match="must stay in mars") as refusal:
        decide(replace(PLAIN, region="mars"))
    assert set(refusal.value.excluded) == {"small", "middle", "large"}


def test_an_unknown_context_is_no_obstacle() -> None:
    unknown = replace(SMALL, context_length=0)
    assert decide(replace(PLAIN, prompt_tokens=10**6), (unknown,)).model == "small"


def test_ready_models_go_first_and_loading_ones_are_better_than_none() -> None:
    loading = replace(SMALL, ready=False)
    assert decide(candidates=(loading, MIDDLE)).model == "middle"
    decision = decide(candidates=(loading,))
    assert decision.model == "small"
    assert "none of them is ready" in decision.reasons[0].text


def test_nothing_served_is_said_so() -> None:
    with pytest.raises(NoCandidate, match="none is served"):
        decide(candidates=())


# ---------------------------------------------------------------- rules


def test_a_fixed_rule_decides_without_an_estimate() -> None:
    rule = Rule("greetings", 1, fixed=True, words_at_most=3)
    decision = decide(replace(PLAIN, text="hello there"), policy=RoutingPolicy(rules=(rule,)), score=1.0)
    assert (decision.model, steps(decision)) == ("small", [Step.POLICY, Step.RULE, Step.LOAD])
    assert decide(policy=RoutingPolicy(rules=(rule,)), score=1.0).model == "middle"


def test_the_highest_floor_bounds_the_estimate_from_below() -> None:
    rules = (Rule("long history", 2, history_tokens_from=4_000), Rule("tools", 3, needs=frozenset({"tools"})))
    policy = RoutingPolicy(rules=rules)
    assert decide(replace(PLAIN, history_tokens=4_000), policy=policy).model == "middle"
    assert decide(replace(PLAIN, history_tokens=4_000), policy=policy, score=0.4).model == "large"
    assert decide(replace(PLAIN, history_tokens=3_999), policy=policy).model == "small"
    assert decide(replace(PLAIN, history_tokens=4_000, needs=frozenset({"tools"})), policy=policy).model == "large"


def test_a_rule_looks_at_the_whole_prompt() -> None:
    policy = RoutingPolicy(rules=(Rule("long prompt", 2, prompt_tokens_from=100),))
    assert decide(replace(PLAIN, prompt_tokens=99), policy=policy).model == "small"
    assert decide(replace(PLAIN, prompt_tokens=100), policy=policy).model == "middle"


def test_a_floor_above_all_models_takes_the_highest() -> None:
    policy = RoutingPolicy(rules=(Rule("top", 9),))
    assert decide(policy=policy).model == "large"


# ---------------------------------------------------------------- complexity


@pytest.mark.parametrize(("score", "model"), [(0.29, "small"), (0.3, "middle"), (0.99, "middle")])
def test_the_threshold_of_the_scorer_takes_one_level(score: float, model: str) -> None:
    assert decide(score=score).model == model
    assert decide(score=score).score == score


@pytest.mark.parametrize(("score", "model"), [(0.1, "small"), (0.2, "middle"), (0.5, "large")])
def test_the_thresholds_of_the_policy_take_one_level_each(score: float, model: str) -> None:
    assert decide(policy=RoutingPolicy(thresholds=(0.2, 0.5)), score=score).model == model


def test_an_unfamiliar_question_goes_to_the_strongest() -> None:
    decision = decide(score=-1.0, unfamiliar="far from all of them")
    assert decision.model == "large"
    assert "far from all of them" in decision.reasons[1].text


def test_without_a_scorer_the_smallest_answers() -> None:
    assert (decide(score=None).model, decide(score=None).score) == ("small", None)


# ---------------------------------------------------------------- load and quality


def test_quality_then_cost_then_load_choose_within_a_level() -> None:
    other, worse = replace(SMALL, id="other", quality=0.9, cost_per_mtok=0.2), replace(SMALL, quality=0.8)
    assert decide(candidates=(worse, other)).model == "other"
    assert decide(candidates=(SMALL, other)).model == "small", "what was not measured yet is asked, so that it will be"
    cheap = replace(SMALL, id="zcheap", cost_per_mtok=0.05)
    assert decide(candidates=(SMALL, cheap)).model == "zcheap"
    idle = replace(SMALL, id="zidle", pressure=0.0)
    assert decide(candidates=(SMALL, idle)).model == "zidle"
    assert decide(candidates=(replace(SMALL, pressure=1.0), replace(SMALL, id="zz", cost_per_mtok=5))).model == "zz"


def test_a_model_measured_as_bad_is_the_last_resort() -> None:
    bad = replace(SMALL, quality=0.4, pressure=0.0)
    policy = RoutingPolicy(least_quality=0.45)
    assert decide(candidates=(bad, replace(SMALL, id="fresh", pressure=2.0)), policy=policy).model == "fresh"
    assert decide(candidates=(bad,), policy=policy).model == "small"


def test_a_busy_level_gives_way_upwards_and_never_downwards() -> None:
    full = replace(SMALL, pressure=1.5)
    decision = decide(candidates=(full, MIDDLE, LARGE))
    assert decision.model == "middle"
    assert decision.reasons[-1].facts["busy"] == "small"
    assert decide(candidates=(SMALL, replace(MIDDLE, pressure=1.5)), score=0.5).model == "middle"


def test_a_busy_level_does_not_give_way_to_a_model_measured_as_bad() -> None:
    candidates = (replace(SMALL, pressure=1.5), replace(MIDDLE, quality=0.2), LARGE)
    assert decide(candidates=candidates, policy=RoutingPolicy(least_quality=0.5)).model == "large"


# ---------------------------------------------------------------- the record, and escalation


def test_alternatives_run_from_the_same_level_over_stronger_to_weaker() -> None:
    twin = replace(MIDDLE, id="twin")
    decision = decide(candidates=(SMALL, twin, LARGE, MIDDLE), score=0.5)
    assert (decision.model, decision.alternatives) == ("middle", ("twin", "large", "small"))


def test_the_order_of_candidates_does_not_matter_and_reasons_are_json() -> None:
    decision = decide(score=0.4)
    assert decision == decide(candidates=ALL[::-1], score=0.4)
    json.dumps([{"step": r.step, "text": r.text, "facts": dict(r.facts)} for r in decision.reasons])


def test_escalation_goes_one_level_up_and_is_recorded() -> None:
    first = decide()
    second = escalate(first, ALL, why="its answer was empty")
    assert second is not None
    assert (second.model, second.level, second.alternatives) == ("middle", 2, ("large",))
    assert second.reasons[-1].step is Step.ESCALATION
    assert "its answer was empty" in second.reasons[-1].text
    third = escalate(second, (SMALL, replace(MIDDLE, pressure=0), LARGE), why="again")
    assert third is not None
    assert third.model == "large"
    assert escalate(third, ALL, why="again") is None


def test_escalation_stays_inside_policy_and_among_the_ready() -> None:
    inside = decide(policy=RoutingPolicy(models=frozenset({"small", "large"})))
    raised = escalate(inside, ALL, why="empty")
    assert raised is not None
    assert raised.model == "large"
    assert escalate(inside, (SMALL, MIDDLE, replace(LARGE, ready=False)), why="empty") is None


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot answer this question.",
        "As an AI language model, I am unable to provide an answer.",
        "Sorry, I can’t assist with that request.",
        "Unfortunately, I'm not able to help.",
        "I'm sorry. I can't help with that.",
        "I’m truly sorry about this!  I am unable to answer.",
        "\n I am so sorry, I won't comply with it, " + "whatever is asked, " * 10,
    ],
)
def test_a_refusal_of_a_plain_question_fails(text: str) -> None:
    assert failed_checks(text) == "it refused a plain question"
    assert failed_checks(text, plain=False) is None
    assert all(may_be_refusal(text[:end]) for end in range(len(text))), "it could be told all along"


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("The sky is blue.", 2),
        ("330 metres.", 1),
        ("Sure! Here it is.", 2),
        ("As the crow flies, it is far.", 4),
        ("I think that it is far.", 3),
        ("I can help with that.", 7),
        ("I can't help but notice that it is far.", 18),
        ("Sorry for the wait! It is far.", 22),
        ("Unfortunately, nobody knows. It is far.", 31),
        ("I cannot answer for every year, but in 2024: " + "a long table. " * 60, 601),
    ],
)
def test_an_answer_shows_early_that_it_is_no_refusal(text: str, characters: int) -> None:
    assert not may_be_refusal(text[:characters])
    assert all(may_be_refusal(text[:end]) for end in range(characters))


@pytest.mark.parametrize(
    "text",
    [
        "330 metres.",
        "I can help with that: it is 330 metres.",
        "Sorry for the wait! It is 330 metres.",
        "I can't help but notice that you ask for its height: 330 metres.",
        "The song says: I can't help falling in love with you.",
        "A lever cannot provide more energy than it is given.",
        "I cannot answer for every year, but in 2024: " + "a long table. " * 60,
    ],
)
def test_an_answer_passes(text: str) -> None:
    assert failed_checks(text) is None


def test_empty_answers_and_invalid_tool_calls_fail() -> None:
    assert failed_checks(" \n") == "its answer was empty"
    assert failed_checks("", tool_calls_valid=True) is None
    assert failed_checks("text", tool_calls_valid=False) == "its tool call was invalid after one repair"
