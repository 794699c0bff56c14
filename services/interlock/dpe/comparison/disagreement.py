"""Disagreement: whether two claims cannot both hold, of which kind and severity (SPEC-005 §5.4, §8.2).

Figures, dates and opposite words are compared directly, and a rule stands without a model. The rules apply only when
both claims are about the same thing: the names of one are among the other's, the words of one are among the other's,
and the times are equal or only one claim has a time. Where no rule applies, claims contradict each other when the NLI
model is sure, and only if subject and time are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from interlock.dpe.comparison.cues import MAGNITUDE_ALTERED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.comparison.value_conflicts import compare, frame
from interlock.dpe.document import Claim, ClaimType
from interlock.dpe.inference.ner import KINDS as NAMED
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import cells_of, restated
from interlock.dpe.values.frames import DIRECTIONS, Frame, stem
from interlock.dpe.values.quantities import ORDINAL, Value, comparable, same

CONTRADICTED_ABOVE = 0.75
SEVERITIES = ("CRITICAL", "HIGH", "MEDIUM", "LOW")
KINDS = {"numeric": "CRITICAL", "logical": "HIGH", "temporal": "HIGH", "stance": "MEDIUM", "minor": "LOW"}
_RULED = 0.76  # the probability of a rule's finding, above the threshold however unsure the model is
_FIELD_WORDS = 5  # more behind a colon is a sentence
_MINOR = 0.10  # two approximate figures within this share of each other are a minor inconsistency
_NEARLY_SAME_WORDS = 0.75
_SILENT = pattern(
    r"(?:n['’]t|\bnot|\bcannot) (?:\w+ )?(?:mention|say|state|specify|list|cover|address|tell|indicate|contain|include|give|know)"
    r"|\bno (?:\w+ )?(?:mention|information|details?|word|answer)\b|(?:\bnot|n['’]t) (?:mentioned|stated|specified|covered|listed)"
    r"|\bsilent (?:on|about)\b",
    ignore_case=True,
)
_REMEMBERED = 1024
_NAMES = frozenset(NAMED)
_STANCES = frozenset({"positive", "favourable", "support", "best"})
_FILLERS = frozenset(
    stem(word)
    for word in word_set(
        "reach reached total totalled totaled amount amounted stand stood hit come came equal equalled equaled generally "
        "largely mostly mainly broadly overwhelmingly fairly somewhat overall widely primarily chiefly currently officially"
    )
)
_COMPARING = frozenset(
    stem(word)
    for word in word_set(
        "more less fewer than earlier later sooner longer shorter higher lower cheaper dearer larger smaller bigger greater older younger"
        " extra apart difference further another"
    )
)
# Events that happen once, so that two dates of one cannot both be right.
_ONCE = frozenset(
    stem(word)
    for word in word_set(
        "launched founded established created born died enacted adopted signed published released completed built "
        "inaugurated introduced invented discovered acquired married retired elected appointed ratified incorporated "
        "abolished dissolved premiered debuted expires approved opened started began ended closed merged"
    )
)


@dataclass(frozen=True)
class Disagreement:
    """How two claims contradict each other. ``kind`` is a key of ``KINDS``."""

    kind: str
    method: str
    probability: float

    @property
    def severity(self) -> str:
        """CRITICAL, HIGH, MEDIUM or LOW (§8.2)."""
        return KINDS[self.kind]


@dataclass(frozen=True)
class _Features:
    """Features of a claim's text, extracted once."""

    frame: Frame
    words: frozenset[str]
    dates: tuple[Value, ...]
    figures: tuple[Value, ...]
    sides: dict[str, int]
    negations: int


@lru_cache(maxsize=_REMEMBERED)
def _features(text: str) -> _Features:
    framed = frame(restated(text))
    row = cells_of(text) is not None
    sides: dict[str, int] = {}
    for token in framed.tokens:
        family, side = DIRECTIONS.get(token.low, ("", 0))
        if family:
            sides[family] = side if sides.get(family, side) == side else -1
    return _Features(
        frame=framed,
        words=framed.bag - _FILLERS,
        dates=tuple(value for value in framed.values if value.moment is not None),
        figures=tuple(value for value in framed.values if _is_figure(value)),
        sides=sides,
        negations=0
        if row
        else sum(is_negator(token.low) for token in framed.tokens),  # the no of a cell denies no sentence
    )


def _is_figure(value: Value) -> bool:
    return value.amount is not None and value.moment is None and not value.vague and value.kind != ORDINAL


def classify(one: Claim, other: Claim, probability: float) -> Disagreement | None:
    """Return how two claims contradict each other, or ``None``.

    *probability* is the model's P(contradiction) of the pair, the lower of both directions.
    """
    if not same_subject(one, other):
        return None
    if _asks_beside_silence(one, other):
        return None
    first, second = _features(one.text), _features(other.text)
    alike = _same_names(one, other) and _same_words(first, second) and _same_slot(one.text, other.text, first, second)
    rule = (_by_rule(first, second) if alike else None) or _by_date(first, second, probability, alike=alike)
    if rule is not None:
        kind, method = rule
        if method == "negation" and (one.claim_type is ClaimType.PROCEDURAL) != (
            other.claim_type is ClaimType.PROCEDURAL
        ):
            return None  # what is to be done denies no state before it
        return Disagreement(kind, method, max(probability, _RULED))
    if probability <= CONTRADICTED_ABOVE or _times_differ(first, second):
        return None
    kind = "stance" if _opposites(first, second) & _STANCES else "logical"
    return Disagreement(kind, "nli", probability)


