"""The statistics behind the standard signals (SEED-5 §5), each with the confidence that its finding deserves.

Series are losses in the order of the trials, the smaller the better. Nothing here knows a clock or draws a number.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

SUREST = 0.99
"""No statistic of a few trials deserves more."""
MOST_RISES = 12


@dataclass(frozen=True)
class SeriesFinding:
    """What was found: the figure, and how sure it is, from 0 to 1."""

    value: float
    confidence: float


def running_best(losses: Sequence[float]) -> list[float]:
    """Return the best loss so far, after each trial."""
    best: list[float] = []
    for loss in losses:
        best.append(min(loss, best[-1]) if best else loss)
    return best


def slope(series: Sequence[float]) -> tuple[float, float]:
    """Return the least-squares slope per step, and its standard error. At least three values."""
    count = len(series)
    steps = range(count)
    fit = statistics.linear_regression(steps, series)
    residual = sum((value - fit.intercept - fit.slope * step) ** 2 for step, value in zip(steps, series, strict=True))
    spread = sum((step - (count - 1) / 2) ** 2 for step in steps)
    return fit.slope, math.sqrt(max(0.0, residual) / (count - 2) / spread)


def plateau(losses: Sequence[float], *, window: int = 10, threshold: float = 0.002) -> SeriesFinding | None:
    """Find that the best loss stopped falling: its slope over the last *window* trials is smaller than *threshold*.

    The slope is relative to the mean of the window, per trial. The confidence is the probability that the true slope is within
    the threshold, given the standard error of the fit.
    """
    best = running_best(losses)[-window:]
    if len(best) < window:
        return None
    scale = abs(statistics.fmean(best)) or 1.0
    found, error = (figure / scale for figure in slope(best))
    if abs(found) >= threshold:
        return None
    return SeriesFinding(found, _within(found, error, threshold))


def divergence(losses: Sequence[float], *, least: int = 3) -> SeriesFinding | None:
    """Find that the loss rose at least three times in a row, at the end of the series.

    Of k + 1 values in random order all are ordered with probability 1 / (k + 1)!; the confidence is the rest.
    """
    rises = 0
    for earlier, later in zip(reversed(losses[:-1]), reversed(losses[1:]), strict=True):
        if later <= earlier:
            break
        rises += 1
    if rises < least:
        return None
    return SeriesFinding(rises, min(SUREST, 1 - 1 / math.factorial(min(rises, MOST_RISES) + 1)))


def high_variance(values: Sequence[float], *, limit: float = 0.3, least: int = 5) -> SeriesFinding | None:
    """Find a coefficient of variation above 0.3 across trials.

    The confidence is the probability that the true one is above, by the normal approximation of its standard error.
    """
    if len(values) < least:
        return None
    mean = statistics.fmean(values)
    if not mean:
        return None
    found = statistics.stdev(values) / abs(mean)
    if found <= limit:
        return None
    error = found * math.sqrt(1 / (2 * (len(values) - 1)) + found**2 / len(values))
    return SeriesFinding(
        found, min(SUREST, NormalDist(found, error).cdf(math.inf) - NormalDist(found, error).cdf(limit))
    )


def utilization(used: float, limit: float) -> float:
    """Return the part of the budget that is used; all of it where there is none."""
    return used / limit if limit > 0 else 1.0


RUN_LENGTH = 465.0
"""Mean steps between false alarms of a two-sided CUSUM with k = 0.5 and h = 5 (Montgomery, Statistical Quality Control)."""


def drift(
    values: Sequence[float], *, baseline: int = 10, slack: float = 0.5, alarm: float = 5.0
) -> SeriesFinding | None:
    """Find a shift of the mean by CUSUM (Page 1954): sums of deviations, in standard deviations of the first *baseline* values.

    The figure is the sum that passed *alarm*, negative where the values fell. The confidence is the probability of no false alarm
    in so many steps.
    """
    if len(values) <= baseline:
        return None
    mean, deviation = statistics.fmean(values[:baseline]), statistics.stdev(values[:baseline])
    if not deviation:
        return None
    high = low = 0.0
    for step, value in enumerate(values[baseline:], 1):
        score = (value - mean) / deviation
        high, low = max(0.0, high + score - slack), max(0.0, low - score - slack)
        if max(high, low) > alarm:
            return SeriesFinding(high if high > low else -low, min(SUREST, math.exp(-step / RUN_LENGTH)))
    return None


def outlier(values: Sequence[float], *, limit: float = 3.5, least: int = 6) -> SeriesFinding | None:
    """Find that the last value is far from the others: a modified z-score above 3.5 (Iglewicz and Hoaglin 1993)."""
    if len(values) < least:
        return None
    middle = statistics.median(values[:-1])
    deviation = statistics.median(abs(value - middle) for value in values[:-1])
    if not deviation:
        return None
    score = 0.6745 * (values[-1] - middle) / deviation
    return SeriesFinding(score, min(SUREST, 1 - 2 * NormalDist().cdf(-abs(score)))) if score > limit else None


def flatness(losses: Sequence[float], *, window: int = 8, threshold: float = 0.02) -> SeriesFinding | None:
    """Find that the best trials of the series lie close together: the search space has nothing left to tell them apart.

    The figure is the spread of the best *window* losses relative to their mean.
    """
    best = sorted(losses)[:window]
    if len(losses) < 2 * window:
        return None
    mean = abs(statistics.fmean(best)) or 1.0
    spread = (best[-1] - best[0]) / mean
    return SeriesFinding(spread, min(SUREST, 1 - spread / threshold / 2)) if spread < threshold else None


def _within(value: float, error: float, threshold: float) -> float:
    """Return the probability that a normal variable is within ± *threshold*."""
    if not error:
        return SUREST
    normal = NormalDist(value, error)
    return min(SUREST, normal.cdf(threshold) - normal.cdf(-threshold))
