"""Whatever is done to a spool of recorded emergency actions is noticed, and nothing that was not signed is believed (T8)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.emergency_spools import entry, read, with_entries

pytestmark = pytest.mark.req("KRN-2")

GENUINE = {number: entry(number, ("team", "other")[number % 2]) for number in range(1, 7)}


@given(count=st.integers(1, 6), at=st.integers(0, 10_000), what=st.sampled_from('abf0{}" \n'))
def test_one_character_that_is_changed_is_noticed(count, at, what):
    """Anywhere in the file: what is believed then was signed here."""
    text, head = with_entries(count)
    at %= len(text)
    assume(text[at] != what)
    found = read(text[:at] + what + text[at + 1 :], head)
    assert found.faults
    assert all(one == GENUINE[number] for number, one in found.open.items())


@given(count=st.integers(1, 6), at=st.integers(0, 10_000))
def test_an_end_that_is_cut_off_is_noticed(count, at):
    """At any byte."""
    text, head = with_entries(count)
    found = read(text[: at % len(text)], head)
    assert found.faults
    assert all(one == GENUINE[number] for number, one in found.open.items())


@given(order=st.permutations(range(6)), kept=st.integers(1, 6))
def test_lines_that_are_left_out_or_put_elsewhere_are_noticed(order, kept):
    """No entry that was signed is lost by it, but those whose line is gone."""
    text, head = with_entries(4)
    lines = text.splitlines(keepends=True)
    chosen = [lines[at] for at in order[:kept] if at < len(lines)]
    assume(chosen != lines)
    found = read("".join(chosen), head)
    assert found.faults
    assert found.open.keys() <= GENUINE.keys()


@given(count=st.integers(1, 6), other=st.integers(1, 6))
def test_the_file_of_another_time_is_noticed(count, other):
    """Beside the head of now."""
    assume(count != other)
    assert read(with_entries(other)[0], with_entries(count)[1]).faults
