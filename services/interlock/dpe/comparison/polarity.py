"""Polarity: negation flips between a claim and its source (SPEC-005 §5.3). Dropped limits are in ``stripping.py``.

The words not and may are frequent, and paraphrases move them. A cue is therefore certain only where the claim copies
its source except for that cue. Every other cue is a suspicion that the NLI model must confirm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.comparison import denials
from interlock.dpe.comparison.alignment import Alignment, Edit, Element
from interlock.dpe.comparison.cues import NEGATION_FLIP, Cue
from interlock.dpe.comparison.denials import has_negator, is_negator
from interlock.dpe.comparison.order import is_the_lesser_end, told_from_the_other_end
from interlock.dpe.comparison.reach import PREFIXES, is_finite, negators_near, of_two_clauses, tells_alike, text_of
from interlock.dpe.text.lexing import WORD, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import DIRECTIONS, STOP, Frame, FramedSentence, coverage, stem
from interlock.dpe.values.quantities import Value, same

AUXILIARIES = word_set(
    "do does did is are was were be been being am has have had will would shall should can could may might must "
    "to of the a an any some all both longer yet ever"
)
_ADVERBS = {"up": "rose", "down": "fell"}
_JOINING = word_set("but and or although though while whereas because yet")
_CUTTING = frozenset({",", ";"})
_STANDING_IN = word_set("do does did")
_ENDING = word_set("end ends ended ending expire expires expired lapse lapses lapsed")
_ORDER = frozenset({"before", "after"})
_PHASES = "start"
_CONVERSE = frozenset({"buy", "win"})
"""What one does to another, and that one the opposite to him."""
_NOT_YET = frozenset({"yet", "still"})
_AWAITED = word_set(
    "need needs await awaits awaiting pending planned plans will yet still until scheduled expected proposed outstanding requested"
)
CERTAIN_COPY = 0.6
_MOST_TOLD = 2
_FRAME_AGREES = 0.75


def flips(sentence: FramedSentence, alignment: Alignment | None, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield a cue when a claim's sentence states the opposite of its source."""
    if (moved := _moved_otherwise(sentence, claim, fact)) is not None:
        yield moved
    elif alignment is not None and alignment.is_copy:
        if tells_alike((sentence, claim), (alignment.source, fact)):
            return
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
        negators_near(sentence, claim, source, fact),
        negators_near(source, fact, sentence, claim),
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
    if any(
        claim.tokens[place].low in _STANDING_IN and at(claim.tokens, place + 1).kind != WORD
        for place in range(sentence.first, sentence.last)
    ):
        return True
    said = [t.low for t in claim.tokens[sentence.first : sentence.last] if t.kind == WORD]
    finite = [n for n, low in enumerate(said) if is_finite(low)]
    return len(finite) == 1 and said[finite[0] + 1 :] in ([], ["not"])  # of four five were late; the last was not


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
        claim_words, marked = _marked(edit.claim, claim), _marked(edit.source, fact)
        source_words = marked if edit.claim else _without_absent(marked)
        if edit.beyond and (not any(word.denies for word in source_words) or _is_other_clause(edit, alignment, fact)):
            continue  # the claim was cut out of its source
        if not edit.source and _is_contrast(edit, claim):
            continue
        flip = _polarity_flip(claim_words, source_words if edit.beyond else _left(source_words))
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
    return [_Word(each.word, _denies(each, frame)) for each in elements]


def _without_absent(words: Sequence[_Word]) -> list[_Word]:
    """Return dropped words of which none denies that says only of another of them that it is missing: *saw that a bolt was missing and*."""
    told = next((n for n, each in enumerate(words) if _is_told(each)), len(words))
    return [
        replace(each, denies=each.denies and not (each.word in denials.ABSENT and n > told))
        for n, each in enumerate(words)
    ]


def _denies(element: Element, frame: Frame) -> bool:
    """Whether a word denies where it stands; of the two words of *don't*, the *do* does not."""
    contracted = is_negator(frame.tokens[element.first].low) and element.word != frame.tokens[element.first].low
    return is_negator(element.word) if contracted else denials.denies(frame.tokens, element.first)


def _is_contrast(edit: Edit, claim: Frame) -> bool:
    """Whether a claim only adds what something is not: *it has a shower, not a bath*. That is denied of the other word alone."""
    first = edit.claim[0].first if edit.claim else 0
    return first > 0 and claim.tokens[first].low == "not" and claim.tokens[first - 1].text == ","


def _is_other_clause(edit: Edit, alignment: Alignment, fact: Frame) -> bool:
    """Whether the source text beyond the claim is a separate clause: he needs rest, but will not be operated on."""
    opens = edit is alignment.edits[0] and edit.source[0].first == alignment.source.first
    if opens and edit.source[0].word == "without":
        return not any(denials.denies(fact.tokens, each.first) for each in edit.source[1:])  # without him they won
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
    if len(mine) > _MOST_TOLD or len(its) > _MOST_TOLD:
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


def _left(words: Sequence[_Word]) -> Sequence[_Word]:
    """Return of a phrase that is too long to be one edit what denies the words behind it: *on weekdays from nine to six, but not*."""
    told = [n for n, each in enumerate(words) if _is_told(each)]
    if len(told) <= _MOST_TOLD or not any(each.denies for each in words[told[-1] :]):
        return words
    return words[told[-1] + 1 :]


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
    return len(short) >= 4 and any(long == prefix + short for prefix in PREFIXES)


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
        and not of_two_clauses((sentence, claim, _place(sentence, claim, word)), (source, fact))
        and not (family == _PHASES and _of_other_times(sentence, source))
        and not is_the_lesser_end(text_of(sentence, claim), word, text_of(source, fact))
        and not (
            family in _CONVERSE and _is_the_other_side((sentence, claim, word), (source, fact, source_sides[family][1]))
        )
        and not (family in _ORDER and told_from_the_other_end(text_of(sentence, claim), text_of(source, fact)))
    ]


def _is_the_other_side(claim: tuple[FramedSentence, Frame, str], source: tuple[FramedSentence, Frame, str]) -> bool:
    """Whether a claim tells a deal from its other side: who buys, before its verb, is to whom the source says that it is sold."""
    mine, there = (_place(each, frame, word) for each, frame, word in (claim, source))
    acting = {word for place, word in claim[0].stems if place < mine}
    return bool(acting) and acting <= {word for place, word in source[0].stems if place > there}


def _of_other_times(sentence: FramedSentence, source: FramedSentence) -> bool:
    """Whether two sentences date what they tell, and differently: a term that ends does not deny that it begins."""
    dates = [[value for value in each.values if value.moment is not None] for each in (sentence, source)]
    return any(dates) and not any(one.moment == other.moment for one in dates[0] for other in dates[1])


def _place(sentence: FramedSentence, frame: Frame, word: str) -> int:
    return next(place for place in range(sentence.first, sentence.last) if frame.tokens[place].low == word)


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
