"""Measures of a score against labels, each with a 95 % confidence interval. Everything random is seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]

RESAMPLES = 400
SEED = 20261121
_Z = 1.959963984540054


@dataclass(frozen=True)
class Figure:
    """A measured value with its interval and the rows behind it; ``value`` is NaN where it cannot be told."""

    value: float
    low: float
    high: float
    n: int

    def json(self) -> dict[str, float | int | None]:
        """Return it as JSON, where NaN does not exist."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {**{k: None if math.isnan(v) else round(v, 4) for k, v in numbers.items()}, "n": self.n}


UNTOLD = Figure(math.nan, math.nan, math.nan, 0)


def auroc(score: Sequence[float] | Array, positive: Sequence[bool] | Truth) -> float:
    """Return the chance that a positive scores above a negative, ties half; NaN without both."""
    values, truth = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    ones, zeros = int(truth.sum()), int((~truth).sum())
    if not ones or not zeros:
        return math.nan
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return float((ranks[place][truth].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def balanced(score: Sequence[float] | Array, positive: Sequence[bool] | Truth, threshold: float) -> float:
    """Return the mean of the shares found right among positives (at the threshold or above) and negatives."""
    values, truth = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    if truth.all() or not truth.any():
        return math.nan
    return float(((values[truth] >= threshold).mean() + (values[~truth] < threshold).mean()) / 2)


def best_threshold(score: Sequence[float] | Array, positive: Sequence[bool] | Truth) -> float:
    """Return the threshold with the highest balanced accuracy, between two scores that occur; NaN without both."""
    values, truth = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    if not len(values) or truth.all() or not truth.any():
        return math.nan
    levels = np.unique(values)
    cuts = [levels[0], *((levels[1:] + levels[:-1]) / 2)]
    return float(max(cuts, key=lambda cut: balanced(values, truth, cut)))


def wilson(hits: int, n: int) -> Figure:
    """Return a share with Wilson's interval."""
    if n == 0:
        return UNTOLD
    share = hits / n
    scale = 1 + _Z * _Z / n
    middle = (share + _Z * _Z / (2 * n)) / scale
    half = _Z * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n)) / scale
    return Figure(share, max(0.0, middle - half), min(1.0, middle + half), n)


def share(truths: Sequence[bool] | Truth) -> Figure:
    """Return the share of what is true, with Wilson's interval."""
    found = np.asarray(truths, dtype=bool)
    return wilson(int(found.sum()), len(found))


def bootstrap(
    score: Sequence[float] | Array,
    positive: Sequence[bool] | Truth,
    measure: Callable[[Array, Truth], float],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Figure:
    """Return a measure with the interval of its resamples; positives and negatives are drawn apart, so both stay."""
    values, truth = np.asarray(score, dtype=np.float64), np.asarray(positive, dtype=bool)
    ones, zeros = np.flatnonzero(truth), np.flatnonzero(~truth)
    if not len(ones) or not len(zeros):
        return Figure(math.nan, math.nan, math.nan, len(values))
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        rows = np.concatenate([rng.choice(ones, len(ones)), rng.choice(zeros, len(zeros))])
        drawn.append(measure(values[rows], truth[rows]))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Figure(measure(values, truth), float(low), float(high), len(values))


def auroc_figure(score: Sequence[float] | Array, positive: Sequence[bool] | Truth) -> Figure:
    """Return the AUROC with its interval."""
    return bootstrap(score, positive, auroc)


def balanced_figure(score: Sequence[float] | Array, positive: Sequence[bool] | Truth, threshold: float) -> Figure:
    """Return the balanced accuracy at a threshold that was set elsewhere, with its interval; NaN without one."""
    if math.isnan(threshold):
        return UNTOLD
    return bootstrap(score, positive, lambda values, truth: balanced(values, truth, threshold))
