"""Traded words: a claim that puts two words together that its source keeps in two parts of one sentence (SPEC-005 §5.3).

*Women swim on Mondays and men on Wednesdays* keeps *men* and *Mondays* apart: each has a word of the other's sort beside it. A claim
with both of them, and with neither of those, has traded one for the other, whatever verb it uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.stretches.parts import EVENT, NAME, NOUN, POLARITY, WEEKDAY, Bead, Stretch
from interlock.dpe.comparison.cues import DATE_SHIFTED, NUMBER_CHANGED
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.quantities import DATE

_SAID = frozenset({NOUN, EVENT})
_OF_ALL = pattern(r"\b(?:all|every\w*|each|any\w*|always|no|none|not|never|both)\b|n't\b", ignore_case=True)
_SHARES = word_set("half third quarter most majority minority rest few many dozen")
_ALIGNING = "respectively"
_LEAST = 2
_MOSTLY = 0.6
_LONGEST_LEAD = 4


def traded(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the word that *claim* puts beside one of another part of its source, or ``None``."""
    parts = [part for part in claim.parted.parts if part.beads and not part.limited]
    for source in evidence.passages:
        if _ALIGNING in source.text.casefold():
            continue  # which word stands with which is not read from the stretches there
        for one, other in source.parted.halves:
            own = _shared_out(one, other) if other.elliptic and not _OF_ALL.search(claim.text) else one
            traded_words = ((part, _traded(part, own, other)) for part in parts)
            found = [(part, each) for part, each in traded_words if each is not None and not _is_led(each, source)]
            for part, each in found:
                told_apart = {
                    bead.sense for bead in each[2:]
                } & claim.senses  # the other half is told too, of something else
                told_rightly = bool(told_apart) or _is_told_rightly(each, claim, one, other)
                sure = len(found) > 1 or (_is_close(each, part, source) and not told_rightly)
                if sure and not _is_told(each, source, evidence):
                    return _finding(each, source, part)
    return None


def _is_told_rightly(found: tuple[Bead, ...], claim: ReadSentence, one: Stretch, other: Stretch) -> bool:
    """Whether a claim has a figure of one half beside words of that half alone: *Mr Ito, in bed 6, got what was meant for bed 9*."""
    first, second = one.senses - other.senses, other.senses - one.senses
    figures = (b for b in found[2:] if b.sort not in _SAID | {NAME, POLARITY})
    sides = [(b.sense, first, second) if b is found[2] else (b.sense, second, first) for b in figures]
    return any(
        each in said and bool(said & own - {each}) and not said & others
        for said in _said_together(claim)
        for each, own, others in sides
    )


def _said_together(claim: ReadSentence) -> Iterator[frozenset[str]]:
    """Yield the senses of the parts of a claim, those without a verb with those of the part before."""
    said: frozenset[str] = frozenset()
    for part in claim.parted.parts:
        if part.polarity and said:
            yield said
            said = frozenset()
        said |= part.senses
    yield said


def _shared_out(one: Stretch, other: Stretch) -> Stretch:
    """Return a first half without what an auxiliary of the other stands for: *line 31 has a ramp, and on line 33 half do*.

    Of *all* on line 33 it does not: the other half says how many do.
    """
    named = any(b.sort in _SAID and b.sense not in one.senses and b.text.lower() not in _SHARES for b in other.beads)
    kept = one.led if named else frozenset(b.sense for b in one.beads if b.sense in one.led and b.sort not in _SAID)
    return replace(one, beads=tuple(b for b in one.beads if b.sense in kept | other.senses))


def _is_led(found: tuple[Bead, ...], source: ReadSentence) -> bool:
    """Whether a word stands in the lead of a line, to which all parts of the line belong: *Listing A: 2 rooms, rent 870*."""
    lead, colon, _ = source.text.partition(":")
    words = lead.casefold().split()
    return (
        bool(colon)
        and len(words) <= _LONGEST_LEAD
        and any(set(bead.text.casefold().split()) <= set(words) for bead in found[:2])
    )


def _traded(part: Stretch, one: Stretch, other: Stretch) -> tuple[Bead, Bead, Bead, Bead] | None:
    """Return a word of each half that a part has, and those in whose places they stand; of one half first, then of the other."""
    if not part.senses & (one.senses | other.senses):
        return None
    first, second = list(_exclusive(_own(one, other), other)), list(_own(other, one))
    senses = part.senses
    if one.polarity and part.polarity:  # the halves say yes and no of two things
        first, second = [*first, _side(one)], [*second, _side(other)]
        senses = senses | {part.polarity}
    elif part.polarity == "-":
        return None
    mine = [bead for bead in first if bead.sense in senses]
    its = [bead for bead in second if bead.sense in senses]
    if not mine or not its or {b.sort for b in mine} & {b.sort for b in its}:
        return None
    for x in mine:
        for y in its:
            if {x.sort, y.sort} <= _SAID or not (_same_sort(x, part) and _same_sort(y, part)):
                continue
            left, right = _rival(x, second, senses), _rival(y, first, senses)
            if left is None or right is None or _is_denied_there(x, one, part) or _is_denied_there(y, other, part):
                continue
            if _acts(left, y, other) and _acts(right, x, one):
                return x, y, right, left
    return None


