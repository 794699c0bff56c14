"""Stripping: limits of a source, such as *may*, *if* and *mostly*, that a claim drops (SPEC-005 §5.3)."""

from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.alignment import Alignment, Edit, Element
from interlock.dpe.comparison.cues import CONTEXT_STRIPPED, Cue
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.comparison.hedges import CONDITIONS, STRICT, group_at, is_uncounted, kept
from interlock.dpe.comparison.polarity import AUXILIARIES, CERTAIN_COPY, framed, is_content
from interlock.dpe.comparison.reach import tells_alike
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.figures import APPROXIMATE
from interlock.dpe.values.frames import STOP, Frame, FramedSentence

_STRENGTHENERS = word_set(
    "will all always every definitely certainly completely fully is are was were has have had do does"
)
_AFTERWARDS = frozenset({"after", "afterwards", "afterward", "thereafter", "later", "then"})
_BEFORE = word_set("before once till til by first")
_CLOSING = word_set("close closes closing end ends ending finish finishes over")
_DUTIES = word_set(
    "must need needs needed require requires required requirement condition necessary obligatory mandatory"
)
_BOUNDS = frozenset({"most", "least"})
_OTHERWISE = frozenset({"otherwise", "else"})
_CONDITIONAL, _OFFICE = "conditional", "office"
_ROUNDING = frozenset({"nearly", "almost", "some"})


