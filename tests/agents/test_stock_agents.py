"""The quick part of `make agents`: two stock agents through a real mesh in enforce, clean and with a planted fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents.catalogue import agent
from tests.agents.scenario import load
from tests.agents.suite import Suite, running

pytestmark = [pytest.mark.models, pytest.mark.req("ATT-11"), pytest.mark.timeout(240)]

PAIRS = [("openai-python", "travel"), ("openai-python-stream", "runbook")]


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Iterator[Suite]:
    with running(tmp_path_factory.mktemp("agents"), [name for _, name in PAIRS]) as made:
        yield made


@pytest.mark.parametrize(("name", "scenario"), PAIRS)
def test_a_clean_conversation_ends_untouched(suite, name, scenario):
    """Nothing is halted, held, refused or rewritten, every answer is asked for once, and hardly anything is charged."""
    run = suite.run(agent(name), load(scenario))

    assert [(stop.turn, stop.what, stop.reason) for stop in run.stops] == []
    assert run.lost == []
    assert run.provider_calls == run.calls
    assert run.spent <= 0.10


@pytest.mark.parametrize(("name", "scenario", "place"), [(*PAIRS[0], 0), (*PAIRS[1], 1)])
def test_a_planted_fault_is_stopped_at_its_turn(suite, name, scenario, place):
    """The turns before it pass, and its own answer never reaches the agent."""
    planted = load(scenario)
    run = suite.run(agent(name), planted, planted.faults[place])

    assert run.stopped_at_fault(), [(stop.turn, stop.what, stop.reason) for stop in run.stops]
