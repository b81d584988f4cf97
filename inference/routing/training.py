"""Fits the weights of `scorer` to labelled questions. Needs numpy; the scorer itself does not.

Responsible for: the fit, the threshold, and the measures by which a ranking of questions is judged (after RouteLLM,
Ong et al. 2024, arXiv 2406.18665, section 4.1). Leaves to `tests/bench/router.py` the data, the folds and the report.

Every question belongs to a group (a subject): nothing may be tuned on a group that is then judged, because
questions of one subject resemble one another and a split through them flatters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inference.routing.features import FEATURES, measure
from inference.routing.scorer import BOUNDED, CLIP, Weights

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

PENALTY = 1_000.0
FAMILIAR_SHARE = 0.99
GAP_SHARE = 0.8
INNER_FOLDS = 5
_LENGTH = FEATURES.index("log_words")
_CONSTANT = 1e-6
_BOUNDED = [FEATURES.index(name) for name in BOUNDED]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Questions by row: features (n, len(FEATURES)), whether the weaker and the stronger model were right (n), the
    group's number (n), and whether the labels may be learned from (n); the others are only judged."""

    features: Floats
    weak: Labels
    strong: Labels
    group: npt.NDArray[np.int_]
    trusted: Labels

    @property
    def gain(self) -> Floats:
        """1 where only the stronger model was right, -1 where only the weaker one was, else 0."""
        return np.asarray(self.strong.astype(float) - self.weak.astype(float))

    def take(self, rows: Labels) -> Labelled:
        return Labelled(self.features[rows], self.weak[rows], self.strong[rows], self.group[rows], self.trusted[rows])


def labelled(
    texts: Sequence[str],
    weak: Sequence[bool],
    strong: Sequence[bool],
    groups: Sequence[str],
    *,
    distrusted: Collection[str] = (),
) -> Labelled:
    """`distrusted`: groups whose labels are known to be wrong."""
    numbers = {name: number for number, name in enumerate(sorted(set(groups)))}
    return Labelled(
        np.array([measure(text) for text in texts]).reshape(-1, len(FEATURES)),
        np.array(weak, dtype=bool),
        np.array(strong, dtype=bool),
        np.array([numbers[name] for name in groups], dtype=int),
        np.array([name not in distrusted for name in groups], dtype=bool),
    )


def fit(data: Labelled, *, gap_share: float = GAP_SHARE, source: str = "") -> Weights:
    """Weights with the threshold that closes `gap_share` of the gap on groups that were held out inside `data`.
    ValueError when the stronger model is not better: then there is nothing to route for."""
    data = data.take(data.trusted)
    if data.gain.sum() <= 0:
        raise ValueError("the stronger model was not right more often: there is nothing to learn")
    inner = held_out_scores(data, folds_of(data.group, INNER_FOLDS))
    return _fit(data, threshold_for(inner, data.gain, gap_share), source)


def _fit(data: Labelled, threshold: float, source: str = "") -> Weights:
    """The mean of two regressions of the gain on standardized, clipped features: ridge on all of them, and least
    squares on length alone. Equal weights, as forecasts are commonly combined (Bates and Granger 1969): what the
    features say of unknown subjects is uncertain, and length holds almost everywhere. A group of n questions weighs
    like sqrt(n) of them, so that the largest subjects do not decide alone."""
    mean, spread = data.features.mean(axis=0), data.features.std(axis=0)
    scale = np.where(spread < _CONSTANT, 1.0, spread)
    z = (data.features - mean) / scale
    clipped = np.clip(z, -CLIP, CLIP)
    share = np.bincount(data.group)[data.group] ** -0.5
    share *= len(share) / share.sum()
    centre, level = np.average(clipped, axis=0, weights=share), np.average(data.gain, weights=share)
    x = clipped - centre
    weighted, gain = x * share[:, None], data.gain - level
    ridge = np.linalg.solve(weighted.T @ x + PENALTY * np.eye(x.shape[1]), weighted.T @ gain)
    by_length = np.zeros_like(ridge)
    by_length[_LENGTH] = max(0.0, weighted[:, _LENGTH] @ gain / (weighted[:, _LENGTH] @ x[:, _LENGTH]))
    weight = (ridge + by_length) / 2
    precision = np.linalg.inv(z.T @ z / len(z) + 1e-3 * np.eye(z.shape[1]))
    distance = np.quantile(np.einsum("ij,jk,ik->i", z, precision, z), FAMILIAR_SHARE)
    return Weights(
        features=FEATURES,
        mean=_rounded(mean),
        scale=_rounded(scale),
        weight=_rounded(weight),
        intercept=_short(float(level - centre @ weight)),
        threshold=_short(threshold),
        precision=tuple(_rounded(row) for row in precision),
        distance=_short(float(distance)),
        least=_rounded(np.quantile(data.features[:, _BOUNDED], 1 - FAMILIAR_SHARE, axis=0) - 1e-4),
        source=source,
    )


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(_short(float(value)) for value in values)


