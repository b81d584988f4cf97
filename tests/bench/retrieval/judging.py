"""Measures of a ranking, and rankings of a stored set by any weight of the fusion."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from apps.files.retrieval.fusion import Candidate, fuse, without_duplicates
from tests.bench.retrieval.sets import Question, Span
from tests.bench.retrieval.stored import StoredPassage, StoredSet

Weights = tuple[float, float]
"""Of keywords, and of the best passage of the same file."""
Score = Callable[[Question, Sequence[StoredPassage]], float]


def ndcg(ranking: Sequence[str], gains: Mapping[str, int], depth: int = 10) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002)."""
    found = sum(gains.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(ranking[:depth]))
    best = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(sorted(gains.values(), reverse=True)[:depth]))
    return found / best if best else 0.0


def recall(ranking: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    """Share of what is relevant that is among the first `depth`."""
    wanted = {name for name, gain in gains.items() if gain > 0}
    return len(wanted & set(ranking[:depth])) / len(wanted) if wanted else 1.0


def reciprocal_rank(ranking: Sequence[str], gains: Mapping[str, int]) -> float:
    """1 for a first that is relevant, 1/2 where it is the second, 0 where none is; its mean is MRR (Voorhees 1999)."""
    return next((1 / rank for rank, name in enumerate(ranking, start=1) if gains.get(name, 0) > 0), 0.0)


def covered(passages: Sequence[StoredPassage], file: int, spans: Sequence[Span]) -> float:
    """Share of the characters of `spans` that the passages hold; passages do not overlap."""
    held = sum(
        max(0, min(end, passage.span[1]) - max(start, passage.span[0]))
        for passage in passages
        if passage.file == file
        for start, end in spans
    )
    return held / sum(end - start for start, end in spans)


class Judge:
    """The product's candidates for every question of a set, ranked under any weight."""

    def __init__(self, stored: StoredSet) -> None:
        self._stored = stored
        self._found = [(question, stored.candidates(question.text)) for question in stored.judged.questions]

    def _ranked(self, candidates: Sequence[Candidate], weights: Weights) -> list[StoredPassage]:
        passages = (
            self._stored.passages[id] for id, _ in fuse(candidates, keyword_weight=weights[0], file_weight=weights[1])
        )
        return without_duplicates(((passage.text, passage) for passage in passages), len(candidates))

    def _mean(self, weights: Weights, score: Score) -> float:
        scores = [score(question, self._ranked(candidates, weights)) for question, candidates in self._found]
        return sum(scores) / len(scores)

    def ndcg10(self, weights: Weights) -> float:
        return self._mean(weights, lambda question, ranked: ndcg(_units(ranked), question.gains))

    def recall(self, weights: Weights, depth: int) -> float:
        return self._mean(weights, lambda question, ranked: recall(_units(ranked), question.gains, depth))

    def mrr(self, weights: Weights) -> float:
        return self._mean(weights, lambda question, ranked: reciprocal_rank(_units(ranked), question.gains))

    def covered(self, weights: Weights, depth: int) -> float:
        return self._mean(weights, lambda question, ranked: covered(ranked[:depth], question.file, question.spans))


def _units(ranked: Sequence[StoredPassage]) -> list[str]:
    return list(dict.fromkeys(passage.unit for passage in ranked))
