"""The policy language on random texts: printed and read again, and read beside a second parser (A-12, A-13)."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from interlock.domain.errors import Kind, Refused
from interlock.domain.policy.directives import NOTHING, Policy, canonical, directives, policy_hash
from interlock.domain.policy.policy_text import parse
from tests.support.policy import policy_grammar
from tests.support.policy.policies import damaged, policies, texts

pytestmark = pytest.mark.req("POL-1")

REASONS = {
    "POLICY_EMPTY", "POLICY_TOO_LONG", "POLICY_NOT_ASCII", "POLICY_BAD_SYNTAX", "POLICY_UNKNOWN_DIRECTIVE",
    "POLICY_DUPLICATE_DIRECTIVE", "POLICY_BAD_VALUE", "POLICY_BAD_URI", "POLICY_UNSATISFIABLE",
}  # fmt: skip


def meaning(policy: Policy) -> policy_grammar.Meaning:
    """The policy in the words of the oracle."""
    found: policy_grammar.Meaning = {}
    for name, values in directives(policy):
        if name in {"report-uri", "report-to"}:
            found[name] = found.get(name, frozenset()) | {values[0]}
        elif name == "default-src":
            found[name] = frozenset() if values == ("'none'",) else frozenset(values)
        elif name == "require-quality":
            found[name] = frozenset(values)
        elif name.startswith("require-") or name in {"max-cannot-tell", "max-spend-usd", "max-spend-tokens"}:
            found[name] = Decimal(values[0])
        else:
            found[name] = values[0] if values else True
    return found


def agrees(text: str) -> None:
    """Assert that both parsers accept or refuse *text*, and that they read the same in it."""
    expected = policy_grammar.read(text)
    try:
        policy = parse(text)
    except Refused as refused:
        event(refused.reason)
        assert expected is None or refused.reason == "POLICY_UNSATISFIABLE", (text, refused)
        return
    event("accepted")
    assert expected is not None, text
    if "profile=" not in expected:
        assert meaning(policy) == expected, text


@given(policies())
@settings(max_examples=300)
def test_printed_and_read_again_is_the_same_policy(policy):
    """The canonical text of a policy reads as that policy, and prints as itself."""
    assume(policy != NOTHING)
    text = canonical(policy)

    assert parse(text) == policy
    assert canonical(parse(text)) == text


@given(policies(), policies())
def test_equal_texts_are_equal_policies(one, two):
    """Two policies have one canonical text, and one hash, exactly when they are the same."""
    texts_equal = canonical(one) == canonical(two)

    assert texts_equal == (one == two)
    assert texts_equal == (policy_hash(canonical(one)) == policy_hash(canonical(two)))


@given(texts())
@settings(max_examples=800)
def test_reads_what_the_grammar_reads(text):
    """On texts in and around the grammar, the parser and lark over the ABNF agree."""
    agrees(text)


@given(damaged())
@settings(max_examples=1500)
def test_refuses_what_the_grammar_refuses(text):
    """On texts with damage, the parser and lark over the ABNF agree."""
    agrees(text)


@given(st.text(max_size=60) | damaged())
@settings(max_examples=500)
def test_a_refusal_has_a_constant_reason_and_a_place_inside_the_text(text):
    """Whatever the text, it is read or refused as INVALID with a position in it and what was expected."""
    try:
        parse(text)
    except Refused as refused:
        assert (refused.kind, refused.reason in REASONS) == (Kind.INVALID, True)
        assert 0 <= int(refused.metadata["position"]) <= len(text)
        assert refused.metadata.get("expected") or refused.reason == "POLICY_UNSATISFIABLE"
        assert refused.message.isprintable()


@given(texts())
def test_reading_does_not_depend_on_what_was_read_before(text):
    """A text is read or refused alike the second time, when its directives are cached."""
    first, second = _result(text), _result(text)

    assert first == second


def _result(text: str) -> object:
    try:
        return parse(text)
    except Refused as refused:
        return refused.reason, refused.message, refused.metadata
