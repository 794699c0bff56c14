"""Two sidecars over one: the ratio is told where it means something, and only there."""

from __future__ import annotations

import pytest

from bench.scale import replicas
from bench.scale.replicas import Measured

RATIO = "replicas: two sidecars over one, on one log"


def _turns(*rates: float, failed: int = 0) -> list[Measured]:
    """One sidecar and two in turns."""
    return [
        Measured(number % 2 + 1, rate, failed, [], {"sidecar": 1.0}, {"sidecar": 1.0})
        for number, rate in enumerate(rates)
    ]


def test_the_ratio_is_that_of_the_medians():
    """Each of the two has its own median."""
    found = replicas.figures(_turns(100, 190, 110, 210, 300, 230), 1, free=True)

    assert found[RATIO]["value"] == pytest.approx(210 / 110)
    assert found[RATIO]["target"] == 1.8


@pytest.mark.parametrize(("failed", "free"), [(0, False), (1, True)])
def test_without_free_cores_or_with_failed_calls_there_is_no_ratio(failed, free):
    """A ratio of cores that are shared, or of calls that failed, would be read as one of sidecars."""
    assert replicas.figures(_turns(100, 190, failed=failed), 1, free=free)[RATIO]["value"] is None


def test_a_machine_without_free_cores_is_refused_in_one_sentence(monkeypatch):
    """Nothing is started."""
    monkeypatch.setattr("sys.argv", ["replicas"])
    monkeypatch.setattr(replicas, "free_cores", lambda: 1.5)

    with pytest.raises(SystemExit, match=r"need 8 free cores, and 1\.5 of"):
        replicas.main()
