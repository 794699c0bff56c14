"""Results of sub-agents in the report: the report hash covers every byte of them (SPEC-012 §8.1, PRV-3)."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from interlock.domain.chain.chain import content_hash
from interlock.domain.errors import Refused
from interlock.dpe.intake import LINKED_FORMS, Bounds
from interlock.dpe.request import LinkedResult, Request
from tests.support.texts.reports import as_sealed, sample

BOUNDS = Bounds(text_bytes=1000, facts=2, claims=2, choices=1, prior_bytes=1000, prior_windows=3)
LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
IDS = st.text(LETTERS, min_size=16, max_size=32)
HASHES = st.text("0123456789abcdef", min_size=64, max_size=64).map("sha256:{}".format)
RESULTS = st.builds(
    LinkedResult,
    session_id=IDS.map("crp_sess_{}".format),
    window_id=IDS.map("crp_win_{}".format),
    hmac=HASHES,
    chain_tip=HASHES,
    agent_type=st.text(LETTERS + "._-", max_size=64),
)
FIELDS = st.sampled_from(sorted(LINKED_FORMS))


def hashed(*linked: LinkedResult) -> str:
    """Return the hash that the window's HMAC is over, as the audit service makes it."""
    return content_hash(as_sealed(sample(*linked)).encode())


def changed(one: LinkedResult, field: str, at: int, flip: int) -> LinkedResult:
    """Return the result with one byte of a field changed."""
    value = getattr(one, field)
    place = at % len(value)
    other = chr(ord(value[place]) ^ flip)
    return replace(one, **{field: value[:place] + other + value[place + 1 :]})


def accepted(*linked: LinkedResult) -> bool:
    """Whether the engine takes the results."""
    try:
        BOUNDS.check(Request(outputs=(), linked=linked))
    except Refused as refused:
        assert (refused.reason, refused.kind.name) in {
            ("LINKED_RESULT_INVALID", "INVALID"),
            ("LINKED_LIMIT_EXCEEDED", "EXHAUSTED"),
        }
        return False
    return True


@pytest.mark.req("PRV-3", "DPE-20")
@given(RESULTS, FIELDS, st.integers(0, 200), st.integers(1, 127))
@settings(max_examples=150, deadline=None)
def test_a_changed_byte_changes_the_report_hash(one, field, at, flip):
    """Of any field, at any place, to anything."""
    assume(getattr(one, field))

    assert hashed(one) != hashed(changed(one, field, at, flip))


@pytest.mark.req("PRV-3")
@given(st.lists(RESULTS, min_size=2, max_size=2, unique_by=lambda one: one.window_id))
@settings(max_examples=30, deadline=None)
def test_which_results_and_in_what_order_changes_the_report_hash(results):
    """None, one, the other, both, and both the other way round are five reports."""
    a, b = results

    assert len({hashed(), hashed(a), hashed(b), hashed(a, b), hashed(b, a)}) == 5


@pytest.mark.req("PRV-3")
@given(RESULTS)
@settings(max_examples=30, deadline=None)
def test_the_report_states_a_result_as_it_came(one):
    """All five fields."""
    assert [asdict(one)] == [
        {name: getattr(linked, name) for name in asdict(one)} for linked in sample(one).linked_results
    ]


@pytest.mark.req("AGT-4")
@given(RESULTS, FIELDS, st.sampled_from([" ", "\n", "\x00", "é", "/", "\u200b"]), st.integers(0, 200))
@settings(max_examples=100, deadline=None)
def test_only_ids_and_hashes_of_their_form_are_linked(one, field, foreign, at):
    """A character that does not belong is refused wherever it stands, an empty id too."""
    value = getattr(one, field)
    place = at % (len(value) + 1)

    assert accepted(one)
    assert not accepted(replace(one, **{field: value[:place] + foreign + value[place:]}))
    assert field == "agent_type" or not accepted(replace(one, **{field: ""}))


@pytest.mark.req("AGT-4")
@given(RESULTS, HASHES)
@settings(max_examples=30, deadline=None)
def test_a_window_is_linked_once_and_not_too_many(one, other):
    """Two results of one window, whatever their hashes, and more results than the bound."""
    many = [replace(one, window_id=f"crp_win_{n:016d}") for n in range(4)]

    assert not accepted(one, replace(one, hmac=other))
    assert accepted(*many[:3])
    assert not accepted(*many)
