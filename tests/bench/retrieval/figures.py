"""The figures of retrieval, set by set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apps.files.retrieval.fusion import FILE_WEIGHT, KEYWORD_WEIGHT
from tests.bench.retrieval import rule, scope, sets
from tests.bench.retrieval.judging import Judge, Weights
from tests.bench.retrieval.stored import StoredSet

SHARES = [step / 10 for step in range(11)]
RANKINGS: dict[str, Weights] = {
    "": (KEYWORD_WEIGHT, FILE_WEIGHT),
    "_keyword": (1.0, 0.0),
    "_vector": (0.0, 0.0),
}
"""What people get, and each side alone."""
UNTUNED: Weights = (0.5, 0.0)
"""Both sides alike, which nothing had to be learnt for."""


def _learnt(judged: sets.JudgedSet) -> Iterator[tuple[str, float]]:
    """The weight of keywords that the set prefers, and what it gains from the file's (nDCG@10)."""
    judge = Judge(StoredSet(judged))
    scores = {share: judge.ndcg10((share, 0.0)) for share in SHARES}
    yield f"learnt_keyword_weight_{judged.name}", max(scores, key=lambda share: scores[share])
    for name, weights in RANKINGS.items():
        yield f"{judged.name}_ndcg10{name}", judge.ndcg10(weights)
    yield f"{judged.name}_ndcg10_without_file", judge.ndcg10((KEYWORD_WEIGHT, 0.0))


def measure(folder: Path) -> dict[str, float]:
    figures = dict(rule.measure())
    for learning in (sets.documentation(folder / "code-retrieval"), sets.library()):
        figures |= dict(_learnt(learning))
    code = Judge(StoredSet(sets.code(folder / "code-retrieval")))
    chunking = Judge(StoredSet(sets.chunking(folder / "chunking")))
    stored = StoredSet(sets.scifact(folder / "scifact"))
    scifact = Judge(stored)
    for name, weights in RANKINGS.items():
        figures[f"scifact_ndcg10{name}"] = scifact.ndcg10(weights)
        figures[f"scifact_recall100{name}"] = scifact.recall(weights, 100)
        figures[f"scifact_recall20{name}"] = scifact.recall(weights, 20)
        figures[f"scifact_mrr{name}"] = scifact.mrr(weights)
        figures[f"chunking_recall5{name}"] = chunking.covered(weights, 5)
        figures[f"code_pass10{name}"] = code.recall(weights, 10)
        figures[f"code_mrr{name}"] = code.mrr(weights)
    figures["scifact_ndcg10_untuned"] = scifact.ndcg10(UNTUNED)
    figures["index_pages_per_cpu_s"] = stored.pages_per_cpu_s
    return figures | scope.measure(stored)
