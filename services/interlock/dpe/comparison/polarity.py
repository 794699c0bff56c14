"""Polarity: negation flips between a claim and its source (SPEC-005 §5.3). Dropped limits are in ``stripping.py``.

The words not and may are frequent, and paraphrases move them. A cue is therefore certain only where the claim copies
its source except for that cue. Every other cue is a suspicion that the NLI model must confirm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison import denials
from interlock.dpe.comparison.alignment import Alignment, Edit, Element
from interlock.dpe.comparison.cues import NEGATION_FLIP, Cue
from interlock.dpe.comparison.denials import has_negator, is_negator
from interlock.dpe.comparison.order import is_the_lesser_end, told_from_the_other_end
from interlock.dpe.text.lexing import WORD, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP, Frame, FramedSentence, coverage, stem
from interlock.dpe.values.quantities import Value, same

AUXILIARIES = word_set(
    "do does did is are was were be been being am has have had will would shall should can could may might must "
    "to of the a an any some all both longer yet ever"
)
_FINITE = word_set("is are was were has have had do does did will would shall should can could may might must")
_ADVERBS = {"up": "rose", "down": "fell"}
_JOINING = word_set("but and or although though while whereas because yet")
_CUTTING = frozenset({",", ";"})
_OPENING = frozenset({",", ";", ":", "but", "and", "while", "whereas", "–", "—", "for", "in", "on", "at"})
_WEAK = word_set(
    "longer take takes taking taken make makes making made give gives given giving get gets getting need needs require requires"
    " required want wants able allow allowed allows let let's go goes going come comes keep use used using"
)
_PERMITTED = word_set("allowed permitted possible")
_STANDING_IN = word_set("do does did")
_ENDING = word_set("end ends ended ending expire expires expired lapse lapses lapsed")
_SHORT = 4
_ELLIPTIC = frozenset({"none", "nothing", "never", "not", "neither"})
_ORDER = frozenset({"before", "after"})
_BEFORE = "±before"  # the stem of both
_PHASES = "start"
_CONVERSE = frozenset({"buy", "win"})
"""What one does to another, and that one the opposite to him."""
_NOT_YET = frozenset({"yet", "still"})
_AWAITED = word_set(
    "need needs await awaits awaiting pending planned plans will yet still until scheduled expected proposed outstanding requested"
)
_PREFIXES = ("un", "dis", "non", "in", "im", "il", "ir")
CERTAIN_COPY = 0.6
_FRAME_AGREES = 0.75


def flips(sentence: FramedSentence, alignment: Alignment | None, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield a cue when a claim's sentence states the opposite of its source."""
    if (moved := _moved_otherwise(sentence, claim, fact)) is not None:
        yield moved
    elif alignment is not None and alignment.is_copy:
        for cue in _flipped_edits(alignment, claim, fact):
            phases = {DIRECTIONS.get(word, ("",))[0] for word in (cue.source_value, cue.claim_value)} == {_PHASES}
            if phases and _of_other_times(sentence, alignment.source):
                continue
            if has_negator(cue.source_value) or not _is_elsewhere(sentence, claim, alignment.source, fact):
                yield cue
    elif not _stands_in(sentence, claim) and (source := framed(sentence, fact)) is not None:
        yield from _framed_flips(sentence, source, claim, fact)


