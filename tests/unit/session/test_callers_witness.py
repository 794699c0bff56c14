"""A store that is set back in place: what this process saw a caller spend is not forgotten with it (ATT-2, BUD-9)."""

from __future__ import annotations

import pytest

from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.session.caller import CallerView
from interlock.session.callers import Callers, Seen

CALLER = SessionId("crp_sess_" + "a" * 32)
CAP = 1_000_000


def told(spent: int, period: int = 7, caller: str = CALLER) -> CallerView:
    return CallerView(SessionId(caller), period, Micros(CAP), Micros(max(0, CAP - spent)), 0)


def callers(most: int = 8) -> Callers:
    return Callers(store=None, rules=None, clock=None, seen=Seen(most))  # type: ignore[arg-type]


def knowing(*views: CallerView, most: int = 8) -> Callers:
    """Return callers of which each was rebuilt from the audit log by this process, as told."""
    made = callers(most)
    for view in views:
        made.seen.note(view)
    return made


@pytest.mark.req("ATT-2", "BUD-9")
def test_a_caller_seen_for_the_first_time_is_not_believed():
    """A process that was started anew knows nothing of what the store held before: the audit log does."""
    known = callers()
    with pytest.raises(Refused, match="CALLER_BUDGET_UNVERIFIED"):
        known.witness(told(0))


@pytest.mark.req("ATT-2", "BUD-9")
def test_a_store_that_knew_of_more_is_not_believed():
    """It is refused, so that the caller is rebuilt from the audit log; the same and more are taken."""
    known = knowing(told(0))
    for spent in (0, 50_000, 50_000, 350_000):
        known.witness(told(spent))

    with pytest.raises(Refused, match="CALLER_BUDGET_UNVERIFIED"):
        known.witness(told(300_000))
    known.witness(told(350_000))


@pytest.mark.req("ATT-2")
def test_a_new_period_starts_anew_and_one_that_is_over_is_no_witness():
    """Time alone renews a budget; a settlement that is told of the period before says nothing of this one."""
    known = knowing(told(900_000, period=7))
    known.witness(told(0, period=8))
    known.witness(told(100_000, period=7))


@pytest.mark.req("ATT-2")
def test_a_spent_budget_stays_spent():
    """What is beyond the cap is told as the cap, and less than that is a store that was set back."""
    known = knowing(told(CAP + 500_000))

    with pytest.raises(Refused, match="CALLER_BUDGET_UNVERIFIED"):
        known.witness(told(CAP - 1))


@pytest.mark.req("ATT-2")
def test_strangers_cannot_make_a_process_remember_without_bound():
    """The caller longest unseen is forgotten; its budget is still in the store and in the audit log."""
    known = knowing(*(told(500_000, caller="crp_sess_" + letter * 32) for letter in "abc"), most=2)
    known.witness(told(500_000, caller="crp_sess_" + "c" * 32))

    for forgotten_or_less in ("a", "c"):
        with pytest.raises(Refused, match="CALLER_BUDGET_UNVERIFIED"):
            known.witness(told(0, caller="crp_sess_" + forgotten_or_less * 32))
    known.witness(None)
