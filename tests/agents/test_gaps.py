"""The list of known gaps: what it lets pass, what it does not, and that it cannot grow stale."""

from __future__ import annotations

import pytest

from tests.agents.catalogue import agent
from tests.agents.gaps import Gaps, load, seen_in
from tests.agents.scenario import load as scenario
from tests.agents.scenario import names
from tests.agents.suite import Run, Stop
from tests.agents.table import Outcome, page, summary

pytestmark = pytest.mark.req("ATT-11")
AGENT = agent("openai-python")
TRAVEL = scenario("travel")
FAULT = TRAVEL.faults[1]
KNOWN = Gaps({("travel", 2): "a table as a source"}, frozenset({("travel", FAULT.turn, FAULT.kind)}))


def stop(turn: int, risk: str = "HIGH", what: str = "halted") -> Stop:
    return Stop(AGENT.name, "travel", turn, what, f"451 {risk}", "?", "!", risk)


def run(*stops: Stop, fault=None, told=()) -> Run:
    return Run(AGENT, TRAVEL, fault, 12, [], list(told), list(stops), [])


@pytest.mark.parametrize(
    ("stops", "wrong"),
    [
        ([], 0),
        ([stop(2)], 0),
        ([stop(2), stop(5, "LOW")], 0),
        ([stop(5, "LOW")], 1),
        ([stop(3)], 1),
        ([stop(3, what="rewritten")], 1),
        ([stop(2), stop(3)], 1),
        ([stop(2), stop(5, "LOW", what="refused")], 1),
    ],
    ids=[
        "untouched",
        "known",
        "what a known one led to",
        "stopped for nothing",
        "new",
        "rewritten",
        "known and new",
        "a bad request",
    ],
)
def test_a_clean_run_may_show_known_gaps_alone(stops, wrong):
    """A stop that is not on the list is wrong; one for what earlier answers cost is wrong where none of them was stopped."""
    assert len(list(KNOWN.new([run(*stops)]))) == wrong


def test_an_agent_that_fails_by_itself_is_wrong():
    """An agent that breaks although every answer came is a fault of ours: the answers were not what it can read."""
    failed = [{"turn": 4, "error": "ValueError"}]

    assert len(list(KNOWN.new([run(told=failed)]))) == 1
    assert list(KNOWN.new([run(stop(2), told=failed)])) == []


@pytest.mark.parametrize(
    ("fault", "stops", "wrong"),
    [
        (TRAVEL.faults[0], [stop(TRAVEL.faults[0].turn)], 0),
        (TRAVEL.faults[0], [], 1),
        (TRAVEL.faults[0], [stop(1)], 1),
        (TRAVEL.faults[0], [stop(2)], 0),
        (FAULT, [], 0),
    ],
    ids=["stopped", "passed", "ended too early", "ended at a known gap", "known to pass"],
)
def test_a_planted_fault_must_be_stopped_at_its_turn(fault, stops, wrong):
    """One that passes is wrong unless it is on the list; a conversation that ended at a known gap shows nothing about it."""
    assert len(list(KNOWN.new([run(*stops, fault=fault)]))) == wrong


def test_an_entry_that_is_gone_is_told():
    """After a full run the list has nothing that did not happen."""
    outcome = Outcome([run(stop(2))], [run(stop(FAULT.turn), fault=FAULT)])

    assert list(KNOWN.gone(outcome)) == [f"passed: travel turn {FAULT.turn}, {FAULT.kind}"]
    assert list(KNOWN.gone(Outcome([run()], [run(fault=FAULT)]))) == ["harmed: travel turn 2"]


def test_what_a_run_shows_is_what_the_list_would_hold():
    """A consequence is no entry, and a fault that was stopped is none either."""
    seen = seen_in(Outcome([run(stop(2), stop(5, "LOW"))], [run(fault=FAULT), run(stop(6), fault=TRAVEL.faults[2])]))

    assert set(seen.harmed) == {("travel", 2)}
    assert seen.passed == {("travel", FAULT.turn, FAULT.kind)}


def test_every_entry_of_the_list_is_in_a_conversation():
    """The committed list names scenarios, turns and faults that exist."""
    known = load()
    scenarios = {name: scenario(name) for name in names()}
    turns = {(name, turn.number) for name, one in scenarios.items() for turn in one.turns}
    faults = {(name, fault.turn, fault.kind) for name, one in scenarios.items() for fault in one.faults}

    assert known.harmed.keys() <= turns
    assert known.passed <= faults


def test_the_page_says_what_was_seen_and_what_was_left_out():
    """Counts, a missed fault in bold, and why an agent is missing."""
    outcome = Outcome([run(stop(2))], [run(fault=FAULT)], ["vercel: Node is not installed"])
    text = page(outcome, full=False)

    assert "false halts: 1" in "\n".join(summary(outcome))
    assert "left out: vercel: Node is not installed" in text
    assert f"| {FAULT.kind}, turn {FAULT.turn} | **no** |" in text