def _acts(rival: Bead, beside: Bead, half: Stretch) -> bool:
    """Whether a name stands before the event of its half, as who acts in it. Behind it, another noun does: *the pair met Lund*."""
    if rival.sort != NAME or beside.sort != EVENT:
        return True
    return half.beads.index(rival) < half.beads.index(beside)


def _is_denied_there(bead: Bead, half: Stretch, part: Stretch) -> bool:
    """Whether a half says that an event did not take place, of which a part says that it did: *2 gave no reason*, and *given by 7*."""
    return bead.sort == EVENT and half.denied and not part.denied and part.polarity != "-"


def _side(half: Stretch) -> Bead:
    return Bead(half.polarity, POLARITY, half.polarity)


def _own(part: Stretch, other: Stretch) -> Iterator[Bead]:
    return (bead for bead in part.beads if bead.sense not in other.senses)


def _exclusive(beads: Iterable[Bead], after: Stretch) -> Iterator[Bead]:
    """Yield the words of a first half that a pronoun or a missing subject of the second cannot stand for."""
    for bead in beads:
        if bead.sort in {NAME, NOUN} and (after.carried or (after.bare and not after.gapped)):
            continue
        if bead.sort == NOUN and after.pointing:
            continue
        yield bead


def _same_sort(bead: Bead, part: Stretch) -> bool:
    if bead.sort == POLARITY:
        return True
    sorts = {each.sort for each in part.beads if each.sense == bead.sense}
    return bead.sort in sorts or (bead.sort in _SAID and bool(sorts & _SAID))


def _rival(bead: Bead, among: list[Bead], senses: frozenset[str]) -> Bead | None:
    """Return the word of the same sort that stands in another half where a word does in its own; ``None`` with one of the claim's."""
    alike = [each for each in among if each.sort == bead.sort]
    if not alike or any(each.sense in senses for each in alike):
        return None
    return max(alike, key=lambda each: len(each.text.split()))


def _is_close(found: tuple[Bead, ...], part: Stretch, source: ReadSentence) -> bool:
    """Whether a part says little else than its source where only a *not* is on the other side: much may be so of one thing."""
    if all(bead.sort != POLARITY for bead in found):
        return True
    shared = part.senses & frozenset(sense for each in source.parted.parts for sense in each.senses)
    return len(shared) >= _LEAST and len(shared) >= _MOSTLY * len(part.senses)


def _is_told(found: tuple[Bead, ...], source: ReadSentence, evidence: Evidence) -> bool:
    """Whether a part of a source, or another sentence, has both words."""
    both = {bead.sense for bead in found[:2] if bead.sort != POLARITY}
    if len(both) == 1:
        return False  # the source says yes of the one and no of the other itself
    if any(both <= part.senses for part in source.parted.parts):
        return True
    return any(
        both <= each.bag | each.content | frozenset(s for part in each.parted.parts for s in part.senses)
        for each in evidence.passages
        if each is not source
    )


def _finding(found: tuple[Bead, Bead, Bead, Bead], source: ReadSentence, part: Stretch) -> Misbinding:
    x, y, beside_x, beside_y = found
    if POLARITY in {x.sort, y.sort}:
        turned = y if x.sort == POLARITY else x
        sides = ("not ", "") if part.polarity == "+" else ("", "not ")
        return Misbinding(
            NEGATION_FLIP, "predicate", sides[0] + turned.text, sides[1] + turned.text, source.text, source.fact_id,
            about=part.senses,
        )  # fmt: skip
    claimed, stated = (x, beside_y) if x.sort not in _SAID else (y, beside_x)
    if claimed.sort == NAME:
        return Misbinding(
            ENTITY_SUBSTITUTED, "partner", stated.text, claimed.text, source.text, source.fact_id, about=part.senses
        )
    kind = DATE_SHIFTED if claimed.sort == WEEKDAY or claimed.sort.startswith(DATE) else NUMBER_CHANGED
    return Misbinding(kind, "value", stated.text, claimed.text, source.text, source.fact_id, about=part.senses)
