"""The router's measurement runs on a generated set, and its table counts what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from inference.routing.scorer import read_weights
from tests.bench import router as bench
from tests.factories import routing


def test_it_measures_reports_and_writes_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    routing.write(tmp_path, routing.rows())
    report, weights = tmp_path / "router.json", tmp_path / "weights.json"
    arguments = ["--data", str(tmp_path), "--json", str(report), "--write", str(weights)]
    monkeypatch.setattr(sys, "argv", ["router", *arguments])
    bench.main()
    figures = json.loads(report.read_text())
    assert figures["router_apgr_held_out"]["value"] > 0.6
    assert figures["router_cost_50"]["value"] < 0.5
    assert 0 < figures["router_false_downgrades"]["value"] < figures["router_false_downgrades_of_needed"]["value"] < 1
    assert "| all, by length | 440 |" in capsys.readouterr().out
    assert read_weights(weights.read_bytes()).source == bench.SOURCE


def test_a_false_downgrade_is_a_wrong_answer_that_the_stronger_model_had_right() -> None:
    rows = [
        bench.Row("a", "x", weak=False, strong=True),  # kept: false
        bench.Row("b", "x", weak=False, strong=True),  # given to the stronger one
        bench.Row("c", "x", weak=False, strong=False),  # kept, but nobody knew
        bench.Row("d", "x", weak=True, strong=True),  # kept, rightly
    ]
    asked = np.array([False, True, False, False])
    judged = bench.Judged(np.zeros(4), asked, np.zeros(4, dtype=bool))
    found = bench.downgrades("x", bench.prepare(rows), judged, np.ones(4, dtype=bool))
    assert (found.questions, found.downgraded, found.needed, found.false) == (4, 3, 2, 1)


def test_every_subject_of_an_area_is_named_once() -> None:
    named = [subject for subjects in bench.AREAS.values() for subject in subjects.split()]
    assert len(named) == len(set(named))
