"""The scripted server as a pooling model: vectors and scores that anyone can reckon again, and that break on demand.

A vector counts the words of its text, each at a place of its own, so that texts with words in common are near one
another; a score is the part of the query's words that a passage holds. Leaves routes and bytes to `fake_server`.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

# wrong_count: one result too few. nan: what JSON has instead. refuse: status 400. fail: status 500.
Fault = Literal["", "wrong_count", "nan", "refuse", "fail"]
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def vector_of(text: str, dimensions: int) -> list[float]:
    """Of length 1; a text without words points nowhere in particular."""
    counts = [0.0] * dimensions
    for word in words_of(text) or [""]:
        counts[zlib.crc32(word.encode()) % dimensions] += 1.0
    norm = math.hypot(*counts)
    return [count / norm for count in counts]


def score_of(query: str, passage: str) -> float:
    wanted = set(words_of(query))
    return len(wanted & set(words_of(passage))) / max(1, len(wanted))


@dataclass(slots=True)
class FakePooling:
    """`dimensions`, `delay_s` and `fault` may be changed at any time. `asked`: the size of each request so far."""

    dimensions: int = 384
    delay_s: float = 0.0
    fault: Fault = ""
    asked: list[int] = field(default_factory=list)

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        data = [{"object": "embedding", "index": n, "embedding": self._vector(text)} for n, text in enumerate(texts)]
        return {"object": "list", "model": body.get("model"), "data": self._counted(data)}

    def rerank(self, body: dict[str, Any]) -> dict[str, Any]:
        """Best first, as real servers answer."""
        scores = [score_of(body["query"], passage) for passage in body["documents"]]
        results: list[dict[str, Any]] = [
            {"index": n, "relevance_score": self._number(score)} for n, score in enumerate(scores)
        ]
        results.sort(key=lambda result: -scores[result["index"]])
        return {"id": "rerank-fake", "model": body.get("model"), "results": self._counted(results)}

    def _vector(self, text: str) -> list[float | None]:
        first, *others = vector_of(text, self.dimensions)
        return [self._number(first), *others]

    def _number(self, value: float) -> float | None:
        return None if self.fault == "nan" else value

    def _counted(self, results: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        self.asked.append(len(results))
        return results[:-1] if self.fault == "wrong_count" else results
