"""The hold of a window whose answer is released in parts: what others see of the budget meanwhile, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.budget import Micros
from interlock.domain.dag.dag import BRANCH, LINEAR
from interlock.domain.errors import Refused
from interlock.domain.session.caller import CallerAsk, Period, caller_id_of
from interlock.domain.session.caller import CallerState as Caller
from interlock.domain.session.hold import BudgetHold, HoldWindow
from interlock.domain.session.holding import hold_window
from interlock.domain.session.opening import open_window
from interlock.domain.session.restore import SessionBegan, StreamBegan, merged, replayed
from interlock.domain.session.rule import abandon_window, commit_window
from interlock.domain.session.state import VOID, Lease, SessionState
from tests.support.session.sessions import NOW_MS, first_ask, new_state, session_id, settle, window_id

pytestmark = pytest.mark.req("BUD-11")

AMOUNT = Micros(350_000)
CALLER = caller_id_of("somebody")


def opened(budget: int = 1_000_000, **changed) -> tuple[SessionState, object]:
    state = new_state(budget=budget, **changed)
    return open_window({state.terms.session_id: state}, first_ask(1))


def asked(amount: int = AMOUNT, ceiling: int = 1_000_000, caller: str = "") -> HoldWindow:
    return HoldWindow(
        session_id(), session_id(), window_id(1), Micros(amount), Micros(ceiling), caller, 7 if caller else 0
    )


def reason(call, *arguments) -> str:
    with pytest.raises(Refused) as caught:
        call(*arguments)
    return caught.value.reason


def caller(left: int) -> Caller:
    return Caller((Period(7, Micros(left)),))


def test_a_hold_lowers_no_budget_and_ends_with_the_settlement():
    """The budget stays what it was; the settlement takes the real amount and the hold goes."""
    state, lease = opened()
    held, _ = hold_window(state, None, asked())
    changed, _ = commit_window({session_id(): held}, settle(1, lease, charge=Micros(50_000)))

    assert (held.budget, held.held) == (1_000_000, AMOUNT)
    assert (changed[session_id()].budget, changed[session_id()].held) == (950_000, 0)


def test_it_is_asked_for_again_without_a_second_hold():
    """The same window and amount twice is one hold."""
    state, _ = opened()
    once, _ = hold_window(state, None, asked())

    assert hold_window(once, None, asked())[0] == once
    assert reason(hold_window, once, None, asked(AMOUNT + 1)) == "HOLD_NOT_POSSIBLE"


@pytest.mark.parametrize(("budget", "ceiling", "held"), [(450_001, 1_000_000, True), (450_000, 1_000_000, False),
                                                         (1_000_000, 450_000, False)])  # fmt: skip
def test_the_worst_must_leave_the_breaker_shut(budget, ceiling, held):
    """A window whose worst would open the breaker is not released in parts."""
    state, _ = opened(budget)
    if held:
        assert hold_window(state, None, asked(ceiling=ceiling))[0].held == AMOUNT
    else:
        assert reason(hold_window, state, None, asked(ceiling=ceiling)) == "HOLD_NOT_COVERED"


@pytest.mark.parametrize("changed", [{"accumulate": True}])
def test_not_where_costs_add_up(changed):
    """What every session above may still spend is not held: such an answer is released as a whole."""
    state, _ = opened(**changed)

    assert reason(hold_window, state, None, asked()) == "HOLD_NOT_POSSIBLE"


def test_not_without_the_lease():
    """A window that another one took the place of sets nothing aside."""
    assert reason(hold_window, new_state(), None, asked()) == "LEASE_LOST"


def test_other_windows_see_the_budget_less_the_hold():
    """Once the lease ran out the window may have been released: the next one starts with what its worst would leave."""
    state, _ = opened()
    held, _ = hold_window(state, None, asked())
    later = replace(first_ask(2), now_ms=NOW_MS + 10**7)
    _, second = open_window({session_id(): held}, later)
    low = replace(held, budget=Micros(430_000))

    assert second.session_budget == 650_000
    assert second.unsettled == window_id(1)
    assert reason(open_window, {session_id(): low}, later) == "BUDGET_HELD"


def test_the_caller_sees_it_too():
    """The caller's budget is held as well, and a caller without the room gets its answers whole."""
    state, _ = opened(caller_id=CALLER)
    _, holding = hold_window(state, caller(1_000_000), asked(caller=CALLER))

    assert holding is not None
    assert holding.now.held == AMOUNT
    assert reason(hold_window, state, caller(450_000), asked(caller=CALLER)) == "HOLD_NOT_COVERED"
    assert CallerAsk(CALLER, 7, Micros(1)).caller_id == CALLER