def stripped(sentence: FramedSentence, alignment: Alignment | None, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield a cue when a claim's sentence drops a limit of its source."""
    if alignment is not None and alignment.is_copy:
        keeps = kept(claim.tokens, (element.first for edit in alignment.edits for element in edit.claim))
        keeps |= _told_as_otherwise(sentence, claim) | _told_as_duty(sentence, claim, alignment.source, fact)
        for edit in alignment.edits:
            limits = _stripped_edit(edit, keeps, claim, fact)
            if _tells_what_comes_first(sentence, claim) or tells_alike((sentence, claim), (alignment.source, fact)):
                limits = [place for place in limits if edit.source[place].word != "until"]
            claim_words = _words(edit.claim)
            rounding = _rounds_value(edit, fact)
            if not limits or (rounding and any(word in APPROXIMATE for word in claim_words)):
                continue  # nearly 50 %, about 50 %
            shown = fact.written(edit.source[limits[0]].first, edit.source[-1].last)
            simple = not rounding and _only_limits(claim_words, limits, _words(edit.source))
            certain = (
                simple and alignment.copied >= CERTAIN_COPY and _is_alone(edit, alignment, replaced=bool(claim_words))
            )
            yield Cue(CONTEXT_STRIPPED, shown, " ".join(claim_words), certain=certain)
            return
    elif (source := framed(sentence, fact)) is not None:
        keeps = kept(claim.tokens, range(sentence.first, sentence.last)) | _told_as_otherwise(sentence, claim)
        keeps |= _told_as_duty(sentence, claim, source, fact)
        for index in range(source.first, source.last):
            group = group_at(fact.tokens, index)
            # *Former* limits the title behind it alone: who tells of a former owner by his name says nothing of what he owns.
            near = 1 if group == _OFFICE else 2
            scope = [stemmed for place, stemmed in source.stems if place > index][:near]
            uncounted = is_uncounted(fact.tokens, index) or _bounds_another(index, claim, fact)
            uncounted = uncounted or (
                fact.tokens[index].low == "until"
                and (_is_bounded(sentence, claim) or tells_alike((sentence, claim), (source, fact)))
            )
            uncounted = uncounted or _is_dated(index, fact)
            uncounted = uncounted or (
                fact.tokens[index].low == "subject" and any(each in sentence.bag for each in scope[:1])
            )
            if group not in {"", "bound", *keeps} and not uncounted and any(each in sentence.bag for each in scope):
                yield Cue(CONTEXT_STRIPPED, fact.tokens[index].low, "", certain=False)
                return


def _told_as_otherwise(sentence: FramedSentence, claim: Frame) -> frozenset[str]:
    """Return the limits that a claim tells by their other case: *cancel in time; otherwise it renews*."""
    said = {token.low for token in claim.tokens[sentence.first : sentence.last]}
    return frozenset({_CONDITIONAL}) if _OTHERWISE & said else frozenset()


def _told_as_duty(sentence: FramedSentence, claim: Frame, source: FramedSentence, fact: Frame) -> frozenset[str]:
    """Return the limits that a claim tells as what must be done: *lent if it is insured*, and *it must be insured*.

    A *must* of the source itself is what the limit limits: *guests must pay if they cancel*.
    """
    mine, its = (
        {token.low for token in frame.tokens[each.first : each.last]}
        for each, frame in ((sentence, claim), (source, fact))
    )
    asks = _DUTIES & mine and not _DUTIES & its
    return frozenset({_CONDITIONAL}) if asks else frozenset()


def _is_dated(index: int, fact: Frame) -> bool:
    """Whether a word is part of a date: the month of 14 May supposes nothing."""
    return any(value.moment is not None and value.first <= index < value.last for value in fact.values)


def _is_bounded(sentence: FramedSentence, claim: Frame) -> bool:
    """Whether a claim is about the time after a limit, *after that*, or tells the limit as an end, *it closes at 2 am*, or from before it."""
    said = [token.low for token in claim.tokens[sentence.first : sentence.last]]
    return _tells_what_comes_first(sentence, claim) or any(low in _AFTERWARDS | _CLOSING for low in said)


def _tells_what_comes_first(sentence: FramedSentence, claim: Frame) -> bool:
    """Whether a claim says *not before* an event, or opens with what comes *before* another: *before work starts, a survey is needed*."""
    said = [token.low for token in claim.tokens[sentence.first : sentence.last]]
    return "before" in said and (said[0] == "before" or any(map(is_negator, said)))


def _is_alone(edit: Edit, alignment: Alignment, *, replaced: bool) -> bool:
    """Whether an edit is the only one. If it *replaced* a word, the claim may leave others out."""
    others = (each for each in alignment.edits if each is not edit)
    return all(each.beyond or (replaced and not each.claim) for each in others)


def _stripped_edit(edit: Edit, keeps: frozenset[str], claim: Frame, fact: Frame) -> list[int]:
    """Return the indexes of the limits that an edit drops. A limit dropped with its scope does not count."""
    source_words = _words(edit.source)
    limits = [
        place
        for place, element in enumerate(edit.source)
        if group_at(fact.tokens, element.first) not in {"", *keeps}
        and not _is_dated(element.first, fact)
        and not _dropped_with_value(edit, place, fact)
        and not _bounds_another(element.first, claim, fact)
        and (edit.claim or not is_uncounted(fact.tokens, element.first))
    ]
    if not limits or (source_words[limits[0]] in CONDITIONS and limits[0] <= 1):
        return limits
    others = [place for place, word in enumerate(source_words) if is_content(word) and place not in limits]
    replaced = any(is_content(word) for word in _words(edit.claim))
    dropped = not replaced and any(place > limits[-1] for place in others)
    return [] if len(others) > 1 or dropped else limits


def _bounds_another(index: int, claim: Frame, fact: Frame) -> bool:
    """Whether a word is the *most* or *least* of a bound on a figure that the claim does not state: at most 12 replicas."""
    if fact.tokens[index].low not in _BOUNDS or index == 0 or fact.tokens[index - 1].low != "at":
        return False
    bounded = [value for value in fact.values if value.first in {index - 1, index, index + 1}]
    return bool(bounded) and not {value.amount for value in bounded} & {each.amount for each in claim.values}


def _dropped_with_value(edit: Edit, place: int, fact: Frame) -> bool:
    """Whether a rounding word was dropped together with its figure: (almost £17,000)."""
    rounds = fact.tokens[edit.source[place].first].low in _ROUNDING
    follows = edit.source[place + 1 : place + 2]
    return rounds and any(each.value for each in follows) and not any(each.value for each in edit.claim)


def _rounds_value(edit: Edit, fact: Frame) -> bool:
    """Whether an edit drops only words that round the next figure: nearly 50 %, some 300."""
    starts = {value.first for value in fact.values}
    return all(
        fact.tokens[each.first].low in _ROUNDING and each.last in starts for each in edit.source if each.value is None
    )


def _only_limits(claim_words: Sequence[str], limits: Sequence[int], source_words: Sequence[str]) -> bool:
    """Whether an edit drops only limits and function words, and adds no more than is, will or all."""
    if "can" in claim_words:
        return False  # may and could, rephrased
    if not claim_words and limits[0] == 0 and source_words[0] in STRICT:
        return True
    dropped = all(
        place in limits or word in AUXILIARIES or word in STOP or (word.endswith("ly") and place + 1 in limits)
        for place, word in enumerate(source_words)
    )
    return dropped and all(word in _STRENGTHENERS or word in AUXILIARIES or word in STOP for word in claim_words)


def _words(elements: Sequence[Element]) -> list[str]:
    return [element.word for element in elements]
