"""What the measurement of retrieval counts as found, and how it reads its sets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from apps.files.retrieval.whole import Asks
from tests.bench.retrieval import rule, sets
from tests.bench.retrieval.judging import covered, ndcg, recall, reciprocal_rank
from tests.bench.retrieval.questions import DEVELOPMENT
from tests.bench.retrieval.stored import StoredPassage


def test_measures_of_a_ranking() -> None:
    assert ndcg(["a", "b"], {"a": 1, "b": 1}) == 1
    assert ndcg(["x", "a"], {"a": 1}) == pytest.approx(0.6309, abs=1e-4)
    assert ndcg([], {"a": 1}) == 0
    assert recall(["x", "a"], {"a": 1, "b": 1, "c": 0}, 2) == 0.5
    assert [reciprocal_rank(ranking, {"a": 1, "x": 0}) for ranking in (["a"], ["x", "a"], ["x"])] == [1, 0.5, 0]


def test_the_share_of_an_answer_that_passages_hold() -> None:
    first, second = StoredPassage("", "", 0, (0, 10)), StoredPassage("", "", 0, (10, 20))
    elsewhere = StoredPassage("", "", 1, (0, 20))
    assert covered([first, elsewhere], 0, [(5, 15)]) == 0.5
    assert covered([first, second], 0, [(5, 15), (0, 2)]) == 1
    assert covered([elsewhere], 0, [(5, 15)]) == 0


def test_spans_are_counted_without_spaces(tmp_path: Path) -> None:
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "book.md").write_text("One two.\n\n\nThree  four five.")
    with (tmp_path / "questions_df.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "references", "corpus_id"])
        writer.writerow(
            ["Which?", json.dumps([{"content": "Three  four", "start_index": 11, "end_index": 22}]), "book"]
        )
    judged = sets.chunking(tmp_path)
    assert judged.questions == [sets.Question("Which?", {}, 0, [(7, 16)])]
    (source,) = judged.sources
    assert [element.text for page in source.pages for element in page.elements] == ["One two.", "Three  four five."]


def test_the_library_asks_for_functions_by_what_they_do() -> None:
    judged = sets.library()
    units = [unit for source in judged.sources for unit in source.units]
    assert len(units) == len(set(units)) > 1_000
    assert all(name in units for question in judged.questions for name in question.gains)
    told = {question.text for question in judged.questions}
    assert not any(page.text and told & {page.text} for source in judged.sources for page in source.pages)


def test_a_rule_that_is_wrong_is_noticed() -> None:
    assert rule.judge(DEVELOPMENT) == (1, 1, 1)
    assert rule.judge(DEVELOPMENT, lambda question: Asks.PLACE)[:2] == (0, 0)
    precision, recall, kind = rule.judge(DEVELOPMENT, lambda question: Asks.OVERVIEW)
    assert precision < 0.7
    assert recall == 1
    assert kind < 0.5
