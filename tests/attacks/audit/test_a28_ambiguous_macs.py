"""A-28: no two records have one MAC input: fields cannot run into one another, and no kind of text passes for another."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fuzz.targets import delegation_grant, session_token
from interlock.domain import approval
from interlock.domain.chain.chain import EventRecord, event_hmac, unchained_window_hmac, window_hmac
from interlock.domain.errors import Refused
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import leaf_hash, merkle_root, node_hash
from interlock.domain.session import grant, token

KEY = b"k" * 32
NAMES = ("session_id", "timestamp", "response_hash", "report_hash")
# Few letters, and what could part fields: collisions of a sloppy encoding are then common.
PIECE = st.text("ab|:.\u241f\x1f\x00,1", max_size=4)


def windowed(fields, number: int, parents) -> str | None:
    """The HMAC of a window; ``None`` where it is refused as ambiguous."""
    try:
        return window_hmac(KEY, **dict(zip(NAMES, fields, strict=True)), window_number=number, parent_hmacs=parents)
    except Refused as refused:
        assert refused.reason == "AMBIGUOUS_FIELD"
        return None


@pytest.mark.req("PRV-1")
@given(st.text("ab|1\u241f", max_size=12), st.lists(st.integers(0, 12), min_size=8, max_size=8))
def test_a28_one_text_cut_in_two_ways_has_two_macs(text, cuts):
    """The same characters spread over the fields in another way are another record, or are refused."""
    one, other = sorted(cuts[:4]), sorted(cuts[4:])
    cut = [[text[a:b] for a, b in itertools.pairwise([0, *places[:3], len(text)])] for places in (one, other)]
    assume(cut[0] != cut[1])
    first, second = (windowed(fields, 1, []) for fields in cut)

    assert first is None or first != second


@pytest.mark.req("PRV-1")
@given(st.lists(PIECE, min_size=4, max_size=4), st.lists(PIECE, max_size=3), st.lists(PIECE, max_size=3))
def test_a28_parents_run_into_nothing(fields, parents, others):
    """Other parents are another MAC; the order in which they are named is not."""
    first, second = windowed(fields, 1, parents), windowed(fields, 1, others)

    assert windowed(fields, 1, parents[::-1]) == first
    if sorted(parents) != sorted(others):
        assert first is None or first != second
    assert first is None or "\u241f" not in "".join([*fields, *parents])


@pytest.mark.req("PRV-1")
@given(st.lists(PIECE, min_size=4, max_size=4), st.integers(0, 9))
def test_a28_a_window_with_and_without_its_chain_are_two_macs(fields, number):
    """CRP-Provenance-HMAC and CRP-Provenance-Window-HMAC never stand for one another."""
    first = windowed(fields, number, [])
    if first is not None:
        assert first != unchained_window_hmac(KEY, **dict(zip(NAMES, fields, strict=True)), window_number=number)


EVENTS = st.builds(
    EventRecord, PIECE, st.integers(0, 99), PIECE, PIECE, st.integers(0, 9), PIECE, PIECE, st.just(1), st.just("")
)


def chained(event: EventRecord, previous: str) -> str | None:
    try:
        return event_hmac(KEY, event, previous)
    except Refused:
        return None


@pytest.mark.req("PRV-1", "AUD-6")
@given(EVENTS, EVENTS, PIECE, PIECE)
def test_a28_two_events_have_two_macs_and_two_leaves(one, other, before, after):
    """Whatever their fields hold; and a line of the log is of one event alone."""
    first, second = chained(one, before), chained(other, after)
    if (one, before) != (other, after):
        assert first is None or first != second
    if one != other:
        assert encode_entry(one) != encode_entry(other)


@pytest.mark.req("AUD-6")
@given(st.lists(st.binary(min_size=32, max_size=32), min_size=2, max_size=5))
def test_a28_a_leaf_is_no_node(leaves):
    """An entry that spells two hashes is not the node above them, and a tree is not the tree of its nodes."""
    pair = leaves[0] + leaves[1]

    assert leaf_hash(pair) != node_hash(*leaves[:2])
    assert leaf_hash(b"\x01" + pair) != node_hash(*leaves[:2]) != hashlib.sha256(pair).digest()
    if len(leaves) >= 4:
        nodes = [node_hash(*leaves[:2]), node_hash(*leaves[2:4])]
        assert merkle_root(leaves[:4]) == merkle_root(nodes)  # by RFC 9162; the size in a checkpoint tells them apart


@pytest.mark.req("TOK-1", "OVR-3")
def test_a28_no_signed_text_passes_for_another_kind():
    """Token, grant and approval under one and the same key: each is refused where another is wanted."""
    a_token = token.mint(session_token.sample(), KEY)
    a_grant = grant.mint(delegation_grant.sample(), KEY)
    payload = approval.canonical_payload(
        approval.Approval("crp_appr_" + "0d" * 16, "a", approval.DELEGATE, {"session": "s", "agent": "a"}, 1, 2)
    )
    now_us = session_token.NOW_US
    with pytest.raises(Refused):
        token.verify(a_grant, lambda *_: KEY, now_us=now_us, scope=None)
    with pytest.raises(Refused):
        grant.verify(a_token, lambda *_: KEY, now_us=now_us, agent_type="helper")
    for text in (a_token, a_grant, approval.PREFIX + a_token):
        with pytest.raises(Refused):
            approval.read(text)
    assert approval.signed_bytes(payload) != payload