def test_a_lease_given_back_frees_it():
    """Where nothing was released nothing is held on."""
    held, _ = hold_window(opened()[0], None, asked())

    assert abandon_window(held, window_id(1))[0].holds == ()


def test_the_record_brings_it_back():
    """A store that lost the session gets the hold and its lease back from the chain, and loses them with the settlement."""
    state, lease = opened()
    began = StreamBegan(session_id(), BudgetHold(window_id(1), AMOUNT), Lease(window_id(1), NOW_MS + 5))
    begun = SessionBegan(state.terms, state.policy, Micros(1_000_000))
    flying = merged(None, replayed(session_id(), [begun, began])[session_id()])
    settled = replayed(session_id(), [begun, began, settle(1, lease, charge=Micros(0))])[session_id()]

    assert (flying.held, [lease.window_id for lease in flying.leases]) == (AMOUNT, [window_id(1)])
    assert (settled.held, settled.leases) == (0, ())
    assert merged(flying, settled).holds == ()
    assert merged(state, flying).held == AMOUNT


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize("begun", ["before the window in its place", "after it"])
def test_a_stream_without_its_place_takes_none_in_a_rebuild(begun):
    """A full session whose store was set back is rebuilt: the stream's lease is void, and its hold is kept."""
    state = new_state(max_dag_nodes=3)
    began = StreamBegan(
        session_id(), BudgetHold(window_id(9), AMOUNT), Lease(window_id(9), NOW_MS, LINEAR, (window_id(1),))
    )
    free = {"charge": Micros(0), "ceiling": Micros(1_000_000)}
    root, second = settle(1, **free), settle(2, parent_ids=(window_id(1),), window_number=2, **free)
    third = settle(3, parent_ids=(window_id(2),), window_number=3, **free)
    line = [root, began, second] if begun.startswith("before") else [root, second, began]
    steps = [SessionBegan(state.terms, state.policy, Micros(1_000_000)), *line, third]
    rebuilt = replayed(session_id(), steps)[session_id()]
    stored = merged(None, rebuilt)

    assert [node.window_id for node in stored.nodes] == [window_id(1), window_id(2), window_id(3)]
    assert stored.held == AMOUNT
    assert stored.leases == rebuilt.leases == (Lease(window_id(9), NOW_MS, VOID, (window_id(1),)),)


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize("told", [True, False])
def test_a_stream_that_was_sealed_beside_is_rebuilt_as_a_branch(told):
    """The chain has it as a branch from the same parent, in a session that was full before it; its beginning need not be told any more."""
    state = new_state(max_dag_nodes=2)
    began = StreamBegan(
        session_id(), BudgetHold(window_id(9), AMOUNT), Lease(window_id(9), NOW_MS, LINEAR, (window_id(1),))
    )
    below = {"parent_ids": (window_id(1),), "window_number": 2, "ceiling": Micros(1_000_000)}
    steps = [
        SessionBegan(state.terms, state.policy, Micros(1_000_000)),
        settle(1, charge=Micros(0)), settle(2, charge=Micros(0), **below), *([began] if told else []),
        settle(9, charge=AMOUNT, pattern=BRANCH, **below),
    ]  # fmt: skip
    rebuilt = replayed(session_id(), steps)[session_id()]

    assert (rebuilt.budget, rebuilt.held, rebuilt.leases) == (650_000, 0, ())
    assert [node.pattern for node in rebuilt.nodes] == [LINEAR, LINEAR, BRANCH]
