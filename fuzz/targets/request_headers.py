"""Request headers: read by allow-list or refused by name (A-15, HDR-5, HDR-6)."""

from __future__ import annotations

from fuzz.reading import lines_of, told
from interlock.domain.budget import FULL
from interlock.domain.headers import headers
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX

WORDS = (
    *(f"\n{name}: ".encode() for name in sorted(headers._ACTIVE | headers.PREFERENCES)),
    b"\ncrp_safety_policy: ", b"\nCRP-Safety-Hallucination-Risk: LOW", b"base64:", b"crp_sess_", b"crp_cont_", b"no-store",
    b"0.999999", b"1.000", b"fan-out", b"fan-in", b"reflexive", b"approved:sha256:", b"EU", b"\r", b"\x00", b"\x0b", b"\xa0",
)  # fmt: skip
_ALPHABET = frozenset(map(chr, range(32, 127)))


def TestOneInput(data: bytes) -> None:
    """Whatever is accepted is printable, within its bounds, and of names that a request may have."""
    lines = lines_of(data)
    for delegating in (False, True):
        asked = told(lambda: headers.read(lines, delegating=delegating))  # noqa: B023 - called at once
        if asked is None:
            continue
        ours = [(name.lower(), value) for name, value in lines if headers.is_ours(name)]
        assert all(name not in headers.RESPONSE_ONLY and "_" not in name for name, _ in ours)
        assert all(set(value) <= _ALPHABET for _, value in ours)
        assert all(len(value) <= headers._LIMITS.get(name, headers.VALUE_LIMIT) for name, value in ours)
        assert asked.ceiling is None or 0 <= asked.ceiling <= FULL
        assert len(asked.policies) == sum(name == "crp-safety-policy" for name, _ in ours)
        assert asked.oversight_token is None or delegating
        assert asked.seed is None or 0 <= asked.seed < 10**18
        # Case and order of unlike names change nothing.
        assert headers.read([(name.upper(), value) for name, value in lines], delegating=delegating) == asked
    admitted = headers.admissible({name: value for name, value in _named(lines).items() if name in RESPONSE_SYNTAX})
    assert all(set(value) <= _ALPHABET for value in admitted.values())


def _named(lines: list[tuple[str, str]]) -> dict[str, str]:
    """Return the lines by the names that responses write."""
    spelled = {name.lower(): name for name in RESPONSE_SYNTAX}
    return {spelled.get(name.lower(), name): value for name, value in lines}


def seeds() -> dict[str, bytes]:
    """One good set of every kind of header, and the tricks that are known."""
    return {
        "policies": b"CRP-Safety-Policy: halt-on HIGH\nCRP-Safety-Policy: block-pii\nCRP-Safety-Mode: strict",
        "continued": b"CRP-Session-Token: abc.def\nCRP-Context-Continuation-Id: crp_cont_" + b"0a" * 16,
        "fan_in": b"CRP-Context-Strategy: fan-in\nCRP-Context-Continuation-Id: crp_cont_"
        + b"0a" * 16
        + b", crp_cont_"
        + b"0b" * 16
        + b"\nCRP-Agent-Fan-In-Policy: partial",
        "child": b"CRP-Agent-Session-Parent: crp_sess_" + b"0a" * 16 + b"\nCRP-Agent-Loop-Depth: 2\n"
        b"CRP-Agent-Safety-Budget: 0.850000001\nCRP-Agent-Delegation-Grant: a.b",
        "wishes": b"CRP-Accept-Risk: high\nCRP-Accept-Quality: s, a\nCRP-Accept-Strategy: push, reflexive\n"
        b"CRP-Context-Cache: no-store, max-age=1\nCRP-LLM-Reproducibility-Seed: 42\nCRP-LLM-Grounding-Mode: open",
        "approval": b"CRP-Oversight-Token: approved:sha256:abc.def",
        "underscore": b"crp_safety_mode: strict",
        "response_only": b"CRP-Safety-Hallucination-Risk: LOW",
        "duplicate": b"CRP-Safety-Mode: strict\ncrp-safety-mode: warn",
        "control": b"CRP-Safety-Policy: halt-on\x0bHIGH",
        "responses": b"CRP-Quality-Completeness: PARTIAL; sub-queries=1/2; uncovered=price\nCRP-Agent-Safety-Budget: 0.95",
    }
