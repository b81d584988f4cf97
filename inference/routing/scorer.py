"""How much a stronger model would gain on a question: a linear score over `features`, and a test of familiarity.

Responsible for: applying weights that were trained elsewhere (`training`) and kept as JSON of a few kilobytes.
Deterministic, no I/O after loading, tens of microseconds a question.

The score is a regression (see `training`) on the gain: 1 when only the stronger model was right, -1 when only the
weaker one was, else 0. So it estimates P(stronger right) - P(weaker right). It is not to be trusted for a question
unlike those it was trained on: further from them, by squared Mahalanobis distance, than 99 % of them are (Lee et al.
2018, "A simple unified framework for detecting out-of-distribution samples", arXiv 1807.03888, with one class), or
with fewer words, or a smaller share of common English words, than 99 % of them have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from inference.routing.features import FEATURES, measure
from inference.routing.types import Estimate

PACKAGED_WEIGHTS = Path(__file__).with_name("weights.json")
BOUNDED = ("log_words", "common_words")
"""Features whose small values are unfamiliar by themselves: short texts, other languages."""
_BOUNDED = tuple(FEATURES.index(name) for name in BOUNDED)
_TOO_LITTLE = ("shorter than they are", "few common English words")
CLIP = 3.0
"""Standard deviations beyond which a feature counts no further in the score."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What training leaves. All tuples are in the order of `features`; `precision` is the inverse covariance of the
    standardized features, row by row. The familiar has at most `distance`, and `least` or more of each `BOUNDED`."""

    features: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weight: tuple[float, ...]
    intercept: float
    threshold: float
    precision: tuple[tuple[float, ...], ...]
    distance: float
    least: tuple[float, ...]
    source: str = ""

    def to_json(self) -> bytes:
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)


def read_weights(data: bytes) -> Weights:
    """ValueError when the file is damaged, or was made for other features."""
    raw: Any = orjson.loads(data)
    try:
        weights = Weights(
            features=tuple(raw["features"]),
            mean=_numbers(raw["mean"]),
            scale=_numbers(raw["scale"]),
            weight=_numbers(raw["weight"]),
            intercept=float(raw["intercept"]),
            threshold=float(raw["threshold"]),
            precision=tuple(_numbers(row) for row in raw["precision"]),
            distance=float(raw["distance"]),
            least=_numbers(raw["least"]),
            source=str(raw.get("source", "")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"these are no routing weights: {error!r}") from None
    if weights.features != FEATURES:
        raise ValueError("these routing weights were trained on other features: train again")
    sizes = {len(row) for row in (weights.mean, weights.scale, weights.weight, weights.precision, *weights.precision)}
    if sizes != {len(FEATURES)} or len(weights.least) != len(BOUNDED):
        raise ValueError("these routing weights are incomplete")
    return weights


def _numbers(values: list[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


class LinearScorer:
    """A `Scorer` with trained weights."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def estimate(self, text: str) -> Estimate:
        w = self.weights
        values = measure(text)
        z = [(value - mean) / scale for value, mean, scale in zip(values, w.mean, w.scale, strict=True)]
        score = w.intercept + sum(b * max(-CLIP, min(CLIP, x)) for b, x in zip(w.weight, z, strict=True))
        return Estimate(score, w.threshold, self._unfamiliar(values, z))

    def _unfamiliar(self, values: Sequence[float], z: Sequence[float]) -> str:
        w = self.weights
        for place, least, words in zip(_BOUNDED, w.least, _TOO_LITTLE, strict=True):
            if values[place] < least:
                return words
        far = sum(x * sum(p * y for p, y in zip(row, z, strict=True)) for x, row in zip(z, w.precision, strict=True))
        return f"distance {far:.0f}, usual below {w.distance:.0f}" if far > w.distance else ""


@lru_cache(maxsize=8)
def load_scorer(path: Path = PACKAGED_WEIGHTS) -> LinearScorer:
    """OSError when there is no such file, ValueError when it is not usable. Read once a process."""
    return LinearScorer(read_weights(path.read_bytes()))
