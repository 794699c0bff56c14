"""Strict parser of policy texts (SPEC-006 §2.1). A refusal names the position and the cause.

Like every ABNF string, names and keywords match in any case (RFC 5234 §2.3); the canonical text has one case.
White space follows the grammar: one space inside a directive, any run of spaces and tabs after ``;``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import or_
from typing import Any

from interlock.domain.errors import Refused, invalid
from interlock.domain.policy.directives import MAX_BYTES, Policy
from interlock.domain.policy.policy_order import merge
from interlock.domain.policy.policy_values import READERS, Flaw, bad_value, near_miss, shown

PROFILES: Mapping[str, str] = {
    "medical": "default-src context; halt-on HIGH; require-grounding 0.90; require-entailment 0.85; block-ungrounded; "
    "block-pii; block-fabrication; oversight human-review; require-flow 0.70; require-completeness 0.90; "
    "report-uri https://comply.crprotocol.io/reports",
    "financial": "default-src context parametric; halt-on CRITICAL; warn-on HIGH; require-grounding 0.80; "
    "block-fabrication; upgrade-on-risk reflexive; require-completeness 0.80",
    "developer": "default-src context parametric; warn-on CRITICAL; require-quality S A B; oversight auto",
    "public-facing": "default-src context parametric; halt-on CRITICAL; warn-on HIGH; block-pii; require-flow 0.60; "
    "max-repetition MINOR; require-completeness 0.70",
}
"""The profiles of SPEC-006 §6.1, as written there."""

_PROFILE = "profile="
_SHORT = 64
_WORDS = re.compile(r"[!-~]++(?: [!-~]++)*+")
_FLAW = re.compile(r"[^ -~]|(?:^|(?<= )) | $")
_ALIASES = {"require-oversight": "oversight"}
_ENDPOINTS = {"report-uri": "report_uri", "report-to": "report_to"}
_BOTH: dict[str, Callable[[Any, Any], Any]] = {"oversight": max, "report_uri": or_, "report_to": or_}


def parse(text: str) -> Policy:
    """Return the policy in *text*, with its profile expanded and joined with the other directives.

    Refused with POLICY_EMPTY, POLICY_TOO_LONG, POLICY_NOT_ASCII, POLICY_BAD_SYNTAX, POLICY_UNKNOWN_DIRECTIVE,
    POLICY_DUPLICATE_DIRECTIVE, POLICY_BAD_VALUE, POLICY_BAD_URI or POLICY_UNSATISFIABLE. Metadata names the position
    (characters from the start, from 0), expected, got and, for a near miss, did_you_mean.
    """
    _check_whole(text)
    fields: dict[str, Any] = {}
    seen: set[str] = set()
    pieces = text.split(";")
    for number, piece in enumerate(pieces):
        directive = piece.lstrip(" \t") if number else piece
        try:
            key, field, value = _read_short(directive) if len(directive) <= _SHORT else _read_long(directive)
            if key in seen:
                raise _duplicate(key)
        except Flaw as flaw:
            raise _refused(flaw, _start(pieces, number) + len(piece) - len(directive)) from None
        seen.add(key)
        # Two keys share a field where both count: oversight and its alias (the tighter counts), and endpoints (all count).
        fields[field] = _BOTH[field](fields[field], value) if field in fields else value
    profile = fields.pop(_PROFILE, None)
    policy = Policy(**fields)
    return policy if profile is None else _extended(profile, policy, pieces)


def _start(pieces: list[str], number: int) -> int:
    return sum(len(piece) + 1 for piece in pieces[:number])


def _check_whole(text: str) -> None:
    if not text or text.isspace():
        raise invalid("POLICY_EMPTY", "the policy is empty", position="0", expected="a directive", got="")
    if len(text) > MAX_BYTES:
        found = f"{len(text)} characters"
        raise invalid(
            "POLICY_TOO_LONG", f"a policy has at most {MAX_BYTES} bytes, this one has {found}",
            position=str(MAX_BYTES), expected=f"at most {MAX_BYTES} bytes", got=found,
        )  # fmt: skip
    if not text.isascii():
        at = next(i for i, character in enumerate(text) if not character.isascii())
        raise invalid(
            "POLICY_NOT_ASCII", f"a policy is ASCII only; character {at} is not",
            position=str(at), expected="ASCII", got=f"U+{ord(text[at]):04X}",
        )  # fmt: skip


def _duplicate(key: str) -> Flaw:
    name = key.partition(" ")[0].removesuffix("=")
    return Flaw(
        "POLICY_DUPLICATE_DIRECTIVE", f"duplicate directive {name}", expected="each directive once", got=shown(key)
    )


def _extended(profile: str, policy: Policy, pieces: list[str]) -> Policy:
    """Join a profile with the other directives, which can only tighten it (reliability.md §7, row 18).

    An explicit endpoint replaces the profile's: its user did not ask for reports to other places.
    """
    preset = _preset(profile)
    if policy.report_uri:
        preset = preset._replace(report_uri=frozenset())
    try:
        return merge(preset, policy)
    except Refused as refused:
        at = next(i for i, piece in enumerate(pieces) if piece.lstrip(" \t").lower().startswith("require-quality"))
        refused.metadata["position"] = str(_start(pieces, at) + len(pieces[at]) - len(pieces[at].lstrip(" \t")))
        raise


@lru_cache(maxsize=len(PROFILES))
def _preset(profile: str) -> Policy:
    return parse(PROFILES[profile])


def _refused(flaw: Flaw, at: int) -> Refused:
    details = {"position": str(at + flaw.offset), "expected": "", "got": "", **flaw.details}
    return invalid(flaw.reason, f"{flaw.message} at character {at + flaw.offset}", **details)


def _read(directive: str) -> tuple[str, str, Any]:
    """Return the key, field and value of a directive. No two directives of one text may have the same key.

    The key is the name, so that a text has each directive once (reliability.md §7, row 18). Different endpoints do not
    contradict one another, and a merged policy may have several, so their keys include the value.
    """
    if not _WORDS.fullmatch(directive):
        raise _misspaced(directive)
    name, space, rest = directive.partition(" ")
    lowered = name.lower()
    if lowered.startswith(_PROFILE):
        return _PROFILE, _PROFILE, _profile(directive)
    reader = READERS.get(lowered)
    if reader is None:
        raise _unknown(name)
    try:
        value = reader(rest)
    except Flaw as flaw:
        flaw.offset += len(name) + len(space)
        flaw.message = f"{lowered}: {flaw.message}"
        raise
    if lowered in _ENDPOINTS:
        return f"{lowered} {rest}", _ENDPOINTS[lowered], value
    return lowered, _ALIASES.get(lowered, lowered).replace("-", "_"), value


# Directives repeat across policies. Long ones are lists or endpoints: few are kept, so that the cache stays small.
_read_short = lru_cache(maxsize=4096)(_read)
_read_long = lru_cache(maxsize=256)(_read)


def _misspaced(directive: str) -> Flaw:
    if not directive:
        return Flaw("POLICY_BAD_SYNTAX", "empty directive", expected="a directive")
    found = _FLAW.search(directive)
    at = found.start() if found else 0
    return Flaw(
        "POLICY_BAD_SYNTAX", "misplaced white space or control character", at,
        expected="one space between words, none before ';' or at the end", got=shown(directive[at : at + 1]),
    )  # fmt: skip


def _unknown(name: str) -> Flaw:
    near = near_miss(name, [*READERS, *(_PROFILE + profile for profile in PROFILES)])
    message = f"unknown directive {shown(name)!r}"
    return Flaw("POLICY_UNKNOWN_DIRECTIVE", message, 0, expected="a directive of SPEC-006", got=shown(name), **near)


def _profile(directive: str) -> str:
    name = directive[len(_PROFILE) :].lower()
    if name not in PROFILES:
        raise bad_value(directive[len(_PROFILE) :], list(PROFILES), len(_PROFILE))
    return name
