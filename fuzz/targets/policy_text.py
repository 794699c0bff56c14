"""Policy texts: the product's reader against the ABNF given to lark, and laws of what was read (A-12, A-13)."""

from __future__ import annotations

from fuzz.reading import text_of, told
from interlock.domain.policy.directives import canonical, policy_hash
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import PROFILES, parse
from tests.support.policy import policy_grammar

WORDS = (
    b"default-src ", b"context", b"parametric", b"ckf", b"cross-session", b"'none'", b"halt-on ", b"warn-on ", b"CRITICAL",
    b"HIGH", b"MEDIUM", b"require-grounding ", b"require-entailment ", b"require-quality ", b"require-flow ",
    b"require-completeness ", b"block-ungrounded", b"block-parametric", b"block-pii", b"block-fabrication",
    b"block-repetition", b"max-repetition ", b"max-cannot-tell ", b"max-spend-usd ", b"max-spend-tokens ", b"halt-on-action", b"NONE", b"MINOR", b"SIGNIFICANT", b"upgrade-on-risk ", b"reflexive",
    b"hierarchical", b"batch", b"oversight ", b"require-oversight ", b"human-review", b"log-only", b"auto", b"halt",
    b"report-uri https://", b"report-to ", b"profile=", b"medical", b"financial", b"developer", b"public-facing", b"; ",
    b"%2C", b"[::1]", b":65535", b"0.85", b"\xc2\xa0",
)  # fmt: skip
_PARSER_LIMIT = 2048
"""Longer texts are read by the product alone: the oracle takes a second for a page."""


def TestOneInput(data: bytes) -> None:
    """What the grammar accepts the product accepts, and the reverse; what was read is written and read again."""
    text = text_of(data)
    policy = told(lambda: parse(text))
    if len(text) <= _PARSER_LIMIT and "profile=" not in text.lower():
        expected = policy_grammar.read(text)
        assert (policy is None) == (expected is None), (text, policy, expected)
    if policy is None:
        return
    written = canonical(policy)
    assert parse(written) == policy
    assert canonical(parse(written)) == written
    assert policy_hash(written).startswith("sha256:")
    assert merge(policy, policy) == policy
    assert relaxations(policy, policy) == []
    assert written.isascii()


def seeds() -> dict[str, bytes]:
    """Every profile of SPEC-006, and one text for each kind of directive."""
    texts = {
        **PROFILES,
        "profile": "profile=medical; halt-on MEDIUM",
        "sources": "default-src context parametric ckf cross-session; block-parametric",
        "none": "default-src 'none';\t halt-on critical",
        "uri": "report-uri https://a.example:443/x%2Cy?z=1#f; report-uri http://[2001:db8::1]/; report-to group-1",
        "tiers": "require-quality S A B; require-flow 1.00; oversight halt; require-oversight auto",
        "repeated": "warn-on HIGH; warn-on HIGH",
        "spaced": "halt-on  HIGH ;warn-on\tHIGH",
        "unknown": "halt-0n HIGH",
    }
    return {name: text.encode() for name, text in texts.items()}
