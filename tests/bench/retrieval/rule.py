"""How well the rule tells questions about whole files from others, on those it was written with and on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from apps.files.retrieval.whole import Asks, asks_for
from tests.bench.retrieval.questions import DEVELOPMENT, HELD_OUT

Labelled = Sequence[tuple[str, str]]
SETS: dict[str, Labelled] = {"development": DEVELOPMENT, "held_out": HELD_OUT}


def judge(questions: Labelled, rule: Callable[[str], Asks] = asks_for) -> tuple[float, float, float]:
    """Precision and recall of "about whole files", and the share of questions whose kind is right."""
    said = [(label, rule(question).value) for label, question in questions]
    right = sum(bool(label) and bool(kind) for label, kind in said)
    found, wanted = sum(bool(kind) for _, kind in said), sum(bool(label) for label, _ in said)
    return right / max(1, found), right / max(1, wanted), sum(label == kind for label, kind in said) / len(said)


def measure() -> Iterator[tuple[str, float]]:
    for name, questions in SETS.items():
        precision, recall, kind = judge(questions)
        yield f"whole_precision_{name}", precision
        yield f"whole_recall_{name}", recall
        yield f"whole_kind_{name}", kind
