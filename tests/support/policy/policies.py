"""Random safety policies: as values, as texts in every spelling of the grammar, and as texts with damage."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from interlock.domain.policy.directives import Oversight, Policy, Repetition, Source, Strategy, Tier
from interlock.domain.policy.findings import ClaimBasis, Findings
from interlock.domain.risk.risk import RiskLevel

LEVELS = [RiskLevel.MEDIUM, RiskLevel.HIGH, RiskLevel.CRITICAL]
ENDPOINTS = ["https://a.example/r", "http://b.example:8080/r?x=1#f", "https://[2001:db8::1]/", "HTTPS://c.example"]
FLAGS = ["ungrounded", "parametric", "pii", "fabrication", "repetition"]
SCORES = ["grounding", "entailment", "flow", "completeness"]

_hundredths = st.integers(0, 100)


def policies(tiers=Tier, max_size: int = 5) -> st.SearchStrategy[Policy]:
    """Any policy; few values per directive, so that equal and comparable ones are common."""
    absent = st.none()
    return st.builds(
        Policy,
        default_src=absent | st.frozensets(st.sampled_from(Source)),
        halt_on=absent | st.sampled_from(LEVELS),
        warn_on=absent | st.sampled_from(LEVELS),
        **{f"require_{name}": absent | st.sampled_from([0, 50, 75, 100]) | _hundredths for name in SCORES},
        require_quality=absent | st.frozensets(st.sampled_from(tiers), min_size=1, max_size=max_size),
        **{f"block_{name}": st.booleans() for name in FLAGS},
        max_repetition=absent | st.sampled_from([Repetition.NONE, Repetition.MINOR, Repetition.SIGNIFICANT]),
        max_cannot_tell=absent | st.sampled_from([0, 20, 100]) | _hundredths,
        max_spend_usd=absent | st.sampled_from([0, 1, 10_000, 5_000_000, 99_999_999_999_999]),
        max_spend_tokens=absent | st.sampled_from([0, 1000, 999_999_999_999]),
        halt_on_action=st.booleans(),
        upgrade_on_risk=absent | st.sampled_from(Strategy),
        oversight=absent | st.sampled_from(Oversight),
        report_uri=st.frozensets(st.sampled_from(ENDPOINTS), max_size=2),
        report_to=st.frozensets(st.sampled_from(["ops", "a_b-1"]), max_size=2),
    )


def joinable() -> st.SearchStrategy[Policy]:
    """Policies of which any two have a join: all of them accept tier S or do not ask for one."""
    return policies().map(
        lambda p: p if p.require_quality is None else p._replace(require_quality=p.require_quality | {Tier.S})
    )


def findings() -> st.SearchStrategy[Findings]:
    """Any findings, with scores on and around the thresholds of ``policies``."""
    score = st.none() | st.sampled_from([0.0, 0.5, 0.75, 0.7499999, 1.0, float("nan")]) | st.floats(0, 1)
    return st.builds(
        Findings,
        risk=st.sampled_from(RiskLevel),
        attributions=st.none() | st.frozensets(st.sampled_from(ClaimBasis)),
        **dict.fromkeys(SCORES, score),
        undefined=st.frozensets(st.sampled_from(["grounding", "flow"])),
        fabrications=st.none() | st.integers(0, 3),
        repetition=st.none() | st.sampled_from(Repetition),
        pii=st.none() | st.booleans(),
        tier=st.none() | st.sampled_from(Tier),
        prohibited=st.booleans(),
        cannot_tell=st.none() | st.sampled_from([0.0, 0.2, 0.21, 1.0, float("nan")]),
        refused_actions=st.none() | st.integers(0, 2),
    )


def _cased(word: str) -> st.SearchStrategy[str]:
    return st.sampled_from([word, word, word.lower(), word.upper(), word.swapcase(), word.title()])


def _listed(words: list[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words).flatmap(_cased), min_size=1, max_size=4).map(" ".join)


_threshold = st.tuples(st.sampled_from(["0", "1", "00", "01", "2"]), st.sampled_from(["0", "00", "5", "75", "99"])).map(
    ".".join
)
_keyword = {
    "halt-on": ["CRITICAL", "HIGH", "MEDIUM"],
    "warn-on": ["CRITICAL", "HIGH", "MEDIUM"],
    "max-repetition": ["NONE", "MINOR", "SIGNIFICANT"],
    "upgrade-on-risk": ["reflexive", "hierarchical", "batch"],
    "oversight": ["auto", "human-review", "halt", "log-only"],
    "require-oversight": ["auto", "human-review", "halt", "log-only"],
}
_uri_text = st.text(string.ascii_letters + string.digits + "-._~!$&'()*+=:@/?#%[]", max_size=12)
_uri = st.sampled_from(ENDPOINTS) | st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["https://", "http://", "HTTP://", "ftp://", "https:/", ""]),
    st.sampled_from(["h", "a.b-c_d.example", "127.0.0.1", "[::1]", "[::ffff:1.2.3.4]", "[1::2::3]", "u@h", "", "-h"]),
    st.sampled_from(["", "", ":1", ":65535", ":65536", ":0", ":", ":x"]),
    st.sampled_from(["", "/", "/a/b", "/%41", "/%4", "?q", "#f", "#a#b"]) | _uri_text.map("/".__add__),
)


def _directive() -> st.SearchStrategy[str]:
    def named(name: str, value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.builds("{} {}".format, _cased(name), value)

    return st.one_of(
        named("default-src", _listed(["context", "parametric", "ckf", "cross-session"]) | st.just("'none'")),
        named("default-src", _listed(["context", "'none'"])),
        *(named(name, st.sampled_from(words).flatmap(_cased)) for name, words in _keyword.items()),
        *(named(name, _threshold) for name in (*(f"require-{score}" for score in SCORES), "max-cannot-tell")),
        named(
            "max-spend-usd",
            st.sampled_from(["5", "5.00", "0.000001", "007.5", "1.0000000", "100000000", ".5", "5.", "-1"]),
        ),
        named("max-spend-tokens", st.sampled_from(["0", "200000", "007", "1e6", "1234567890123", "1.0"])),
        _cased("halt-on-action"),
        named("require-quality", _listed(list("SABCD"))),
        *(_cased(f"block-{name}") for name in FLAGS),
        named("report-uri", _uri),
        named("report-to", st.text(string.ascii_letters + string.digits + "-_.", max_size=6)),
        st.sampled_from(["medical", "financial", "developer", "public-facing", "other"]).map("profile={}".format),
    )


_gap = st.sampled_from(["; ", ";", ";\t", ";  \t "])
_pieces = st.lists(st.tuples(_gap, _directive()), min_size=1, max_size=5)


def texts() -> st.SearchStrategy[str]:
    """Texts of the grammar and texts just outside it: doubled directives, thresholds above one, unusable URIs."""
    return _pieces.map(lambda found: found[0][1] + "".join(gap + each for gap, each in found[1:]))


_damage = st.sampled_from([
    " ", "  ", "\t", ";", ",", "\n", "\x00", "'", '"', "\u0430", "\u00a0", "\u037e", "\uff1b", "=", "-", "%", "#",
    "", "", *string.ascii_letters, *string.digits, *string.punctuation, "\x7f", "\r", "\x1f",
])  # fmt: skip
_hits = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2), _damage), min_size=1, max_size=3)


def damaged() -> st.SearchStrategy[str]:
    """Texts with one to three characters put in, taken out or exchanged."""
    return st.builds(_hit, texts(), _hits)


def _hit(text: str, hits: list[tuple[float, int, str]]) -> str:
    for where, taken, piece in hits:
        at = round(where * len(text))
        text = text[:at] + piece + text[at + taken :]
    return text
