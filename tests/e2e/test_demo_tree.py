"""``interlock demo --tree`` as a program runs it. The demonstration of one agent, in test_demo.py, is not long."""

from __future__ import annotations

import json

import pytest

from tests.e2e.test_demo import start

pytestmark = [pytest.mark.models, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one run with ``-o json``: the text is on standard error."""
    process = start(tmp_path_factory.mktemp("demo-tree"), "--tree", "-o", "json")
    out, err = process.communicate(timeout=280)
    return process.returncode, out, err


@pytest.mark.req("BUD-7", "BRK-4", "AGT-1", "HDR-3", "PRV-4")
def test_the_demonstration_of_a_tree_keeps_every_promise(shown):
    """It ends with exit code 0 and names no broken promise."""
    code, out, err = shown

    assert code == 0, err
    assert json.loads(out)["broken"] == []


@pytest.mark.req("BUD-7", "BRK-3")
def test_one_specialist_spends_the_budget_of_the_tree_and_the_others_keep_theirs(shown):
    """The root is as low as its lowest child and open; siblings stay where they were."""
    tree = {one["agent"]: one for one in json.loads(shown[1])["tree"]}

    assert tree["orchestrator"]["safety_budget_micros"] <= tree["investment"]["safety_budget_micros"] <= 100_000
    assert "OPEN" == tree["orchestrator"]["breaker"]
    assert {"CLOSED"} == {tree[name]["breaker"] for name in ("storage", "health")}


def test_a_person_sees_the_tree_change(shown):
    """Budgets, breakers, the halt and the verified tree stand in the text."""
    text = shown[2]

    for part in ("HALF_OPEN", "OPEN", "<- was", "451", "audit verify --tree", "VALID"):
        assert part in text
