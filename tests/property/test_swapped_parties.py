"""Laws of swapped parties: the names do not matter, the order does not matter, and what is said of the right one is no swap."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.pairings.swapped import swapped
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

NAMES = ("Maria Lindholm", "Peter Vogel", "Rosa Ferrante", "Tomas Hedberg")
DEEDS = (
    ("painted the harbour murals", "the harbour murals are by {}"),
    ("recorded the tower bells", "we owe {} the record of the tower bells"),
    ("restored the brass lanterns", "the brass lanterns look new thanks to {}"),
    ("catalogued the glass slides", "{} made a list of the glass slides"),
)
name, deed, turned = st.sampled_from(NAMES), st.sampled_from(DEEDS), st.booleans()


def swaps(source: str, *sentences: str) -> bool:
    answer = " ".join(f"{each[0].upper()}{each[1:]}." for each in sentences)
    return bool(list(swapped(passages(answer), Evidence(passages(source)))))


@settings(deadline=None, max_examples=25)
@given(name, name, deed, deed, turned)
def test_who_did_which_is_told_by_what_stands_beside_the_names(one, other, first, second, turned):
    """In either order of the sentences, and whoever the two are."""
    assume(one != other and first != second)
    source = f"{one} {first[0]}, and {other} {second[0]}."
    bent = [first[1].format(other), second[1].format(one)]
    faithful = [first[1].format(one), second[1].format(other)]

    assert swaps(source, *(reversed(bent) if turned else bent))
    assert not swaps(source, *(reversed(faithful) if turned else faithful))


@settings(deadline=None, max_examples=25)
@given(name, name, deed, deed)
def test_what_the_sources_also_say_of_the_other_is_no_swap(one, other, first, second):
    """A source that tells both of both is borne out by either."""
    assume(one != other and first != second)
    source = f"{one} {first[0]}, and {other} {second[0]}. {other} {first[0]}, and {one} {second[0]}."

    assert not swaps(source, first[1].format(other), second[1].format(one))


@settings(deadline=None, max_examples=15)
@given(name, name, deed, deed)
def test_a_copy_is_no_swap(one, other, first, second):
    """A source beside itself."""
    assume(one != other and first != second)
    source = f"{one} {first[0]}, and {other} {second[0]}"

    assert not swaps(f"{source}.", source)
