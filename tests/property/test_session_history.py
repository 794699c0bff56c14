"""What is cut out of the stored text of a session is the history that the rule gives, however long the session is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.dag.lineage import LINEAGE_KEPT, TIERS_KEPT, trace_history
from interlock.session.store import dag_text, records
from interlock.session.terms import terms_to_json
from tests.support.session.sessions import new_state, settle

TERMS = terms_to_json(new_state(1).terms).encode()


def stored(entries: list[tuple[str, str]]) -> bytes:
    """The ``dag`` of windows with these tiers and parents, as the script writes it."""
    return "".join(f"{at:032x} {tier}CL{parents};" for at, (tier, parents) in enumerate(entries)).encode()


@st.composite
def sessions(draw):
    """Windows that continue the one before, now and then an older one or two of them."""
    length = draw(st.integers(1, 330))
    turns = draw(
        st.dictionaries(st.integers(1, length), st.lists(st.integers(0, 400), min_size=1, max_size=2), max_size=4)
    )
    entries = []
    for at in range(length):
        parents = sorted({pick % at for pick in turns.get(at, ())}) if at else []
        text = ".".join(str(place + 1) for place in parents)
        entries.append((draw(st.sampled_from("SABCD")), "" if text == str(at) else text))
    return entries, draw(st.integers(0, length - 1))


@pytest.mark.req("ATT-4", "DAG-5")
@settings(max_examples=60)
@given(sessions())
def test_the_history_cut_from_the_text_is_the_one_of_the_rule(drawn):
    """Lines, branches and merges: the latest windows, all that is told of the tiers, and the degradation."""
    entries, place = drawn
    dag = stored(entries)
    outcome = f"{place + 1} 1000000 1000000 1 1 0 sha256:00 - {place + 1} -".encode()
    history = records.committed_from([0, TERMS, b"sha256:00", outcome, dag, [], 1_000_000, []], settle(1)).history

    assert history == trace_history(dag_text.steps_from(dag, place + 1), [place])
    assert len(history.lineage) <= LINEAGE_KEPT
    assert len(history.tiers) <= TIERS_KEPT