def _asks_beside_silence(one: Claim, other: Claim) -> bool:
    """Whether one claim says that a source is silent, and the other only tells whom to ask or what to do about it."""
    return any(
        _SILENT.search(a.text) is not None and b.claim_type in {ClaimType.PROCEDURAL, ClaimType.META}
        for a, b in ((one, other), (other, one))
    )


def same_subject(one: Claim, other: Claim) -> bool:
    """Whether both claims share a named entity, or one of them names none."""
    left, right = _name_words(one), _name_words(other)
    return not left or not right or any(a & b for a in left for b in right)


def _by_rule(one: _Features, other: _Features) -> tuple[str, str] | None:
    """Return kind and method of a disagreement in figures or opposite words, for claims of the same thing and time."""
    if _times_differ(one, other):
        return None
    kinds = {found.type for found in compare(other.frame, one.frame)}
    differing = list(_differing(one.figures, other.figures))
    if differing and (kinds & {NUMBER_CHANGED, MAGNITUDE_ALTERED} or len(one.figures) == len(other.figures) == 1):
        return ("minor" if all(_is_minor(a, b) for a, b in differing) else "numeric"), "numbers"
    opposite = _opposites(one, other)
    if (len(opposite) + one.negations + other.negations) % 2 and not differing:
        if opposite:
            return ("stance" if opposite & _STANCES else "logical"), "opposites"
        if NEGATION_FLIP in kinds:
            return "logical", "negation"
    return None


def _by_date(one: _Features, other: _Features, probability: float, *, alike: bool) -> tuple[str, str] | None:
    """Return kind and method when both claims date a one-time event, and differently."""
    differing = (
        list(_differing(one.figures, other.figures)) or _opposites(one, other) or one.negations != other.negations
    )
    if not alike or differing or not _times_differ(one, other):
        return None
    once = (one.words & other.words & _ONCE) or any(
        f"±{family}" in one.words & other.words for family in _once_families()
    )
    figures = one.figures or other.figures
    if (once and not figures) or probability > CONTRADICTED_ABOVE:
        return "temporal", "dates"
    return None


@lru_cache(maxsize=1)
def _once_families() -> frozenset[str]:
    return frozenset(word.removeprefix("±") for word in _ONCE if word.startswith("±"))


def _differing(one: Sequence[Value], other: Sequence[Value]) -> Iterator[tuple[Value, Value]]:
    """Yield comparable figures that differ, when neither claim has the other's figure as well."""
    for a in one:
        for b in other:
            if (
                comparable(a, b)
                and not a.label
                and not b.label
                and not any(same(a, each) for each in other)
                and not any(same(each, b) for each in one)
            ):
                yield a, b


def _is_minor(one: Value, other: Value) -> bool:
    left, right = abs(one.amount or 0.0), abs(other.amount or 0.0)
    return (one.approximate or other.approximate) and abs(left - right) <= _MINOR * max(left, right)


def _opposites(one: _Features, other: _Features) -> frozenset[str]:
    """Return the families of direction words in which the claims take opposite sides."""
    return frozenset(
        family
        for family, side in one.sides.items()
        if side >= 0 and other.sides.get(family, -1) >= 0 and other.sides[family] != side
    )


def _same_words(one: _Features, other: _Features) -> bool:
    """Whether two claims have the same words apart from their values, or one has all words of the other."""
    left, right = one.words, other.words
    if not left or not right:
        return not left and not right
    if left != right and any(_only_compares(words) for words in (left, right)):
        return False  # *£2,200 less* leaves out what it is about
    return left <= right or right <= left or len(left & right) >= _NEARLY_SAME_WORDS * len(left | right)


def _only_compares(words: frozenset[str]) -> bool:
    """Whether a claim has no words but those that compare: *£2,200 less*, *three weeks earlier*."""
    return all(word.startswith("±") or word in _COMPARING for word in words)


def _same_slot(one: str, other: str, first: _Features, second: _Features) -> bool:
    """Whether a field and a sentence state one thing: the sentence has every word of the field's label, and one figure."""
    fields = [_is_labelled(one), _is_labelled(other)]
    if fields[0] == fields[1]:
        return True
    label, prose = (first, second) if fields[0] else (second, first)
    return len(label.figures) == len(prose.figures) == 1 and len(label.words) > 1 and label.words <= prose.words


def _is_labelled(text: str) -> bool:
    """Whether a claim is a field, a row or an item behind its lead; a whole sentence behind a colon is none of these."""
    return cells_of(text) is not None or 0 < len(text.partition(": ")[2].split()) <= _FIELD_WORDS


def _same_names(one: Claim, other: Claim) -> bool:
    """Whether the names of one claim are among the other's. Sales in Europe and sales in Asia are two things."""
    left, right = (frozenset().union(*_name_words(claim)) | _written(claim.text) for claim in (one, other))
    return left <= right or right <= left


def _written(text: str) -> frozenset[str]:
    return frozenset(word for name in _features(text).frame.names if name.sure for word in name.words)


def _name_words(claim: Claim) -> list[frozenset[str]]:
    return [words for entity in claim.entities if entity.label in _NAMES and (words := content_words(entity.text))]


def _times_differ(one: _Features, other: _Features) -> bool:
    """Whether both claims have a time, and none in common: this year's figure and last year's."""
    return bool(one.dates and other.dates) and not any(same(a, b) for a in one.dates for b in other.dates)
