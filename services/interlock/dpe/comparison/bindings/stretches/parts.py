"""Parts: the stretches of a sentence that say something of different things, each with the words that are its own.

*The fridge was lent by Nordfrost, and the van was given by the club* has two parts. Which word stands with which is read from the
stretches alone, so that it does not depend on the predicate that a claim chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.moods import PASSIVE_SUBJECTS, SUBJECTS
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP
from interlock.dpe.values.quantities import DATE, MONEY, NUMBER, ORDINAL, Value

_STRONG = word_set("; but while whereas though although")
_WEAK = word_set(", and or which who whom whose :")
_OPENING = frozenset({"ADP", "SCONJ", "ADV"})
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_TITLES = word_set("mr mrs ms dr prof sir")
_GENERAL = word_set("day week month year hour minute time people thing part way number")
_POINTING = word_set("he she it they him her them his its their this these that those one ones")
_SUBJECTS_OF = word_set("he she it they his its their")
_RELATIVE = word_set("who which that")
_DENYING = word_set(
    "not n't never no nor none neither cannot nobody nothing forbidden banned prohibited excluded exempt exempted spared "
    "unaffected waived"
)
_LEAVING = word_set("leave rule")
_LIMITING = word_set("without if unless than rather instead unlike except only both even hardly barely longer")
_RANGING = word_set("to – -")
_EVERYTHING = word_set("anything everything nothing anyone everyone anybody everybody nobody all none any every")
_OF_THEM = word_set("of among amongst between")
_COUNTING = frozenset({"more", "less", "fewer"})
_FARTHEST = 4  # words between a figure and the comparative that it measures
_FINITE = frozenset({"VBZ", "VBP", "VBD", "MD", "VB"})
_AUXILIARIES = word_set("do does did are is was were have has had can could will would must may should might")
_LONGEST = 60
_MOST_CUTS = 8

NAME, NOUN, EVENT, WEEKDAY, POLARITY = "name", "noun", "event", "weekday", "polarity"


@dataclass(frozen=True)
class Bead:
    """A word or value of a part: its sense, how it is written, and its sort. Only what is of one sort can trade places.

    ``sort`` is name, noun, event, weekday, or the kind of a value with its unit.
    """

    sense: str
    sort: str
    text: str


@dataclass(frozen=True)
class Stretch:
    """A stretch of a sentence. ``limited``: it compares or supposes. ``bare``: its verb has no subject in it.

    ``carried``: a pronoun that acts or owns in it may stand for anything before it, and ``pointing``: so may any other.
    ``polarity`` is + or -, empty where that is left to the part before. ``gapped``: it leaves out what it shares with that.
    ``elliptic``: an auxiliary stands in it for the verb of the part before and all that follows that. ``led``: the senses before its verb.
    ``denied``: a word in it says no, whatever it denies.
    """

    beads: tuple[Bead, ...]
    limited: bool = False
    polarity: str = ""
    gapped: bool = False
    bare: bool = False
    carried: bool = False
    pointing: bool = False
    elliptic: bool = False
    led: frozenset[str] = frozenset()
    denied: bool = False

    @cached_property
    def senses(self) -> frozenset[str]:
        """The senses of its words."""
        return frozenset(bead.sense for bead in self.beads)


@dataclass(frozen=True)
class Parted:
    """A sentence cut into its parts, and each way to cut it into two."""

    parts: tuple[Stretch, ...] = ()
    halves: tuple[tuple[Stretch, Stretch], ...] = ()


WHOLE = Parted()
"""What is not cut: a record, whose fields stand beside each other without being parts of a sentence."""


def parted(sentence: Any) -> Parted:
    """Return the parts of a parsed sentence, a spaCy span; none of one that is too long for prose, or a row of a table."""
    tokens = [t for t in sentence if not t.is_space]
    if not 0 < len(tokens) <= _LONGEST or "|" in sentence.text or not any(t.tag_ in _FINITE for t in tokens):
        return WHOLE
    cuts = _cuts(tokens)
    if len(cuts) > _MOST_CUTS:
        return WHOLE
    beads = _beads(tokens, sentence)
    edges = [0, *cuts, len(tokens)]
    strong = [0, *(n for n in cuts if _is_strong(tokens[n : n + 2])), len(tokens)]
    spans = [(max(n for n in strong if n < cut), cut, min(n for n in strong if n > cut)) for cut in cuts]
    return Parted(
        tuple(_listed([_part(tokens, beads, a, b) for a, b in pairwise(edges)])),
        tuple(
            _aligned(_part(tokens, _unshared(tokens, beads, *span), *span[:2]), _part(tokens, beads, *span[1:]))
            for span in spans
        ),
    )


def _unshared(
    tokens: Sequence[Any], beads: Sequence[Bead | None], first: int, cut: int, last: int
) -> list[Bead | None]:
    """Return the words of a sentence without those in front of a cut that belong to what stands behind it as well.

    *Of the 12 guests, 7 left and 5 stayed* counts all of them among the 12, and *the clock that her uncle had made in 1880* was made then.
    """
    shared = set(range(first, _end_of_whole(tokens, first, cut)))
    for token in tokens[cut:last]:
        head = token.head
        while token.dep_ == "relcl" and head.dep_ in {"compound", "nmod"}:
            head = head.head
        if token.dep_ == "relcl" and head.i < tokens[cut].i:
            near = {head.i, *(c.i for c in head.children if c.dep_ in {"compound", "amod", "nmod"})}
            shared |= {n for n in range(first, cut) if tokens[n].i in near}
    return [None if n in shared else bead for n, bead in enumerate(beads)]


def _end_of_whole(tokens: Sequence[Any], first: int, cut: int) -> int:
    """Return where that of which a stretch counts parts ends, or its beginning where it counts none: *of the 12 guests,*."""
    if tokens[first].lower_ not in _OF_THEM:
        return first
    return next((n for n in range(first, cut) if tokens[n].text == ","), first)


def _listed(parts: Sequence[Stretch]) -> Iterator[Stretch]:
    """Yield parts, of which one that goes on with a list tells nothing by itself: *Finn and | Holm fill bags*."""
    opened = False
    for part in parts:
        yield replace(part, limited=True) if opened else part
        opened = bool(part.beads) and not part.polarity and all(bead.sort in {NAME, NOUN} for bead in part.beads)


def _aligned(one: Stretch, other: Stretch) -> tuple[Stretch, Stretch]:
    """Return two halves, the first with those words only that the second has others for, where the second leaves some out.

    In *the hall is open to women on Mondays and to men on Wednesdays* the hall belongs to both.
    """
    if not other.gapped:
        return replace(one, polarity=""), replace(other, polarity="")
    kept: list[Bead] = []
    left = list(one.beads)
    forward = not other.bare and not any(
        b.sort not in {NAME, NOUN} for b in other.beads
    )  # hens may be kept, cockerels may not
    for bead in other.beads if forward else reversed(other.beads):
        while left:
            candidate = left.pop(0 if forward else -1)
            if candidate.sort == bead.sort:
                kept.append(candidate)
                break
    told = one.polarity and other.polarity and one.polarity != other.polarity and not (one.limited or other.limited)
    sides = (one.polarity, other.polarity) if told else ("", "")
    return replace(one, beads=tuple(kept), polarity=sides[0]), replace(other, polarity=sides[1])


def _is_strong(tokens: Sequence[Any]) -> bool:
    """Whether a cut sets what follows against what comes before: *;*, *while*, *, but*."""
    return any(t.lower_ in _STRONG for t in tokens)


def _cuts(tokens: Sequence[Any]) -> list[int]:
    """Return where the parts begin. A comma behind what only opens its sentence cuts nothing: *On Mondays, men swim*."""
    cuts: list[int] = []
    for n, token in enumerate(tokens[1:], 1):
        joins = token.lower_ in _STRONG | _WEAK or token.text in {"(", ")"}
        if not joins or (cuts and n - cuts[-1] == 1):
            continue
        since = cuts[-1] if cuts else 0
        own = tokens[since:n]
        opens = own[0].pos_ in _OPENING and not any(t.pos_ in {"VERB", "AUX"} for t in own)
        between = token.lower_ == "and" and any(t.lower_ == "between" for t in own)
        cleft = token.lower_ in _RELATIVE and own[0].lower_ == "it" and own[1:2] and own[1].lemma_ == "be"
        labels = token.text == ":" and n + 1 < len(tokens) and tokens[n + 1].like_num  # adopted: 91
        excepts = token.lower_ == "but" and own[-1].lower_ in _EVERYTHING
        measures = token.text == "," and _compares(tokens, n + 1)
        if not (between or cleft or labels or excepts or measures) and not (token.text == "," and opens):
            cuts.append(n)
    return cuts


def _compares(tokens: Sequence[Any], n: int) -> bool:
    """Whether a figure tells only by how much what stands before it differs: *it takes 52 minutes, six minutes less than now*."""
    if n >= len(tokens) or not (tokens[n].like_num or tokens[n].lower_ in {"a", "an", "half"}):
        return False
    for place in range(n + 1, min(n + 1 + _FARTHEST, len(tokens))):
        if tokens[place].tag_ in {"JJR", "RBR"}:
            than = place + 1 < len(tokens) and tokens[place + 1].lower_ == "than"
            return than or tokens[place].lower_ not in _COUNTING
        if tokens[place].pos_ in {"VERB", "AUX"} or tokens[place].is_punct:
            return False
    return False


def _part(tokens: Sequence[Any], beads: Sequence[Bead | None], first: int, last: int) -> Stretch:
    own = tokens[first:last]
    lows = {t.lower_ for t in own}
    subject = any(t.dep_ in SUBJECTS | PASSIVE_SUBJECTS and t.lower_ not in _RELATIVE for t in own)
    verbs = [t for t in own if t.pos_ in {"VERB", "AUX"}]
    said = [t for t in own if not t.is_punct]
    cut_short = bool(said) and (said[-1].pos_ == "AUX" or said[-1].lower_ in {"not", "n't"})
    left_out = {"VB", "VBN"} if "but" in lows else {"VBN"}  # but not exchange; a bare verb after *and* is a request
    remnant = not subject and all(t.tag_ in left_out and t.pos_ == "VERB" for t in verbs)
    denied = sum(t.lower_ in _DENYING or _is_out(t) for t in own)
    return Stretch(
        tuple(dict.fromkeys(bead for bead in beads[first:last] if bead is not None)),
        limited=bool(lows & _LIMITING) or denied > 1 or _excepts(own),
        polarity="-" if denied else "+" if verbs or "but" in lows else "",
        gapped=cut_short or remnant,
        elliptic=any(map(_stands_alone, own, [*own[1:], None])),
        led=frozenset(bead.sense for bead in beads[first : first + _before_verb(own)] if bead is not None),
        bare=bool(verbs) and not _has_own_subject(own, verbs),
        carried=bool(lows & _SUBJECTS_OF),
        pointing=bool(lows & _POINTING),
        denied=bool(denied),
    )


def _is_out(verb: Any) -> bool:
    """Whether a verb says that a thing is not had: *it was left out*, *such trips are ruled out*."""
    return verb.lemma_.lower() in _LEAVING and any(c.lower_ == "out" and c.i > verb.i for c in verb.children)


def _excepts(own: Sequence[Any]) -> bool:
    """Whether a part says something of all but a few: *anything but records*."""
    return any(a.lower_ in _EVERYTHING and b.lower_ == "but" for a, b in pairwise(own))


def _stands_alone(token: Any, following: Any) -> bool:
    """Whether an auxiliary stands for all that the part before says: *if more than 5 % are, it ends*, *on line 33 half do*."""
    ends = following is None or following.is_punct
    return ends and (token.pos_ == "AUX" or token.lower_ in _AUXILIARIES)


def _before_verb(own: Sequence[Any]) -> int:
    return next((n for n, t in enumerate(own) if t.pos_ in {"VERB", "AUX"}), len(own))


def _has_own_subject(own: Sequence[Any], verbs: Sequence[Any]) -> bool:
    """Whether the first clause of a part has its subject in it."""
    first = next((t for t in verbs if t.dep_ not in {"aux", "auxpass"}), verbs[0])
    inside = {t.i for t in own}
    return any(
        c.dep_ in SUBJECTS | PASSIVE_SUBJECTS and c.i in inside and c.lower_ not in _RELATIVE for c in first.children
    )


def _beads(tokens: Sequence[Any], sentence: Any) -> list[Bead | None]:
    """Return what each token adds to its part; nothing for the words of a value but its first."""
    found = [_bead(token) for token in tokens]
    for value in read(sentence.text).values:
        inside = [n for n, t in enumerate(tokens) if value.start <= t.idx - sentence.start_char < value.end]
        for n in inside:
            found[n] = None
        if inside and not (value.vague or value.label or value.kind == ORDINAL) and not _is_range(tokens, inside):
            found[inside[0]] = _of_value(value)
    return found


def _of_value(value: Value) -> Bead:
    if value.moment is not None:
        return Bead(str(value.moment), DATE + ("" if value.moment.years else ":part"), value.text)
    unit = "" if value.kind in {MONEY, NUMBER} else value.unit
    return Bead(f"{value.amount:g} {value.unit}", f"{value.kind}:{unit}", value.text)


def _is_range(tokens: Sequence[Any], inside: Sequence[int]) -> bool:
    """Whether a figure is an end of a range: *aged 8 to 18*."""
    after, before = tokens[inside[-1] + 1 : inside[-1] + 3], tokens[max(inside[0] - 2, 0) : inside[0]][::-1]
    return any(len(side) == 2 and side[0].lower_ in _RANGING and side[1].like_num for side in (after, before))


def _bead(token: Any) -> Bead | None:
    low = token.lower_.removesuffix("s")
    if low in _WEEKDAYS:
        return Bead(low, WEEKDAY, token.text)
    if low == "free" and token.pos_ in {"ADJ", "ADV"} and not any(c.dep_ == "prep" for c in token.children):
        return Bead("0", f"{MONEY}:", token.text)
    if token.lower_ in STOP | _GENERAL or token.lower_.strip(".") in _TITLES or len(low) < 2:
        return None
    if token.pos_ == "PROPN":
        return Bead(key_of(token), NAME, _name(token))
    if token.pos_ == "NOUN":
        return Bead(sense(token), NOUN, token.text) if not _is_rate(token) else None
    plain = token.pos_ == "VERB" and token.lemma_.lower() not in predicates.LIGHT | predicates.REPORTING
    return Bead(sense(token), EVENT, token.text) if plain else None


def _name(token: Any) -> str:
    """Return the whole of a name that a token is part of."""
    first = last = token.i
    while first > token.sent.start and token.doc[first - 1].pos_ == "PROPN":
        first -= 1
    while last + 1 < token.sent.end and token.doc[last + 1].pos_ == "PROPN":
        last += 1
    return str(token.doc[first : last + 1].text)


def _is_rate(token: Any) -> bool:
    """Whether a noun is what a figure is for each of: *£12 a visit*, *per visit*, or counts nothing by itself."""
    return token.dep_ == "npadvmod" or (token.dep_ == "pobj" and token.head.lower_ == "per") or token.lemma_ in _GENERAL
