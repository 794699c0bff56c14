"""Every store of experiments keeps the latest state, gives back what it was given, and forgets all when it is told to (DEC-6)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.decision.store.states import MemoryStates
from interlock.decision.store.states_redis import RedisStates
from interlock.domain.decision.agents import described
from interlock.domain.decision.experiment import DecidedCycle, ExperimentState, concluded, folded, opened, registered
from tests.support.decisions import EVERYBODY, ML, NOW_US, RULES, decided

pytestmark = pytest.mark.req("DEC-6")
ID = "crp_sess_" + "1" * 32
STATE = ExperimentState(ML, {"a": {"name": "a"}}, {}, {"SWITCH_HPO": [1]}, [{"id": "sig_1"}], 3, 9, "ab")


def line(cycle: int) -> DecidedCycle:
    return DecidedCycle(cycle, cycle * 2, f"dec_{cycle}", "CONTINUE", "", "f" * 64, 1, NOW_US)


@pytest.fixture(params=["memory", "valkey"])
async def states(request):
    held = (
        MemoryStates() if request.param == "memory" else RedisStates(request.getfixturevalue("redis_url"), timeout_s=5)
    )
    yield held
    await held.close()


async def test_what_was_put_comes_back(states):
    """State and lines as they were; nothing where nothing is."""
    assert await states.state(ID) is None
    assert await states.cycles(ID, [1]) == [None]
    assert await states.unready_dependencies() == {}
    await states.put(ID, STATE, [line(1), line(2)])

    assert await states.state(ID) == STATE
    assert await states.cycles(ID, [2, 3, 1]) == [line(2), None, line(1)]
    assert await states.cycles(ID, []) == []


async def test_an_older_state_changes_nothing_unless_it_is_put_anew(states):
    """Of two processes the one that is behind does not set the store back; a restore from the chain replaces all."""
    await states.put(ID, STATE, [line(1)])
    older = replace(STATE, sequence=8, cycle=2)
    await states.put(ID, older, [line(2)])
    assert await states.state(ID) == STATE
    assert await states.cycles(ID, [2]) == [None]
    await states.put(ID, older, [line(2)], anew=True)

    assert await states.state(ID) == older
    assert await states.cycles(ID, [1, 2]) == [None, line(2)]


def test_records_add_up_to_the_state_that_made_them():
    """What was written while deciding and what is read back from the records are one state, and one list of cycles."""
    state, records = opened("search", RULES.text, NOW_US)
    for told in EVERYBODY:
        state, more = registered(state, described(told, RULES), NOW_US)
        records += more
    state, more = concluded(state, decided(), NOW_US)
    again, cycles = folded([*records, *more])

    assert again == state
    assert [one.cycle for one in cycles] == [7]
    assert registered(state, described(EVERYBODY[0], RULES), NOW_US) == (state, [])
