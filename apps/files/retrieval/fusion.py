"""One ranking out of keyword and vector scores. Pure.

A weighted sum of scores, not of ranks: ranks give a weak side as much say as a strong one. A passage without a vector
yet is judged by its keywords alone. Both constants are learnt by `tests.bench.retrieval` on sets of their own, one a
kind: a product's documentation, and Python's library.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

KEYWORD_WEIGHT = 0.3
"""Half way between what documentation prefers (0.4) and what source code does (0.2), as files of both are mixed."""
FILE_WEIGHT = 0.5
"""Of the best passage of the same file: what stands beside a good passage is more likely meant."""
FEW = 8
"""Passages whose cosines count for half of what is known of their model's spread."""
Item = TypeVar("Item")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """`keyword` is BM25 (0 without a common word), `cosine` None without a vector."""

    passage_id: UUID
    file_id: UUID
    keyword: float
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """How the cosines of a question lie over passages of one version of vectors."""

    count: int
    mean: float
    deviation: float


def level(cosine: float, own: Spread, common: Spread) -> float:
    """A cosine of one model on the scale of another: as many deviations above the mean as it was, -1 to 1.

    Few passages say little of a model, so their spread is drawn towards the common one.
    """
    weight = own.count / (own.count + FEW)
    mean = weight * own.mean + (1 - weight) * common.mean
    deviation = weight * own.deviation + (1 - weight) * common.deviation
    if deviation <= 0.0:
        return cosine
    return max(-1.0, min(1.0, common.mean + common.deviation * (cosine - mean) / deviation))


def fuse(
    candidates: Sequence[Candidate], *, keyword_weight: float = KEYWORD_WEIGHT, file_weight: float = FILE_WEIGHT
) -> list[tuple[UUID, float]]:
    """Passages by descending score, 0 to 1. Ties stay in the order given.

    BM25 has no scale of its own and is taken relative to the best; cosine has one and is taken as it is.
    """
    top = max((candidate.keyword for candidate in candidates), default=0.0)
    nearest = max((candidate.cosine for candidate in candidates if candidate.cosine is not None), default=1.0)
    scores: list[float] = []
    best: dict[UUID, float] = {}
    for candidate in candidates:
        keyword = candidate.keyword / top if top > 0 else 0.0
        vector = keyword * nearest if candidate.cosine is None else candidate.cosine
        score = keyword_weight * keyword + (1 - keyword_weight) * max(vector, 0.0)
        scores.append(score)
        best[candidate.file_id] = max(score, best.get(candidate.file_id, 0.0))
    scored = [
        (candidate.passage_id, (score + file_weight * best[candidate.file_id]) / (1 + file_weight))
        for candidate, score in zip(candidates, scores, strict=True)
    ]
    return sorted(scored, key=lambda item: -item[1])


def fingerprint(text: str) -> str:
    """The same for texts that differ in case, spacing and punctuation only."""
    return _SPACE.sub(" ", re.sub(r"[^\w\s]", "", text.lower())).strip()


def without_duplicates(items: Iterable[tuple[str, Item]], limit: int) -> list[Item]:
    """The first `limit` items whose text was not there before."""
    seen: set[str] = set()
    kept: list[Item] = []
    for text, item in items:
        mark = fingerprint(text)
        if mark in seen:
            continue
        seen.add(mark)
        kept.append(item)
        if len(kept) == limit:
            break
    return kept
