"""Silent, crashed and broken agents: DEGRADED, rules, FAILED, probation, and the experiment goes on (SEED-5 §12)."""

from __future__ import annotations

import pytest

from interlock.domain.decision.agents import AgentStanding
from interlock.domain.decision.words import AgentStatus, Arrival
from tests.support.decisions import ANALYST, PROTOCOL, RULES, STRATEGY, answer, decided, proposal, reasons, signal

pytestmark = pytest.mark.req("DEC-8")
FAILED = AgentStanding(AgentStatus.FAILED, 3)
LOW = signal("budget_low", "executor", payload={"utilization": 0.9})


@pytest.mark.parametrize("arrival", ["LATE", "LEFT", "ABSENT"])
def test_for_an_agent_that_does_not_answer_the_rules_of_its_role_speak(arrival):
    """A strategy that is gone still stops an experiment whose budget is used; the trace says that rules spoke."""
    trace = decided(answer(STRATEGY, arrival=arrival), given=[LOW])

    assert trace["outcome"] == "STOP_EXPERIMENT"
    assert trace["chosen"]["by"] == "RULES"
    assert trace["chosen"]["signals_used"] == trace["signals"]
    account = next(one for one in trace["agents"] if one["agent"] == "strategy")
    assert (account["status_before"], account["status_after"]) == ("ACTIVE", "DEGRADED")


def test_rules_have_no_more_authority_than_their_agent():
    """The rule of a role that its agent may not propose is rejected like a proposal."""
    bound = {**STRATEGY, "outputs": ["CONTINUE"]}

    assert reasons(decided(answer(bound, arrival="ABSENT"), given=[LOW])) == ["ACTION_UNDECLARED"]


def test_rules_speak_of_what_their_agent_may_hear():
    """A signal that the agent did not declare moves its rules no more than itself."""
    deaf = {**STRATEGY, "inputs": []}

    assert decided(answer(deaf, arrival="ABSENT"), given=[LOW])["chosen"] is None


def test_so_many_failures_in_a_row_and_an_agent_has_failed():
    """ACTIVE, DEGRADED, DEGRADED, FAILED; one good answer in between begins anew."""
    standing, seen = AgentStanding(), []
    for arrival in (Arrival.LATE, Arrival.ANSWERED, Arrival.LATE, Arrival.LEFT, Arrival.ABSENT):
        standing = standing.after(arrival, usable=arrival is Arrival.ANSWERED, rules=RULES)
        seen.append(str(standing.status))

    assert seen == ["DEGRADED", "ACTIVE", "DEGRADED", "DEGRADED", "FAILED"]
    assert not standing.is_asked


def test_probation_is_asked_and_not_heard_until_it_answered_well():
    """Five cycles after it failed it is asked again; two good answers, and it speaks; one bad one, and it has failed."""
    standing = FAILED
    for _ in range(5):
        assert not standing.is_asked
        standing = standing.after(Arrival.NOT_ASKED, usable=False, rules=RULES)
    assert standing.status is AgentStatus.PROBATION
    once = standing.after(Arrival.ANSWERED, usable=True, rules=RULES)

    assert once.status is AgentStatus.PROBATION
    assert once.after(Arrival.ANSWERED, usable=True, rules=RULES) == AgentStanding()
    assert once.after(Arrival.LATE, usable=False, rules=RULES).status is AgentStatus.FAILED


def test_what_is_said_on_probation_does_not_count():
    """Its proposals and signals are named as such; the rules speak."""
    standing = AgentStanding(AgentStatus.PROBATION)
    trace = decided(
        answer(PROTOCOL, proposal(), standing=standing),
        answer(ANALYST, signals=[signal()], standing=standing),
    )

    assert reasons(trace) == ["AGENT_ON_PROBATION"]
    assert [one["reason"] for one in trace["signals_rejected"]] == ["AGENT_ON_PROBATION"]
    assert trace["chosen"] is None


def test_a_flood_is_not_read():
    """More than an agent may send is counted and dropped whole."""
    trace = decided(answer(PROTOCOL, too_large=[0, 5000]))

    account = next(one for one in trace["agents"] if one["agent"] == "protocol")
    assert (account["fault"], account["too_large"]) == ("ANSWER_TOO_LARGE", [0, 5000])
    assert account["status_after"] == "DEGRADED"
