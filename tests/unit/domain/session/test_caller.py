"""The budget of a caller, by itself."""

from __future__ import annotations

import pytest

from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.session import token as tokens
from interlock.domain.session.caller import CallerAsk, Period, caller_id_of, enter, look, merge, rebuild, spend
from interlock.session.store.cluster import SLOTS, beside, slot_of
from tests.support.session.sessions import session_id

CALLER = caller_id_of("key_0123")


@pytest.mark.req("ATT-2")
def test_a_caller_that_is_not_there_is_never_given_a_full_budget():
    """Only a rebuild from the audit log brings it back."""
    with pytest.raises(Refused, match="CALLER_BUDGET_UNVERIFIED"):
        enter(None, CallerAsk(CALLER, 5, Micros(1_000_000)))
    with pytest.raises(Refused, match="CALLER_BUDGET_UNVERIFIED"):
        look(rebuild(5, Micros(1_000_000), []), CALLER, 6)


@pytest.mark.req("ATT-2")
def test_the_record_of_a_later_period_wins_over_the_clock():
    """A clock that was set back over the end of a period, and a store that was lost: what was spent stays spent."""
    state = rebuild(3, Micros(1_000_000), [(7, session_id(1), Micros(350_000))])
    assert state.now == Period(7, Micros(1_000_000), {session_id(1): Micros(350_000)})
    assert enter(state, CallerAsk(CALLER, 3, Micros(1_000_000)))[1].left == 650_000


@pytest.mark.req("ATT-2")
def test_merging_takes_the_lower_cap_and_the_higher_charge():
    """In any order, and as often as one likes."""
    one = rebuild(5, Micros(2_000_000), [(5, session_id(1), Micros(100_000)), (4, session_id(2), Micros(50_000))])
    two = rebuild(5, Micros(1_000_000), [(5, session_id(1), Micros(50_000)), (5, session_id(3), Micros(350_000))])
    assert merge(one, two) == merge(two, one) == merge(merge(one, two), two)
    assert merge(one, two).now.left == 1_000_000 - 450_000
    assert merge(None, one) == one


@pytest.mark.req("ATT-2")
def test_a_session_keeps_what_it_spent_in_two_periods():
    """A window counts for the period in which it was opened, also after the next one has begun."""
    spent = spend(spend(spend((), 4, Micros(1)), 5, Micros(2)), 4, Micros(3))
    assert spent == ((4, 4), (5, 2))
    assert spend(spent, 6, Micros(5)) == ((5, 2), (6, 5))


@pytest.mark.req("ATT-2")
def test_a_nonce_names_the_root_and_the_caller():
    """Signed with the token: the holder of a token cannot choose another caller."""
    for root in (session_id(1), session_id(2)):
        for caller in ("", CALLER):
            nonce = tokens.nonce_of(b"x" * 16, session_id(1), root, caller)
            token = tokens.Token(
                session_id(1), 0, (), Micros(1), "", None, "LINEAR", "push", "", "", "s", 0, 1, nonce, 1
            )  # fmt: skip
            assert tokens.root_of(token) == root
            assert tokens.caller_of(token) == (caller or None)


@pytest.mark.req("ATT-2")
def test_every_slot_of_a_cluster_is_reached():
    """A session lies beside its caller's budget, whatever the slot."""
    tails = {slot_of(f"{n:05x}") for n in range(0x100000)}
    assert len(tails) == SLOTS
    for n in range(50):
        tag = beside(session_id(n * 7919), caller_id_of(str(n)))
        assert slot_of(tag) == slot_of(caller_id_of(str(n)))
        assert tag[:-5] == session_id(n * 7919)[:-5]
