"""What many calls need: the model keeps its parts below what they can do, and the page shows what it prints."""

from __future__ import annotations

import json

import pytest

from bench.scale import model
from bench.scale.__main__ import per_call
from tests.support.paths import ROOT

MEASURED = per_call(json.loads((ROOT / "bench" / "scale" / "inputs.json").read_text()))
RATES = (1, 10, 137, 1_000, 12_345, 100_000)


def test_the_page_shows_the_table_that_the_measured_inputs_give():
    """docs/scale.md has no figure that the committed inputs do not give."""
    assert model.table(MEASURED) in (ROOT / "docs" / "scale.md").read_text()


@pytest.mark.parametrize("rate", RATES)
def test_no_part_is_filled_above_its_share(rate):
    """Every kind of process, and every log, has at most the stated share of its time to do."""
    plan = model.plan(rate, MEASURED)

    assert rate / plan.deployments <= model.FILLED * model.log_limit(MEASURED) * (1 + 1e-9)
    for name, cpu in model.REPEATED.items():
        assert rate * MEASURED[cpu] / 1000 / plan.replicas[name] <= model.FILLED * (1 + 1e-9)


def test_more_calls_never_need_less():
    """Cores, logs and storage only grow with the rate."""
    plans = [model.plan(rate, MEASURED) for rate in RATES]

    for part in ("deployments", "cores", "stored_tb", "usd_month"):
        assert sorted(getattr(one, part) for one in plans) == [getattr(one, part) for one in plans]


def test_the_first_bottleneck_is_the_part_that_takes_the_longest():
    """With cheap models it is the log, whose writers take turns."""
    assert model.plan(10, {**MEASURED, "dpe_cpu_ms": 10_000}).fullest.startswith("dpe, 100 times")
    assert model.plan(10, {**MEASURED, "dpe_cpu_ms": 0, "writer_cpu_ms": 500}).fullest.startswith("the audit log")
