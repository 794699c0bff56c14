"""Comparisons turned round in other words: *the blue team was quicker*, where the red team was faster (SPEC-005 §5.3).

A source that compares two things in one respect says which is ahead. A claim that compares the same two in that respect, the sides
exchanged, or the sides kept and the respect opposite, says the contrary, whatever verb it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import stem

_RESPECTS = (
    ("faster quicker speedier swifter", "slower"),
    ("dearer pricier expensive costly", "cheaper"),
    ("older", "newer younger"),
    ("later", "earlier sooner"),
    ("longer", "shorter briefer"),
    ("higher taller", "lower"),
    ("bigger larger greater", "smaller"),
    ("heavier", "lighter"),
    ("stronger", "weaker"),
    ("better", "worse poorer"),
    ("warmer hotter", "colder cooler"),
    ("harder difficult trickier", "easier simpler"),
    ("wider broader", "narrower"),
    ("thicker", "thinner"),
    ("safer", "dangerous riskier risky"),
    ("louder noisier", "quieter"),
    ("farther further", "nearer closer"),
    ("deeper", "shallower"),
    ("brighter", "darker dimmer"),
    ("often frequently", "rarely seldom"),
)
"""Words of one respect, and those of its opposite."""
_SIGNS = {
    word: (number, sign)
    for number, sides in enumerate(_RESPECTS)
    for sign, words in zip((1, -1), sides, strict=True)
    for word in word_set(words)
}
_COMPARATIVES = sorted(word for word in _SIGNS if word.endswith(("er", "worse")))
_THAN = pattern(
    rf"\b(?:(costs?)\s+(more|less)|(more|less|fewer)\s+([\p{{L}}-]+)|({'|'.join(_COMPARATIVES)}))((?:\s+[\p{{L}}-]+){{0,3}}?)\s+than\s",
    ignore_case=True,
)
_PARTS = pattern(r"[;,]\s|\s(?:and|but|while|whereas|because|since|so|although|though)\s")
_REVERSED = pattern(
    r"\b(?:other way (?:a)?round|reverse[ds]?|opposite|vice versa|if|unless|until|as long as|no longer|used to|once)\b", ignore_case=True
)  # fmt: skip
_GENERAL = words_of("x one ones thing things much far even still slightly clearly considerably that those")
_MOST_NEW = 1


@dataclass(frozen=True)
class _Compared:
    """A comparison: the respect, which side is ahead in it, and the words of both sides."""

    respect: tuple[int | str, frozenset[str]]
    sign: int
    left: frozenset[str]
    right: frozenset[str]
    text: str


def outdone(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the comparison of *claim* that a source has the other way round, or ``None``."""
    if claim.text.rstrip().endswith("?") or has_negator(claim.text) or _REVERSED.search(claim.text):
        return None
    for mine in _compared(claim.text):
        told = [(its, source) for source in evidence.passages for its in _compared(source.text)]
        ways = [(_way(mine, its), its, source) for its, source in told]
        if any(way == _SAME for way, _, _ in ways):
            continue
        for way, its, source in ways:
            if way == _TURNED and _is_of_it(mine, source.text):
                return Misbinding(
                    NEGATION_FLIP, "comparison", its.text, mine.text, source.text, source.fact_id, about=claim.content
                )
    return None


_SAME, _TURNED = 1, -1


def _way(mine: _Compared, its: _Compared) -> int:
    """Return whether two comparisons of the same things agree or are opposite; 0 where they are of other things or respects."""
    if mine.respect != its.respect:
        return 0
    first, second = its.left - its.right, its.right - its.left
    crossed = bool(mine.left & second and mine.right & first) and not mine.right & second
    straight = bool(mine.left & first and mine.right & second) and not mine.left & second and not mine.right & first
    if crossed is straight:
        return 0
    return mine.sign * its.sign * (1 if straight else -1)


def _is_of_it(mine: _Compared, source: str) -> bool:
    """Whether a source's sentence has the words of a claim's comparison, all but its verb, and says nothing of another case."""
    new = (mine.left | mine.right) - words_of("x " + source) - _GENERAL
    figures = {word for word in new if word[0].isdigit()}
    return len(new) <= _MOST_NEW and not figures and not has_negator(source) and _REVERSED.search(source) is None


@remembered(bytes_a_character=10, from_length=60)
def _compared(text: str) -> tuple[_Compared, ...]:
    return tuple(each for part in _PARTS.split(text.rstrip(" .!")) for each in _of(part))


def _of(part: str) -> Iterator[_Compared]:
    found = list(_THAN.finditer(part))
    if len(found) != 1:
        return
    match = found[0]
    respect, sign = _respect(match[2] and "expensive", match[2] or match[3], match[4] or match[5])
    between = words_of("x " + match[6]) - {"x"}
    left, right = words_of("x " + part[: match.start()]) - {"x"}, words_of("x " + part[match.end() :]) - {"x"}
    yield _Compared((respect, between), sign, left - _GENERAL, right - _GENERAL, part.strip())


def _respect(priced: str, degree: str, word: str) -> tuple[int | str, int]:
    """Return a respect and its sign: of *less power* the power, and behind in it."""
    told = (priced or word).lower()
    number, sign = _SIGNS.get(told, (stem(told), 1))
    return number, sign * (-1 if (degree or "").lower() in {"less", "fewer"} else 1)
