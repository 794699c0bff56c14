"""Cases: a value that a claim supposes under a rule of its source (SPEC-005 §5.2, §5.3).

*Cod of less than 38 cm must be put back* decides on a cod of 35 cm, and on one of 40 cm. A claim that says so states no figure of its
own: the figure is an example, of which the rule says what the claim says. It is one only where that can be seen: the claim supposes it,
it lies clearly on one side of the source's bound, and nothing that both sentences say of that side is opposite.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.comparison.cases.bounds import bounds, place_of
from interlock.dpe.comparison.cases.verdicts import IS, MAY, MUST, verdicts
from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame, FramedSentence
from interlock.dpe.values.quantities import Value

_INDEFINITE = word_set("a an any every each whoever someone somebody anyone anybody if where when with having suppose")
_DEFINITE = word_set("the this that these those his her its their my our your")
_PAST = word_set(
    "was were had did measured weighed cost came got went took gave made paid found lasted rose fell stood reached"
)
_SUPPOSING = word_set("if whoever someone somebody anyone anybody would suppose supposing where")
_GENERAL = word_set("no nobody none all")
_NORMS = word_set("can cannot may must need needs should have has")
_PRESENT = word_set("is are has have does do can cannot may might must shall should will would need needs")
_COMPARED = word_set(
    "more less fewer earlier later sooner longer shorter faster slower higher lower older younger cheaper dearer wider heavier lighter apart"
)
_CUTS = word_set(", ; : and but or while whereas")
_TURNING = word_set("unless except")
_CONDITIONS = word_set("if when where with having that who which whoever suppose supposing")
_PREDICATES = word_set(
    "is are be has have can cannot could may might must shall should will would do does need needs costs cost gets get takes take pays pay lasts last weighs"
)
_OPENERS = word_set("in on at from to by for during until before after since")
_LIMITS = word_set("maximum minimum max min tops")
_ENDS = word_set("most least latest earliest")
_FARTHEST = 6
_MOSTLY = 0.4
_STOPS = frozenset({",", ";", ":", ".", "(", ")"})


def is_case(value: Value, claim: Frame, fact: Frame) -> bool:
    """Whether a value of a claim is a case on which a rule of the source decides as the claim does."""
    sentence = next((each for each in claim.sentences if each.first <= value.first < each.last), None)
    if sentence is None or not is_supposed(value, sentence, claim):
        return False
    near = [each for each in fact.sentences if each.bag & sentence.bag]
    far = [each for each in fact.sentences if not each.bag & sentence.bag]
    return any(
        _decides(value, sentence, sources, claim, fact)
        for sources in (near, far if not _bounding(value, near, fact) else ())
    )


def _bounding(value: Value, sources: Sequence[FramedSentence], fact: Frame) -> bool:
    return any(place_of(value, stated) is not None for source in sources for stated, _ in bounds(source, fact))


def _decides(
    value: Value, sentence: FramedSentence, sources: Sequence[FramedSentence], claim: Frame, fact: Frame
) -> bool:
    """Whether sentences of a source bound what a value measures, and say of its side what the claim says.

    A size whose verdict the source gives on another scale, *put back* against *may be kept*, is an example too: that it stands nowhere
    speaks against nobody, and the model judges what is said of it. A date has to be decided on, since it may be of another event.
    """
    said = verdicts(claim.tokens[sentence.first : sentence.last])
    ruled = [
        (_verdicts(source, stated, fact, norm=bound.norm), bound.holds(place))
        for source in sources
        for stated, bound in bounds(source, fact)
        for place in (place_of(value, stated),)
        if place is not None and not bound.is_end(place)
    ]
    told = [_agrees(said, each, inside=inside) for each, inside in ruled]
    if said <= {(IS, True), (IS, False)} and not _is_near(sentence, claim, fact):
        return False
    example = value.moment is None and any(each for each, _ in ruled)
    return (True in told or example) and False not in told


def _is_near(sentence: FramedSentence, claim: Frame, fact: Frame) -> bool:
    """Whether a claim that only says that something is so says it in words of the source, or supposes it."""
    lows = [token.low for token in claim.tokens[sentence.first : sentence.last]]
    return _is_hypothetical(lows) or len(sentence.bag & fact.bag) >= _MOSTLY * len(sentence.bag)


def _verdicts(source: FramedSentence, stated: Value, fact: Frame, *, norm: bool) -> frozenset[tuple[str, bool]]:
    """Return what a sentence says of the side of a bound: the words of its own piece, or else those of all of it."""
    cuts = [n for n in range(source.first, source.last) if fact.tokens[n].low in _CUTS]
    first = max((n for n in cuts if n < stated.first), default=source.first)
    last = min((n for n in cuts if n >= stated.last), default=source.last)
    lows = [token.low for token in fact.tokens[source.first : source.last]]
    if set(lows) & _TURNING or "only" in [token.low for token in fact.tokens[stated.last : source.last]]:
        return frozenset()  # of those under 20 only cash is taken
    own = verdicts(fact.tokens[first:last])
    found = own if any(scale != IS for scale, _ in own) else verdicts(fact.tokens[source.first : source.last])
    if not norm:
        return found
    return frozenset({(MAY, True)} | {(scale, yes) for scale, yes in found if scale == MUST and yes})


def _agrees(said: frozenset[tuple[str, bool]], told: frozenset[tuple[str, bool]], *, inside: bool) -> bool | None:
    """Whether a claim says of a case what a rule says of its side, or the opposite of the other side; ``None`` where they cannot be compared."""
    shared = {scale for scale, _ in said} & {scale for scale, _ in told}
    if (
        not shared
        or any((scale, not yes) in told for scale, yes in told)
        or any((scale, not yes) in said for scale, yes in said)
    ):
        return None
    return all(((scale, True) in said) == (((scale, True) in told) == inside) for scale in shared)


def is_supposed(value: Value, sentence: FramedSentence, claim: Frame) -> bool:
    """Whether a value stands in a phrase of nothing definite, in a sentence that tells no single event."""
    lows = [token.low for token in claim.tokens[sentence.first : sentence.last]]
    if value.bound or value.vague or at(claim.tokens, value.last).low in _COMPARED or _is_limit(value, claim.tokens):
        return False
    if _is_hypothetical(lows):
        return value.moment is not None or _stands_before(value, sentence, claim.tokens)
    if "will" in lows or (_PAST & set(lows) and not _PRESENT & set(lows)):
        return False
    if value.moment is not None:
        opened = at(claim.tokens, value.first - 1).low in _OPENERS
        return opened and bool(
            (_INDEFINITE | _GENERAL) & set(lows[: value.first - sentence.first] + lows[:1]) or _is_normed(lows)
        )
    return _stands_before(value, sentence, claim.tokens) and _is_indefinite(value, sentence, claim.tokens)


def _is_limit(value: Value, tokens: Sequence[Lexeme]) -> bool:
    """Whether a claim gives a value as a bound of its own: *four kilos at the most*."""
    after = [at(tokens, value.last + step).low for step in range(3)]
    return after[0] in _LIMITS or (after[0] == "at" and not _ENDS.isdisjoint(after[1:]))


def _is_hypothetical(lows: Sequence[str]) -> bool:
    """Whether a sentence supposes what it tells: *if*, *would*, *someone who*, *walking away in May*."""
    return bool(_SUPPOSING & set(lows)) or lows[0].endswith("ing")


def _is_normed(lows: Sequence[str]) -> bool:
    return any(low in _NORMS for low in lows)


def _stands_before(value: Value, sentence: FramedSentence, tokens: Sequence[Lexeme]) -> bool:
    """Whether a value stands before what its sentence says of it, or in a condition: not *a hive needs 12 kilos*."""
    condition = _condition(value, sentence, tokens)
    return not any(token.low in _PREDICATES for token in tokens[condition : value.first])


def _condition(value: Value, sentence: FramedSentence, tokens: Sequence[Lexeme]) -> int:
    """Return where the condition begins in which a value stands, or its sentence."""
    return max((n for n in range(sentence.first, value.first) if tokens[n].low in _CONDITIONS), default=sentence.first)


def _is_indefinite(value: Value, sentence: FramedSentence, tokens: Sequence[Lexeme]) -> bool:
    """Whether the nearest article before a value, or the one that it begins with, is that of nothing definite; so is a phrase without any."""
    for place in range(value.first - 1, max(sentence.first, value.first - _FARTHEST) - 1, -1):
        low = tokens[place].low
        if low in _INDEFINITE or low in _STOPS:
            return low in _INDEFINITE
        if low in _DEFINITE:
            return False
    return True