def _short(value: float) -> float:
    """Six digits that count: the file stays small, and scores move by less than they mean anything."""
    return float(f"{value:.6g}")


def scores(weights: Weights, features: Floats) -> Floats:
    """The scores (n) that `LinearScorer` gives one by one."""
    z = (features - np.array(weights.mean)) / np.array(weights.scale)
    return np.asarray(weights.intercept + np.clip(z, -CLIP, CLIP) @ np.array(weights.weight), dtype=float)


def unfamiliar(weights: Weights, features: Floats) -> Labels:
    """Whether (n) `LinearScorer` distrusts the score."""
    z = (features - np.array(weights.mean)) / np.array(weights.scale)
    far = np.einsum("ij,jk,ik->i", z, np.array(weights.precision), z)
    little = (features[:, _BOUNDED] < np.array(weights.least)).any(axis=1)
    return np.asarray((far > weights.distance) | little)


# ---------------------------------------------------------------- folds


def folds_of(group: npt.NDArray[np.int_], folds: int, seed: int = 0) -> npt.NDArray[np.int_]:
    """The fold (n) of each question; a group is never split."""
    names = np.unique(group)
    places = np.random.default_rng(seed).permutation(len(names)) % min(folds, len(names))
    return np.asarray(places[np.searchsorted(names, group)], dtype=int)


def held_out_scores(data: Labelled, fold: npt.NDArray[np.int_]) -> Floats:
    """Each question's score (n) by weights that were fitted without its fold."""
    found = np.zeros(len(fold))
    for number in np.unique(fold):
        held = fold == number
        found[held] = scores(_fit(data.take(~held & data.trusted), 0.0), data.features[held])
    return found


# ---------------------------------------------------------------- measures of a ranking


def closed_gap(score: Floats, gain: Floats) -> Floats:
    """Share (n + 1) of the gap between the models that is closed when the 0, 1, ... n highest scores go to the
    stronger one (RouteLLM's PGR). Equal scores share their gain, so that their order in the file counts nothing."""
    values, place = np.unique(-score, return_inverse=True)
    mean = np.bincount(place, gain) / np.bincount(place, minlength=len(values))
    ordered = np.sort(place)
    return np.asarray(np.concatenate([[0.0], np.cumsum(mean[ordered])]) / gain.sum())


def apgr(score: Floats, gain: Floats) -> float:
    """Area under the closed gap over the share of calls to the stronger model; random order gives 0.5."""
    closed = closed_gap(score, gain)
    return float((closed[1:] + closed[:-1]).mean() / 2)


def cost_of_gap(score: Floats, gain: Floats, share: float) -> float:
    """The least share of calls to the stronger model that closes `share` of the gap (RouteLLM's CPT)."""
    closed = closed_gap(score, gain)
    return float(np.argmax(closed >= share)) / len(gain)


def threshold_for(score: Floats, gain: Floats, share: float) -> float:
    """The score from which questions must go to the stronger model to close `share` of the gap."""
    count = round(cost_of_gap(score, gain, share) * len(gain))
    return float(np.sort(score)[::-1][max(0, count - 1)])


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Interval (95 % for z = 1.96) of a share (Wilson 1927); 0..1 when nothing was counted."""
    if not of:
        return 0.0, 1.0
    share, spread = hits / of, z * z / of
    middle = share + spread / 2
    half = z * float(np.sqrt(share * (1 - share) / of + spread / (4 * of)))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))
