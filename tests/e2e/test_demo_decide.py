"""``interlock demo --decide`` as a program runs it: a real search, four processes, one killed (DEC-12)."""

from __future__ import annotations

import json

import pytest

from tests.e2e.test_demo import start

pytestmark = [
    pytest.mark.models,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.req("DEC-12", "DEC-8", "DEC-11"),
]


def test_the_demonstration_of_a_steered_search_keeps_every_promise(tmp_path):
    """At least 30 trials, the killed agent FAILED and came back, every cycle replays, and five seeds beside searches without agents."""
    process = start(tmp_path, "--decide", "-o", "json")
    out, err = process.communicate(timeout=500)
    told = json.loads(out)

    assert process.returncode == 0, err[-4_000:]
    assert told["broken"] == []
    assert told["cycles"] >= 30
    assert {"DEGRADED", "FAILED", "PROBATION"} <= set(told["statuses"])
    assert {way: len(found) for way, found in told["results"].items()} == {"agents": 5, "random": 5, "tpe": 5}
    assert all(one["searched"] > 0.9 for found in told["results"].values() for one in found)
