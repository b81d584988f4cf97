"""The complexity estimate: features, familiarity, training without leaks, and the measures that judge it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from inference.routing.features import CHARACTERS_READ, FEATURES, measure
from inference.routing.scorer import PACKAGED_WEIGHTS, LinearScorer, load_scorer, read_weights
from inference.routing.training import (
    apgr,
    closed_gap,
    cost_of_gap,
    fit,
    folds_of,
    held_out_scores,
    scores,
    threshold_for,
    unfamiliar,
    wilson,
)
from tests.bench.router import distrusted, prepare
from tests.factories import routing

EXAM = (
    "Which of the following is not true of the treaty that was made in 1648, if all of the states that signed it are"
    " taken into account?\nA. It was the first.\nB. It had no end.\nC. They kept it.\nD. None of these\nAnswer:"
)


def values(text: str) -> dict[str, float]:
    return dict(zip(FEATURES, measure(text), strict=True))


# ---------------------------------------------------------------- features


def test_features_are_what_they_say() -> None:
    found = values("If he can (not) pay 12, then who pays? She pays.")
    assert found["log_words"] == pytest.approx(math.log(10))
    assert found["words_per_sentence"] == pytest.approx(10 / 3)
    assert found["repeated_words"] == pytest.approx(0.1)
    assert found["negations"] == pytest.approx(0.1)
    assert found["persons"] == pytest.approx(0.2)
    assert found["conditions"] == pytest.approx(0.2)
    assert found["digits"] == pytest.approx(2 / 48)
    assert found["brackets"] == pytest.approx(1 / 48)


@pytest.mark.parametrize("text", ["", " ", "1", "?", "\x00", "а" * 9_000, "=" * 50])
def test_any_text_has_finite_features(text: str) -> None:
    assert all(math.isfinite(value) for value in measure(text))


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    long = "word " * CHARACTERS_READ
    assert measure(long) == measure(long[:CHARACTERS_READ])


# ---------------------------------------------------------------- the packaged weights


def test_the_packaged_weights_are_small_and_familiar_with_exam_questions() -> None:
    assert PACKAGED_WEIGHTS.stat().st_size < 8_000
    estimate = load_scorer().estimate(EXAM)
    assert estimate == load_scorer().estimate(EXAM)
    assert not estimate.unfamiliar


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "shorter"),
        ("Why is that so?", "shorter"),
        ("Bitte erklären Sie ausführlich, warum dieser Vertrag damals geschlossen wurde und wem er nützte.", "English"),
        ("Пожалуйста, подробно объясни мне, почему этот договор был заключён и кому именно он был выгоден.", "English"),
        (EXAM + " {x[i]: y[i] for i in z if x[i] != y[i]}" * 20, "distance"),
    ],
)
def test_other_kinds_of_questions_are_unfamiliar(text: str, why: str) -> None:
    assert why in load_scorer().estimate(text).unfamiliar


def test_weights_survive_their_file_and_damaged_ones_are_refused() -> None:
    weights = load_scorer().weights
    assert read_weights(weights.to_json()) == weights
    with pytest.raises(ValueError, match="other features"):
        read_weights(replace(weights, features=weights.features[::-1]).to_json())
    with pytest.raises(ValueError, match="incomplete"):
        read_weights(replace(weights, mean=weights.mean[:-1]).to_json())
    for damaged in (b"", b"[]", b"{}", json.dumps({"features": list(FEATURES), "mean": None}).encode()):
        with pytest.raises(ValueError):
            read_weights(damaged)


# ---------------------------------------------------------------- training


def test_training_finds_what_makes_questions_hard() -> None:
    rows = routing.rows()
    data = prepare(rows)
    held_out = held_out_scores(data, folds_of(data.group, 4))
    assert apgr(held_out, data.gain) > 0.65
    weights = fit(data)
    assert weights == fit(data)
    hard = np.array(["Suppose" in row.text for row in rows])
    asked = scores(weights, data.features) >= weights.threshold
    assert asked[hard].mean() > 0.7
    assert asked[~hard].mean() < 0.5


def test_one_by_one_and_all_at_once_agree() -> None:
    rows = routing.rows(subjects=4)
    data = prepare(rows)
    weights = fit(data)
    scorer = LinearScorer(weights)
    texts = [*(row.text for row in rows[:30]), "1 " * 900, "not if he, (" * 90, ""]
    features = np.array([measure(text) for text in texts])
    one_by_one = [scorer.estimate(text) for text in texts]
    assert [e.score for e in one_by_one] == pytest.approx(list(scores(weights, features)))
    assert [bool(e.unfamiliar) for e in one_by_one] == list(unfamiliar(weights, features))


def test_a_subject_weighs_like_the_root_of_its_size() -> None:
    rows = [row for row in routing.rows() if row.subject != "subject_00" or row.weak]
    data = prepare(rows)
    share = np.bincount(data.group)[data.group] ** -0.5
    assert len(set(share)) > 1
    mean = np.average(scores(fit(data), data.features), weights=share)
    assert mean == pytest.approx(np.average(data.gain, weights=share), abs=1e-4)


def test_length_keeps_half_of_its_own_slope() -> None:
    data = prepare(routing.rows())
    weights = fit(data)
    length = (data.features[:, 0] - weights.mean[0]) / weights.scale[0]
    assert weights.weight[0] >= np.polyfit(np.clip(length, -3, 3), data.gain, 1)[0] / 2


def test_a_fold_never_splits_a_group() -> None:
    group = np.repeat(np.arange(13), 5)
    fold = folds_of(group, 4)
    assert set(fold) == {0, 1, 2, 3}
    assert all(len(set(fold[group == number])) == 1 for number in range(13))
    assert set(folds_of(group[:10], 5)) == {0, 1}


def test_held_out_scores_do_not_know_the_labels_they_are_judged_by() -> None:
    data = prepare(routing.rows())
    fold = folds_of(data.group, 4)
    turned = replace(data, weak=np.where(fold == 2, ~data.weak, data.weak))
    before, after = held_out_scores(data, fold), held_out_scores(turned, fold)
    assert np.array_equal(before[fold == 2], after[fold == 2])
    assert not np.array_equal(before[fold == 1], after[fold == 1])


def test_wrong_labels_are_judged_but_not_learned_from() -> None:
    rows = routing.rows()
    broken = [replace(row, strong=False) if row.subject == "subject_03" else row for row in rows]
    assert distrusted(broken) == {"subject_03"}
    assert fit(prepare(broken)) == fit(prepare([row for row in broken if row.subject != "subject_03"]))
    assert len(held_out_scores(prepare(broken), folds_of(prepare(broken).group, 4))) == len(broken)


def test_models_that_do_not_differ_leave_nothing_to_learn() -> None:
    with pytest.raises(ValueError, match="nothing to learn"):
        fit(prepare([replace(row, weak=row.strong) for row in routing.rows()]))


def test_questions_of_fewer_than_fourteen_words_are_unfamiliar_as_the_docs_say() -> None:
    question = "What is the name of the river that is in the north of the country?"
    words = question.split()
    assert len(words) == 15
    scorer = load_scorer()
    found = [scorer.estimate(" ".join(words[:count])).unfamiliar for count in (13, 14, 15)]
    assert found == ["shorter than they are", "", ""]


# ---------------------------------------------------------------- measures


def test_the_measures_of_a_perfect_order() -> None:
    gain = np.array([1.0, 0, 0, 1.0])
    perfect = np.array([4.0, 2, 1, 3])
    assert list(closed_gap(perfect, gain)) == [0, 0.5, 1, 1, 1]
    assert apgr(perfect, gain) == pytest.approx(0.75)
    assert cost_of_gap(perfect, gain, 0.5) == 0.25
    assert cost_of_gap(perfect, gain, 0.8) == 0.5
    assert threshold_for(perfect, gain, 0.8) == 3


def test_an_order_that_says_nothing_is_worth_one_half_however_the_file_is_sorted() -> None:
    gain = np.array([1.0, 1, 0, 0, 0])
    assert apgr(np.zeros(5), gain) == pytest.approx(0.5)
    assert apgr(np.zeros(5), gain[::-1]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(0, 0, 0, 1), (0, 10, 0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1)]
)
def test_wilson_intervals(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)
