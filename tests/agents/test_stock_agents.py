"""The quick part of `make agents`: two stock agents through a real mesh in enforce, clean and with a planted fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.agents import gaps
from tests.agents.catalogue import agent
from tests.agents.scenario import load
from tests.agents.suite import Suite, running

pytestmark = [pytest.mark.models, pytest.mark.req("ATT-11"), pytest.mark.timeout(240)]

PAIRS = [("openai-python", "runbook"), ("openai-python-stream", "medical")]
FAULTS = [("openai-python", "runbook", 1), ("openai-python-stream", "medical", 1)]


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> Iterator[Suite]:
    with running(tmp_path_factory.mktemp("agents"), [name for _, name in PAIRS]) as made:
        yield made


@pytest.mark.parametrize(("name", "scenario"), PAIRS)
def test_a_clean_conversation_ends_untouched(suite, name, scenario):
    """Beyond the known gaps nothing is halted, held, refused or rewritten, and every answer is asked for once."""
    run = suite.run(agent(name), load(scenario))

    assert list(gaps.load().new([run])) == []
    assert run.provider_calls == run.calls
    assert {stop.turn for stop in run.stops} < {turn.number for turn in run.scenario.turns}


@pytest.mark.parametrize(("name", "scenario", "place"), FAULTS)
def test_a_planted_fault_is_stopped_at_its_turn(suite, name, scenario, place):
    """The turns before it pass, and its own answer never reaches the agent."""
    planted = load(scenario)
    run = suite.run(agent(name), planted, planted.faults[place])

    assert run.stopped_at_fault(), [(stop.turn, stop.what, stop.reason) for stop in run.stops]
