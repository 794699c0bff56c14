"""Exceptions: what a sentence says of all but one, and what that says of the one (SPEC-005 §5.3).

*All parts except the battery are covered* says that the battery is not. A claim that says so denies nothing of its source, and one
that says of the battery what holds of the others bends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from interlock.dpe.comparison.denials import excludes, has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import lex
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import stem

EXCEPTION = "exception"
"""The slot of an exception that a claim makes of what its source says something of, or the other way round."""
_BUT = r"except(?:ing)?(?: for| on| in| at)?|excluding|apart from|aside from|other than|save for|with the exception of|bar(?:ring)?"
_DETERMINERS = (
    r"(?:(?:the|a|an|one|ones|in|on|of|for|at|my|our|its|those|two|three|four|five|six|seven|eight|nine|ten)\s+)*"
)
_EVERY = (
    r"\b(?:all|every|everyone|everybody|everything|each|any|no|nobody|no one|none|nothing|daily|always|whole|entire)\b"
)
_NAMED = r"[\p{L}\p{N}’'-]+(?:\s+(?-i:[\p{Lu}\p{N}])[\p{L}\p{N}’'-]*)*"
_INSIDE = (
    pattern(rf"{_EVERY}[^.;:]{{0,60}}?[,(]?\s*\b(?:{_BUT})\s+({_DETERMINERS}{_NAMED})", ignore_case=True),
    pattern(rf"{_EVERY}\s+but\s+({_DETERMINERS}{_NAMED})", ignore_case=True),
    pattern(
        rf"{_EVERY}(?:\s+[\p{{L}}’'-]+){{1,2}}\s+but\s+((?:(?:the|an?|ones?|those|this|for|in|on|at)\s+{_DETERMINERS}|(?-i:[\p{{Lu}}\p{{N}}])){_NAMED})",
        ignore_case=True,
    ),
)
"""*All dishes, even the cold ones, except soup*, *everything but soup*, *all dishes but the soup*; elsewhere *but* opens a clause of its own."""
_FIRST = pattern(rf"^(?:{_BUT})\s+([^,.;:]{{2,40}}),\s*([^.;:]+)", ignore_case=True)
_LAST = pattern(
    rf"^([^.;:]+?),?\s+(?:{_BUT})\s+([^,.;:]{{2,40}})(,\s+(?:which|who|whose|where|when)\b[^;:]*)?[.;]?$",
    ignore_case=True,
)
_RELATIVE = pattern(r"^\s*,?\s*(?:which|who|whose|that|where|when)\b\s*([^.;:]+)", ignore_case=True)
_IF = word_set("if when where that unless in with on for")
_APART = pattern(
    rf"\b(?:{_BUT}|only|exceptions?|exempt|rest|alone|sole|solely|unlike|unless|without|if|the one|ruled out|banned|barred|forbidden|prohibited|off[- ]limits)\b",
    ignore_case=True,
)
_OTHERS = frozenset({stem("other"), stem("others")})
_INCLUDING = word_set("including included even too")
_ONE = frozenset({"1"})
_TIMES = tuple(
    frozenset(map(stem, names.split()))
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays",
        "january february march april june july august september october november december",
        "spring summer autumn winter",
    )
)
"""Names of days, months and seasons: of one an exception on another says nothing."""
_ANSWER = pattern(r"^(?:yes|no|sure|right|correct|exactly)\b[,:;.]?\s+(?:[—–-]\s+)?", ignore_case=True)
_STATEMENTS = pattern(r"[;—–]|\s+(?:and|but|while|whereas|because|since|so)\s+")
_CLAUSES = pattern(r"[,:]\s|[;—–]|\s+(?:and|but|while|whereas|because|since|so)\s+")
_COUNTS_IN = pattern(
    r"\b(?:even|including)\s+([^,.;:]{2,80})|(?:^|,)\s*([^,.;:]{2,60}?)\s+(?:included|as well|too)\s*(?:[,.!]|$)",
    ignore_case=True,
)
"""What a claim expressly counts among the others: *including the two in Lund*."""
_CASES = pattern(r"^(?:if|when|after|before|though|then|so)\b", ignore_case=True)
_MOSTLY, _PARTLY = 0.6, 0.4


@dataclass(frozen=True)
class Excepted:
    """What is excepted, what is said of the others, and whether it is denied of them."""

    one: frozenset[str]
    rest: frozenset[str]
    denied: bool
    text: str
    told: frozenset[str] = frozenset()
    """What the sentence goes on to say of the one: *except the lid, which is sold apart*."""


@lru_cache(maxsize=1024)
def excepted(sentence: str) -> Excepted | None:
    """Return the exception that a sentence states, or ``None``."""
    text = sentence.strip()
    if (found := _FIRST.search(text)) is not None:
        return _excepted(found.group(1), found.group(2), text)
    if (found := next((each for rule in _INSIDE if (each := rule.search(text)) is not None), None)) is not None:
        after = text[found.end(1) :]
        rest = text[: found.start(1)] + ("" if after.startswith(",") else after)
        return _excepted(found.group(1), rest, text, _told_of_it(after))
    if (found := _LAST.search(text)) is not None:
        return _excepted(found.group(2), found.group(1), text, _told_of_it(found.group(3) or ""))
    return None


def _told_of_it(after: str) -> str:
    """Return what a relative clause behind the one says of it."""
    found = _RELATIVE.match(after)
    return found.group(1) if found is not None else ""


def _excepted(one: str, rest: str, text: str, told: str = "") -> Excepted | None:
    first = one.split(maxsplit=1)[0].lower() if one.split() else ""
    words, others = words_of("x " + one) - {"x"}, words_of("x " + rest) - {"x"}
    if first in _IF - {"in", "on", "for"} or not words or not others or has_negator(one):
        return None
    own = words - others - _ONE or words
    return Excepted(
        own, others - own, has_negator(rest), text, words_of("x " + told) - {"x"} - others if told else frozenset()
    )


def tells_exception(claim: str, source: str) -> bool:
    """Whether a claim tells of what its source excepts what does not hold of the others, so that its *not* turns nothing round.

    Of Tuesdays an exception on Mondays says nothing.
    """
    found = excepted(source)
    said = _ANSWER.sub("", claim)
    words = words_of("x " + said)
    if found is None:
        return False
    if not words & found.one and any(found.one <= names and words & names for names in _TIMES):
        return has_negator(said) is found.denied
    return found.one <= words and includes_exception(claim, source) is None


def includes_exception(claim: str, source: str) -> Excepted | None:
    """Return the exception of a source of which a clause of a claim says what holds of the others, or ``None``."""
    found = excepted(source)
    if found is None or claim.rstrip().endswith("?") or all(word.isdigit() for word in found.one):
        return None
    told = _ANSWER.sub("", claim)
    clauses = [*_CLAUSES.split(told), *_STATEMENTS.split(told)]
    return found if any(_includes(each, found) for each in clauses) or _counts_in(told, found) else None


def _includes(clause: str, found: Excepted) -> bool:
    said = words_of("x " + clause) - {"x"}
    others = said - found.one - _OTHERS
    if _APART.search(clause) is not None:
        return False
    if said & found.told:
        return False
    near = len(others & found.rest) >= _MOSTLY * len(others)
    return bool(found.one <= said and others and near) and _denies(clause) is found.denied


def _denies(text: str) -> bool:
    """Whether a text denies something, by *not* or by a word that excludes: *ruled out*, *forbidden*."""
    tokens = lex(fold(text))
    return has_negator(text) or any(excludes(tokens, place) for place in range(len(tokens)))


def _counts_in(claim: str, found: Excepted) -> bool:
    """Whether a claim says that the one is among the others, and says of them what the source does, in some of its words."""
    if _APART.search(claim) is not None or _denies(claim) is not found.denied:
        return False
    rest = words_of("x " + claim) - {"x", *found.one, *_INCLUDING}
    named = (match[1] or match[2] or "" for match in _COUNTS_IN.finditer(claim))
    if not any(found.one <= words_of("x " + each) and not _CASES.search(each) for each in named):
        return False
    return bool(rest & found.rest) and len(rest & found.rest) >= _PARTLY * len(rest)