def _framed_flips(sentence: FramedSentence, source: FramedSentence, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield a cue when a claim words its source otherwise, and one of them denies what the other says."""
    if _is_awaited(sentence, claim, source, fact):
        return
    claim_negators, source_negators = (
        _negators_near(sentence, claim, source.bag),
        _negators_near(source, fact, sentence.bag),
    )
    opposite = _opposite_words(sentence, claim, source, fact)
    paired = {word for pair in opposite for word in pair}
    claim_negators = [word for word in claim_negators if word not in paired]
    source_negators = [word for word in source_negators if word not in paired]
    if claim_negators and not source_negators and not opposite and _is_elsewhere(sentence, claim, source, fact):
        return
    ends = {token.low for token in fact.tokens[source.first : source.last]} & _ENDING
    if ends and claim_negators and set(claim_negators) <= denials.CEASING:
        return  # what ends stops
    if _excludes_alike(sentence, claim, source, fact, (claim_negators, source_negators)):
        return
    if (len(claim_negators) + len(source_negators) + len(opposite)) % 2:
        shown = opposite[0] if opposite else ("", "")
        yield Cue(
            NEGATION_FLIP,
            " ".join(source_negators) or shown[0],
            " ".join(claim_negators) or shown[1],
            certain=False,
        )


def _stands_in(sentence: FramedSentence, claim: Frame) -> bool:
    """Whether a claim's verb only stands for the one of the sentence before, with its *not*: *warfarin does, as it makes you bleed*."""
    return any(
        claim.tokens[place].low in _STANDING_IN and at(claim.tokens, place + 1).kind != WORD
        for place in range(sentence.first, sentence.last)
    )


def _is_awaited(sentence: FramedSentence, claim: Frame, source: FramedSentence, fact: Frame) -> bool:
    """Whether a claim says that something has not happened yet that its source plans or awaits: *still needs approval*."""
    mine, its = (
        {token.low for token in frame.tokens[each.first : each.last]}
        for each, frame in ((sentence, claim), (source, fact))
    )
    return bool(mine & _NOT_YET) and any(map(is_negator, mine)) and bool(its & _AWAITED)


def _moved_otherwise(sentence: FramedSentence, claim: Frame, fact: Frame) -> Cue | None:
    """Return a cue where a figure by which something moves is the source's, and the direction the opposite: up by 25%."""
    for value in sentence.values:
        mine = _moves_by(claim, value)
        theirs = [found for each in fact.values if same(value, each) and (found := _moves_by(fact, each))]
        if mine and theirs and not any(DIRECTIONS[word] == DIRECTIONS[mine] for word in theirs):
            opposite = [word for word in theirs if _are_opposite(mine, word)]
            if opposite:
                return Cue(NEGATION_FLIP, opposite[0], mine)
    return None


def _moves_by(frame: Frame, value: Value) -> str:
    """Return the direction word before *by* and a figure, or an empty string: fell by a quarter."""
    if at(frame.tokens, value.first - 1).low != "by" or value.moment is not None:
        return ""
    word = at(frame.tokens, value.first - 2).low
    word = _ADVERBS.get(word, word)
    return word if word in DIRECTIONS else ""


def framed(sentence: FramedSentence, fact: Frame) -> FramedSentence | None:
    """Return the source sentence that has nearly all content words of a claim's sentence."""
    if len(sentence.bag) < 2 or not fact.sentences:
        return None
    best = max(fact.sentences, key=lambda other: coverage(sentence.bag, other, fact))
    return best if coverage(sentence.bag, best, fact) >= _FRAME_AGREES else None


def _flipped_edits(alignment: Alignment, claim: Frame, fact: Frame) -> Iterator[Cue]:
    flips_found: list[tuple[str, str]] = []
    certain = alignment.copied >= CERTAIN_COPY
    for edit in alignment.edits:
        claim_words, source_words = _marked(edit.claim, claim), _marked(edit.source, fact)
        if edit.beyond and (not any(word.denies for word in source_words) or _is_other_clause(edit, alignment, fact)):
            continue  # the claim was cut out of its source
        if not edit.source and _is_contrast(edit, claim):
            continue
        flip = _polarity_flip(claim_words, source_words)
        if flip is not None:
            flips_found.append(flip)
        certain = certain and _only_flips(claim_words, source_words)
    if len(flips_found) % 2:
        source, claim_value = flips_found[0]
        yield Cue(NEGATION_FLIP, source, claim_value, certain=certain)


@dataclass(frozen=True)
class _Word:
    """A word of an edit, and whether it denies something where it stands."""

    word: str
    denies: bool


def _marked(elements: Sequence[Element], frame: Frame) -> list[_Word]:
    return [_Word(each.word, denials.denies(frame.tokens, each.first)) for each in elements]


def _is_contrast(edit: Edit, claim: Frame) -> bool:
    """Whether a claim only adds what something is not: *it has a shower, not a bath*. That is denied of the other word alone."""
    first = edit.claim[0].first if edit.claim else 0
    return first > 0 and claim.tokens[first].low == "not" and claim.tokens[first - 1].text == ","


def _is_other_clause(edit: Edit, alignment: Alignment, fact: Frame) -> bool:
    """Whether the source text beyond the claim is a separate clause: he needs rest, but will not be operated on."""
    opens = edit is alignment.edits[0] and edit.source[0].first == alignment.source.first
    if opens:
        return edit.source[-1].word in _JOINING
    # Up to where it denies: what goes on with the claim's clause may stand before, *in two days, I hardly saw it*.
    denying = next(
        (each.first for each in edit.source if denials.denies(fact.tokens, each.first)), edit.source[0].first
    )
    before = (at(fact.tokens, place) for place in range(edit.source[0].first - 1, denying))
    return edit.source[0].word in _JOINING or any(each.text in _CUTTING or each.low in _JOINING for each in before)


def _polarity_flip(claim_words: Sequence[_Word], source_words: Sequence[_Word]) -> tuple[str, str] | None:
    """Return what flips the polarity in one edit: a negator on one side only, or words of opposite direction."""
    claim_words, source_words = _affirmed(claim_words), _affirmed(source_words)
    mine, its = ([each.word for each in words if _is_told(each)] for words in (claim_words, source_words))
    if len(mine) > 2 or len(its) > 2:
        return None  # a whole phrase was added or dropped
    opposite = next(
        (
            (other.word, one.word)
            for one in claim_words
            for other in source_words
            if _are_opposite(one.word, other.word)
        ),
        None,
    )
    if mine and its and opposite is None and not set(map(stem, mine)) & set(map(stem, its)):
        return None  # a phrase was worded otherwise: what it denies is another word
    negations = sum(each.denies for each in (*claim_words, *source_words) if each.word not in (opposite or ()))
    if (negations + (opposite is not None)) % 2 == 0:
        return None
    return opposite or (" ".join(each.word for each in source_words), " ".join(each.word for each in claim_words))


def _affirmed(words: Sequence[_Word]) -> Sequence[_Word]:
    """Return words without what they only deny in favour of what follows: *not to staff, but to the food bank*."""
    plain = [each.word for each in words]
    if "but" not in plain:
        return words
    cut = len(words) - plain[::-1].index("but")
    return words[cut:] if any(each.denies for each in words[:cut]) else words


def _is_told(word: _Word) -> bool:
    return is_content(word.word) and not word.denies


def is_content(word: str) -> bool:
    return word not in STOP and not is_negator(word) and word not in AUXILIARIES


def _are_opposite(one: str, other: str) -> bool:
    first, second = DIRECTIONS.get(one), DIRECTIONS.get(other)
    if first and second:
        return first[0] == second[0] and first[1] != second[1]
    short, long = sorted((one, other), key=len)
    return len(short) >= 4 and any(long == prefix + short for prefix in _PREFIXES)


def _only_flips(claim_words: Sequence[_Word], source_words: Sequence[_Word]) -> bool:
    """Whether an edit holds only function words and words that flip the polarity."""
    paired = {
        each
        for one in claim_words
        for other in source_words
        if _are_opposite(one.word, other.word)
        for each in (one.word, other.word)
    }
    return all(
        each.word in STOP or each.word in AUXILIARIES or is_negator(each.word) or each.word in paired
        for each in (*claim_words, *source_words)
    )


def _negators_near(sentence: FramedSentence, frame: Frame, words: frozenset[str]) -> list[str]:
    """Return the words of a sentence that deny something which both sentences have."""
    found: list[str] = []
    for index in denials.places(frame.tokens, sentence.first, sentence.last):
        low = frame.tokens[index].low
        if denials.excludes(frame.tokens, index):
            found.append(low)  # seepage is excluded: it is not covered
        elif not _prefers(sentence, frame, index, words):
            found += [low] if _reaches(sentence, frame, index, words) else []
    return found


def _is_elsewhere(sentence: FramedSentence, claim: Frame, source: FramedSentence, fact: Frame) -> bool:
    """Whether a claim denies of another place, time or case what its source says of one only: *only at Kisumu*, *not at Homa Bay*."""
    said = [claim.tokens[place].low for place in range(sentence.first, sentence.last)]
    told = {_sided(word, claim.tokens[place].low) for place, word in sentence.stems}
    for preposition, places in denials.restricted(fact.tokens, source.first, source.last):
        own = {_sided(word, fact.tokens[place].low) for place, word in source.stems if place in places}
        if own - told and any(denials.tells_the_other_case(word, preposition) for word in said):
            return True
    return False


def _sided(word: str, low: str) -> tuple[str, int]:
    """Return a stem with the side that its word takes where stems do not tell: *eastern* and *western*."""
    return (word, DIRECTIONS[low][1]) if word.startswith("±") and low in DIRECTIONS else (word, 0)


def _excludes_alike(
    sentence: FramedSentence, claim: Frame, source: FramedSentence, fact: Frame, counted: tuple[list[str], list[str]]
) -> bool:
    """Whether one side excludes something in a word and the other denies it of a verb of its own: *are exempt*, *does not hit them*."""
    sides = ((sentence, claim), (source, fact))
    for (each, frame), mine, its, (other, beside) in zip(sides, counted, counted[::-1], sides[::-1], strict=True):
        excluding = any(denials.excludes(frame.tokens, place) for place in range(each.first, each.last))
        if excluding and len(mine) == 1 and not its:
            denied = [
                place
                for place in denials.places(beside.tokens, other.first, other.last)
                if at(beside.tokens, place - 1).text != ","
            ]
            if len(denied) == 1:
                return True
    return False


def _reaches(sentence: FramedSentence, frame: Frame, index: int, words: frozenset[str]) -> bool:
    """Whether what a negator denies is said in *words* too, as it is or with a prefix that denies it."""
    scope = _denied_words(sentence, frame, index)
    contrasts = bool(scope) and frame.tokens[index].low == "not" and at(frame.tokens, index - 1).text == ","
    if (
        frame.tokens[index].low in _ELLIPTIC
        and not contrasts
        and (not scope or at(frame.tokens, index + 1).low in _OPENING)
    ):
        if own := _elliptic_words(sentence, frame, index):  # of the southern region nothing is said of the northern one
            return all(word in words and not word.startswith("±") for word in own)
        return any(word in words for _, word in sentence.stems)  # a refund until Friday, after that none
    return any(word in words or any(prefix + word in words for prefix in _PREFIXES) for word in scope)


def _denied_words(sentence: FramedSentence, frame: Frame, index: int) -> list[str]:
    """Return the content words that a negator denies: the next, or the one behind words that tell nothing of their own."""
    after = [(place, word) for place, word in sentence.stems if place > index]
    while len(after) > 1 and _is_weak(frame.tokens[after[0][0]].low):
        after = after[1:]
    obliged = any(at(frame.tokens, place).low == "to" for place in range(index + 1, index + 4))
    if len(after) == 1 and frame.tokens[after[0][0]].low in _PERMITTED:
        return []  # not allowed at all: what stands before it is denied
    return [word for _, word in after[: 2 if obliged else 1]]  # need not submit a form: needs no form


def _is_weak(low: str) -> bool:
    return low in _WEAK or low in denials.EXCLUDING or (low.endswith("ly") and len(low) > _SHORT)


def _elliptic_words(sentence: FramedSentence, frame: Frame, index: int) -> list[str]:
    """Return the words of its clause that a negator at the end of it denies: *the other region was not*."""
    first = index
    while first > sentence.first and frame.tokens[first - 1].low not in _OPENING:
        first -= 1
    return [word for place, word in sentence.stems if first <= place <= index and word != _BEFORE]


def _prefers(sentence: FramedSentence, frame: Frame, index: int, words: frozenset[str]) -> bool:
    """Whether a negator only prefers a phrase to another, and *words* are of the preferred one: *not on Mondays, but on Tuesdays*."""
    lows = [frame.tokens[place].low for place in range(index, sentence.last)]
    if "but" not in lows or any(low in _FINITE for low in lows[lows.index("but") :]):
        return False
    cut = index + lows.index("but")
    denied = [word for place, word in sentence.stems if index < place < cut]
    preferred = [word for place, word in sentence.stems if place > cut]
    return any(word not in words for word in denied) and any(word in words for word in preferred)


def _opposite_words(
    sentence: FramedSentence, claim: Frame, source: FramedSentence, fact: Frame
) -> list[tuple[str, str]]:
    """Return pairs (source word, claim word) of opposite direction words of one family."""
    claim_sides, source_sides = _sides(sentence, claim), _sides(source, fact)
    return [
        (source_sides[family][1], word)
        for family, (side, word) in claim_sides.items()
        if family in source_sides
        and source_sides[family][0] != side
        and side >= 0
        and source_sides[family][0] >= 0
        and not (family == _PHASES and _of_other_times(sentence, source))
        and not is_the_lesser_end(_text(sentence, claim), word, _text(source, fact))
        and not (
            family in _CONVERSE and _is_the_other_side((sentence, claim, word), (source, fact, source_sides[family][1]))
        )
        and not (family in _ORDER and told_from_the_other_end(_text(sentence, claim), _text(source, fact)))
    ]


def _is_the_other_side(claim: tuple[FramedSentence, Frame, str], source: tuple[FramedSentence, Frame, str]) -> bool:
    """Whether a claim tells a deal from its other side: who buys, before its verb, is to whom the source says that it is sold."""
    mine, there = (
        next(place for place in range(each.first, each.last) if frame.tokens[place].low == word)
        for each, frame, word in (claim, source)
    )
    acting = {word for place, word in claim[0].stems if place < mine}
    return bool(acting) and acting <= {word for place, word in source[0].stems if place > there}


def _of_other_times(sentence: FramedSentence, source: FramedSentence) -> bool:
    """Whether two sentences date what they tell, and differently: a term that ends does not deny that it begins."""
    dates = [[value for value in each.values if value.moment is not None] for each in (sentence, source)]
    return any(dates) and not any(one.moment == other.moment for one in dates[0] for other in dates[1])


def _text(sentence: FramedSentence, frame: Frame) -> str:
    return " ".join(token.low for token in frame.tokens[sentence.first : sentence.last])


def _sides(sentence: FramedSentence, frame: Frame) -> dict[str, tuple[int, str]]:
    """Return the side that a sentence takes in each family of direction words, or -1 when it takes both."""
    sides: dict[str, tuple[int, str]] = {}
    for index in range(sentence.first, sentence.last):
        low = frame.tokens[index].low
        if low in DIRECTIONS:
            family, side = DIRECTIONS[low]
            seen = sides.get(family)
            sides[family] = (side, low) if seen is None or seen[0] == side else (-1, low)
    return sides
