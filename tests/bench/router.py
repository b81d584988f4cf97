"""Trains the router's complexity estimate on labelled questions and judges it on subjects it has not seen.

    python -m tests.bench.router --data DIR [--write inference/routing/weights.json] [--json build/bench/router.json]

DIR holds mmlu/*.csv (one file a subject) and gsm8k_responses.csv, with a question and whether the weaker and the
stronger model were right in the first three columns, as RouteLLM publishes them. Every figure comes from weights,
and from a threshold, that were fitted without the subject that is judged: ten folds of whole subjects, divided in
sixty ways. GSM8K is never trained on. Compared with routing by length, and with chance.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inference.routing.router import route
from inference.routing.scorer import LinearScorer, Weights
from inference.routing.training import (
    GAP_SHARE,
    Floats,
    Labelled,
    Labels,
    apgr,
    cost_of_gap,
    fit,
    folds_of,
    held_out_scores,
    labelled,
    scores,
    threshold_for,
    unfamiliar,
    wilson,
)
from inference.routing.types import Candidate, Question, RoutingPolicy, Rule

FOLDS = 10
DIVISIONS = 60
RESAMPLES = 400
CHANCE = 0.25
"""Of a question with four answers. A strong model below it has labels that are wrong."""
SOURCE = (
    "RouteLLM's labels (Apache-2.0) of MMLU questions (MIT): Mixtral 8x7B Instruct as the weaker model, GPT-4 1106 as"
    " the stronger one. Weights only; no question or label is part of this file."
)

# Hendrycks et al. 2020, arXiv 2009.03300, appendix: all subjects that are named in none of these are "other".
AREAS: Mapping[str, str] = {
    "science": "abstract_algebra anatomy astronomy college_biology college_chemistry college_computer_science"
    " college_mathematics college_physics computer_security conceptual_physics electrical_engineering"
    " elementary_mathematics high_school_biology high_school_chemistry high_school_computer_science"
    " high_school_mathematics high_school_physics high_school_statistics machine_learning",
    "humanities": "formal_logic high_school_european_history high_school_us_history high_school_world_history"
    " international_law jurisprudence logical_fallacies moral_disputes moral_scenarios philosophy prehistory"
    " professional_law world_religions",
    "social science": "econometrics high_school_geography high_school_government_and_politics"
    " high_school_macroeconomics high_school_microeconomics high_school_psychology human_sexuality"
    " professional_psychology public_relations security_studies sociology us_foreign_policy",
}
_AREA_OF = {subject: area for area, subjects in AREAS.items() for subject in subjects.split()}


@dataclass(frozen=True, slots=True)
class Row:
    text: str
    subject: str
    weak: bool
    strong: bool

    @property
    def area(self) -> str:
        return _AREA_OF.get(self.subject, "other")


def read(path: Path, subject: str) -> list[Row]:
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [Row(text, subject, weak == "True", strong == "True") for text, weak, strong, *_ in rows]


def read_mmlu(folder: Path) -> list[Row]:
    found = [read(path, path.stem.removeprefix("mmlu_")) for path in sorted((folder / "mmlu").glob("*.csv"))]
    return [row for rows in found for row in rows]


def distrusted(rows: Sequence[Row]) -> frozenset[str]:
    """Subjects in which the stronger model is below chance: its answers were misread, and teach the wrong thing."""
    right: dict[str, list[bool]] = {}
    for row in rows:
        right.setdefault(row.subject, []).append(row.strong)
    return frozenset(name for name, answers in right.items() if sum(answers) < CHANCE * len(answers))


def prepare(rows: Sequence[Row]) -> Labelled:
    return labelled(
        [row.text for row in rows],
        [row.weak for row in rows],
        [row.strong for row in rows],
        [row.subject for row in rows],
        distrusted=distrusted(rows),
    )


# ---------------------------------------------------------------- judging


@dataclass(frozen=True, slots=True)
class Judged:
    """What routing did to questions it had not seen, by row: `score`, and whether the stronger model was `asked` by
    the threshold or for unfamiliarity."""

    score: Floats
    asked: Labels
    strange: Labels


def judge(data: Labelled, fold: np.typing.NDArray[np.int_]) -> Judged:
    """Weights and threshold for each fold come from the other folds alone."""
    size = len(fold)
    score, asked, strange = np.zeros(size), np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    for number in np.unique(fold):
        held = fold == number
        weights = fit(data.take(~held))
        score[held], strange[held] = scores(weights, data.features[held]), unfamiliar(weights, data.features[held])
        asked[held] = (score[held] >= weights.threshold) | strange[held]
    return Judged(score, asked, strange)


def judge_length(data: Labelled, length: Floats, fold: np.typing.NDArray[np.int_]) -> Judged:
    """The rule "long questions to the stronger model", with its threshold from the other folds as well."""
    asked = np.zeros(len(fold), dtype=bool)
    for number in np.unique(fold):
        held = fold == number
        learned = ~held & data.trusted
        asked[held] = length[held] >= threshold_for(length[learned], data.gain[learned], GAP_SHARE)
    return Judged(length, asked, np.zeros(len(fold), dtype=bool))


@dataclass(frozen=True, slots=True)
class Downgrades:
    """Questions of one domain. A downgrade is false when the weaker model was wrong and the stronger one right."""

    name: str
    questions: int
    downgraded: int
    needed: int
    false: int
    strange: int

    def line(self) -> str:
        shares = [_share(self.false, of) for of in (self.questions, self.downgraded, self.needed)]
        kept, strange = f"{self.downgraded / self.questions:.0%}", f"{self.strange / self.questions:.1%}"
        return f"| {self.name} | {self.questions:,} | {kept} | {' | '.join(shares)} | {strange} |"


def _share(hits: int, of: int) -> str:
    low, high = wilson(hits, of)
    return f"{hits / max(1, of):.3f} ({low:.3f} to {high:.3f})"


def downgrades(name: str, data: Labelled, judged: Judged, rows: Labels) -> Downgrades:
    needed = rows & data.strong & ~data.weak
    kept = rows & ~judged.asked
    counts = (rows, kept, needed, kept & needed, rows & judged.strange)
    return Downgrades(name, *(int(mask.sum()) for mask in counts))


def table(rows: Sequence[Row], data: Labelled, judged: Judged, by_length: Judged) -> list[Downgrades]:
    everything = np.ones(len(rows), dtype=bool)
    areas = np.array([row.area for row in rows])
    lines = [downgrades(area, data, judged, areas == area) for area in sorted(set(areas))]
    lines.append(downgrades("all", data, judged, everything))
    return [*lines, downgrades("all, by length", data, by_length, everything)]


# ---------------------------------------------------------------- figures


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    goal: float | None = None
    lower_is_better: bool = False
    unit: str = "0..1"

    @property
    def ok(self) -> bool:
        if self.goal is None:
            return True
        return self.value <= self.goal if self.lower_is_better else self.value >= self.goal


def rank_figures(rows: Sequence[Row], data: Labelled) -> Iterator[tuple[str, Figure]]:
    """The order in which questions would go to the stronger model, against the order by length."""
    length, gain = _lengths(rows), data.gain
    by_length = apgr(length, gain)
    divisions = [held_out_scores(data, folds_of(data.group, FOLDS, seed)) for seed in range(DIVISIONS)]
    found = [apgr(score, gain) for score in divisions]
    yield "router_apgr_held_out", Figure(float(np.mean(found)), by_length)
    yield "router_apgr_held_out_worst", Figure(min(found), by_length)
    yield "router_apgr_length", Figure(by_length)
    yield "router_apgr_random", Figure(0.5)
    low, high = lead_interval(divisions[0], length, data)
    yield "router_apgr_lead_low", Figure(low)
    yield "router_apgr_lead_high", Figure(high)
    areas = np.unique([row.area for row in rows], return_inverse=True)[1]
    if areas.any():
        yield "router_apgr_area_held_out", Figure(apgr(held_out_scores(data, areas), gain), by_length)
    yield "router_apgr_trusted", Figure(apgr(divisions[0][data.trusted], gain[data.trusted]))
    yield "router_apgr_trusted_length", Figure(apgr(length[data.trusted], gain[data.trusted]))
    for share in (0.5, 0.8):
        costs = [cost_of_gap(score, gain, share) for score in divisions]
        by_rule = cost_of_gap(length, gain, share)
        yield f"router_cost_{share:.0%}".replace("%", ""), Figure(float(np.mean(costs)), by_rule, lower_is_better=True)
        yield f"router_cost_{share:.0%}_length".replace("%", ""), Figure(by_rule)


def lead_interval(score: Floats, length: Floats, data: Labelled) -> tuple[float, float]:
    """The lead in APGR over the length rule if other subjects had been asked: 95 % by bootstrap over subjects."""
    places = [np.flatnonzero(data.group == number) for number in np.unique(data.group)]
    chance = np.random.default_rng(0)
    leads = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([places[place] for place in chance.integers(len(places), size=len(places))])
        leads.append(apgr(score[drawn], data.gain[drawn]) - apgr(length[drawn], data.gain[drawn]))
    low, high = np.percentile(leads, [2.5, 97.5])
    return float(low), float(high)


def choice_figures(data: Labelled, judged: Judged, lines: Sequence[Downgrades]) -> Iterator[tuple[str, Figure]]:
    """What the threshold for 80 % of the gap, learned on other subjects, does on these."""
    every, by_rule = lines[-2], lines[-1]
    yield "router_strong_share", Figure(float(judged.asked.mean()))
    yield "router_gap_closed", Figure(float(data.gain[judged.asked].sum() / data.gain.sum()))
    yield "router_unfamiliar", Figure(float(judged.strange.mean()))
    yield "router_false_downgrades", Figure(every.false / every.questions)
    yield "router_false_downgrades_of_downgraded", Figure(every.false / max(1, every.downgraded))
    yield "router_false_downgrades_of_needed", Figure(every.false / max(1, every.needed))
    yield "router_false_downgrades_of_needed_length", Figure(by_rule.false / max(1, by_rule.needed))


def foreign_figures(name: str, rows: Sequence[Row], weights: Weights) -> Iterator[tuple[str, Figure]]:
    """A set of another kind, which no fit and no choice of features has seen."""
    data = prepare(rows)
    yield f"router_{name}_apgr", Figure(apgr(scores(weights, data.features), data.gain))
    yield f"router_{name}_apgr_length", Figure(apgr(_lengths(rows), data.gain))
    yield f"router_{name}_unfamiliar", Figure(float(unfamiliar(weights, data.features).mean()))


def cpu_figures(scorer: LinearScorer, texts: Sequence[str]) -> Iterator[tuple[str, Figure]]:
    """CPU of the estimate alone, and of a whole decision among ten models."""
    models = [
        Candidate(f"model-{n}", 1 + n % 3, 8_192, frozenset({"tools"}), frozenset({"eu"}), True, n / 10, n, None)
        for n in range(10)
    ]
    policy = RoutingPolicy(rules=(Rule("greeting", 1, fixed=True, words_at_most=3),))
    questions = [Question(text, 0, 300, "auto", "organization") for text in texts]
    started = time.process_time()
    for text in texts:
        scorer.estimate(text)
    estimated = time.process_time()
    for question in questions:
        route(question, models, policy=policy, scorer=scorer)
    routed = time.process_time()
    for name, took, goal in (
        ("router_cpu_us", estimated - started, 1_000),
        ("router_decision_cpu_us", routed - estimated, 300),
    ):
        yield name, Figure(took / len(texts) * 1e6, goal, lower_is_better=True, unit="us")


def _lengths(rows: Sequence[Row]) -> Floats:
    return np.array([len(row.text) for row in rows], dtype=float)


def measure(rows: Sequence[Row], foreign: Mapping[str, Sequence[Row]]) -> tuple[dict[str, Figure], str, Weights]:
    """The figures, the table of false downgrades as Markdown, and weights trained on all of `rows`."""
    data = prepare(rows)
    fold = folds_of(data.group, FOLDS)
    judged = judge(data, fold)
    lines = table(rows, data, judged, judge_length(data, _lengths(rows), fold))
    weights = fit(data, source=SOURCE)
    figures = dict(rank_figures(rows, data)) | dict(choice_figures(data, judged, lines))
    for name, others in foreign.items():
        figures |= dict(foreign_figures(name, others, weights))
    figures |= dict(cpu_figures(LinearScorer(weights), [row.text for row in rows[:2_000]]))
    return figures, "\n".join(line.line() for line in lines), weights


def report(figures: Mapping[str, Figure], path: Path) -> None:
    entries = {}
    for name, figure in figures.items():
        entries[name] = {"value": round(figure.value, 4), "unit": figure.unit, "goal": figure.goal, "ok": figure.ok}
        goal = "" if figure.goal is None else f"goal {figure.goal:.4g} {'ok' if figure.ok else 'MISSED'}"
        print(f"{name:42} {figure.value:10.4f} {figure.unit:6} {goal}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder with mmlu/*.csv and gsm8k_responses.csv")
    parser.add_argument("--write", type=Path, default=None, help="write weights trained on all subjects here")
    parser.add_argument("--json", type=Path, default=Path("build/bench/router.json"))
    options = parser.parse_args()
    grade_school = read(options.data / "gsm8k_responses.csv", "gsm8k")
    figures, lines, weights = measure(read_mmlu(options.data), {"gsm8k": grade_school})
    report(figures, options.json)
    print(lines)
    if options.write:
        options.write.write_bytes(weights.to_json() + b"\n")


if __name__ == "__main__":
    main()
