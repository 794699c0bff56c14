"""Two policies: their join is a join, whatever they are (SPEC-012 §4.2; I7)."""

from __future__ import annotations

from fuzz.reading import split_off, text_of, told
from fuzz.targets import policy_text
from interlock.domain.policy.policy_order import merge, relaxations
from interlock.domain.policy.policy_text import parse

WORDS = (*policy_text.WORDS, b"\x00")


def TestOneInput(data: bytes) -> None:
    """The join is commutative, relaxes neither side in what that side says, and joining again changes nothing."""
    first, second = split_off(data, 2)
    one, other = told(lambda: parse(text_of(first))), told(lambda: parse(text_of(second)))
    if one is None or other is None:
        return
    merged = told(lambda: merge(one, other))
    assert merged == told(lambda: merge(other, one))
    if merged is None:
        return
    assert merge(merged, one) == merged
    assert merge(other, merged) == merged
    assert relaxations(one, merged) == []
    assert relaxations(other, merged) == []
    if relaxations(one, other) == [] and other._replace(**_inherited(one, other)) == other:
        assert merged == other


def _inherited(one: object, other: object) -> dict[str, object]:
    """Return what *other* would have of the directives that a child inherits."""
    names = ("report_uri", "report_to")
    found: dict[str, object] = {name: getattr(one, name) | getattr(other, name) for name in names}
    upgrades = [each for policy in (one, other) if (each := policy.upgrade_on_risk) is not None]
    return {**found, "upgrade_on_risk": max(upgrades, default=None)}


def seeds() -> dict[str, bytes]:
    """Pairs that are tighter, looser, apart and without anything in common."""
    pairs = {
        "tighter": ("halt-on CRITICAL", "halt-on HIGH; block-pii"),
        "looser": ("profile=medical", "profile=developer"),
        "apart": ("default-src context ckf; require-flow 0.50", "default-src parametric; require-flow 0.6"),
        "nothing_in_common": ("require-quality S A", "require-quality D"),
        "endpoints": ("report-uri https://a.example/", "report-to b; oversight log-only"),
    }
    return {name: f"{one}\x00{other}".encode() for name, (one, other) in pairs.items()}
