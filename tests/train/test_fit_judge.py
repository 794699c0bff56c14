"""The fit of the support rule: deterministic, monotone, and nine of ten faithful answers above one half."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from fit_judge import Judged, base_of, fitted

RANDOM = np.random.default_rng(7)


def answers(faithful: bool, centre: float, count: int = 60) -> list[Judged]:
    rows = [RANDOM.normal([[centre, -1.0 + 0.2 * centre]], 1.0, (3, 2)) for _ in range(count)]
    return [Judged(each, faithful) for each in rows]


SETS = [answers(True, 2.0) + answers(False, -1.0), answers(True, 1.0) + answers(False, -2.0)]


@pytest.mark.req("DPE-4")
def test_the_fit_is_monotone_and_repeats_itself():
    """The weights are those of supports that rise with P(entailment) and fall with strange words."""
    weights = fitted(SETS)

    assert weights[0] > 0.0 <= weights[1]
    assert weights.tolist() == fitted(SETS).tolist()


@pytest.mark.req("DPE-4")
def test_nine_of_ten_faithful_answers_are_lifted_above_one_half():
    """As the weighted share over the sets."""
    weights = fitted(SETS)
    base = base_of(SETS, weights)
    shares = [
        np.mean([(one.rows @ weights).min() + base >= -1e-9 for one in judged if one.faithful]) for judged in SETS
    ]

    assert math.isclose(float(np.mean(shares)), 0.9, abs_tol=0.02)
