"""What the sources bind: the frames of the sentences that are evidence, and which of their fillers are surely two things."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, Likeness, key, own_words, same, shared_keys
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.groupings.group import Grouping
from interlock.dpe.comparison.groupings.measured import Measures
from interlock.dpe.comparison.groupings.voices import Voices
from interlock.dpe.text.wordlists import lines

_COMPARABLE = frozenset({FillerKind.NAME, FillerKind.NOUN})


def _counterparts() -> frozenset[frozenset[str]]:
    """Read the pairs of parties of one relation: landlord and tenant."""
    return frozenset(
        frozenset(map(key, pair.split("=")))
        for line in lines("counterparts.txt")
        for pair in line.split()
        if "=" in pair
    )


_COUNTERPARTS = _counterparts()
_YEAR = 4
_LEAST_SHARED, _MOSTLY = 2, 0.5
_SORTS = {
    "weekday": frozenset(map(key, ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])),
    "month": frozenset(
        map(
            key,
            [
                "january",
                "february",
                "march",
                "april",
                "may",
                "june",
                "july",
                "august",
                "september",
                "october",
                "november",
                "december",
            ],
        )
    ),
}


@dataclass(frozen=True)
class BoundFrame:
    """A frame of a source, the sentence that it stands in and the fact."""

    frame: PredicateFrame
    sentence: int
    fact_id: str


@dataclass(frozen=True)
class FillerLookup:
    """The numbers of fillers by their keys: which may be the same as one, without a comparison with each of them.

    An answer of four hundred sentences and sources of a thousand fillers have too many pairs to look at.
    """

    by_key: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, numbered: Iterable[tuple[int, Filler]]) -> FillerLookup:
        """Return the lookup of fillers, each given with its number."""
        found: dict[str, dict[int, None]] = {}
        for number, filler in numbered:
            for each in shared_keys(filler):
                found.setdefault(each, {})[number] = None
        return cls({each: tuple(numbers) for each, numbers in found.items()})

    def may_be(self, filler: Filler) -> list[int]:
        """Return the numbers of all fillers that are ``same`` as, or ``near``, this one, and of some that are not; in order."""
        return sorted({number for each in shared_keys(filler) for number in self.by_key.get(each, ())})


@dataclass(frozen=True)
class Evidence:
    """The sentences that are evidence on an answer, and their frames.

    ``steps`` are the numbered lists of the sources, ``groupings`` what they keep apart under labels, ``measures`` the figures of things,
    ``voices`` who says what.
    """

    passages: tuple[ReadSentence, ...]
    steps: tuple[tuple[ReadSentence, ...], ...] = ()
    groupings: tuple[Grouping, ...] = ()
    measures: tuple[Measures, ...] = ()
    voices: tuple[Voices, ...] = ()

    @cached_property
    def bound(self) -> tuple[BoundFrame, ...]:
        """The frames of all sentences."""
        return tuple(
            BoundFrame(frame, n, each.fact_id) for n, each in enumerate(self.passages) for frame in each.frames
        )

    @cached_property
    def _placed(self) -> tuple[tuple[int, int, str, Filler], ...]:
        """Return each filler with the numbers of its sentence and its frame, and its slot."""
        return tuple(
            (each.sentence, number, slot, filler)
            for number, each in enumerate(self.bound)
            for slot, filler in each.frame.all()
        )

    @cached_property
    def _by_filler(self) -> FillerLookup:
        return FillerLookup.of((number, place[3]) for number, place in enumerate(self._placed))

    def _places(self, filler: Filler) -> Iterator[tuple[int, int, str, Filler]]:
        """Yield the places whose filler may be the same as this one."""
        return (self._placed[number] for number in self._by_filler.may_be(filler))

    @cached_property
    def _equated(self) -> tuple[tuple[Filler, Filler], ...]:
        """The pairs that a sentence says are one thing: the agent and the role of *be*."""
        stated = (each.frame for each in self.bound if each.frame.predicate == predicates.BE and not each.frame.negated)
        return tuple(
            (a, r) for frame in stated for a in frame.slots.get("agent", ()) for r in frame.slots.get("role", ())
        )

    @cached_property
    def _by_equated(self) -> FillerLookup:
        return FillerLookup.of((number, filler) for number, pair in enumerate(self._equated) for filler in pair)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word of a filler or a predicate."""
        own = {word for _, _, _, filler in self._placed for word in filler.all}
        return frozenset(own | {each.frame.predicate for each in self.bound})

    def likeness(self, claimed: Sequence[Filler], stated: Sequence[Filler]) -> Likeness:
        """Compare the fillers of one slot. Some of a source's coordinated fillers are the same, more than they are not."""
        alike = [any(agree(c, s) for s in stated) for c in claimed]
        if all(alike):
            return Likeness.SAME
        if any(alike) or any(c.kind is FillerKind.UNKNOWN for c in (*claimed, *stated)):
            return Likeness.UNSURE
        return Likeness.APART if all(self.apart(c, s) for c in claimed for s in stated) else Likeness.UNSURE

    @staticmethod
    def slots_alike(claim: PredicateFrame, source: PredicateFrame, slots: Collection[str]) -> int:
        """Return in how many of these slots every filler of a claim is one of a source's: the part of ``likeness`` that is cheap."""
        return sum(all(any(agree(c, s) for s in source.slots[slot]) for c in claim.slots[slot]) for slot in slots)

    def apart(self, claimed: Filler, stated: Filler) -> bool:
        """Whether a claim's filler surely is another thing than a source's: the sources know both, and as two.

        A name is not told from a noun: the one may stand for the other.
        """
        if frozenset({claimed.head, stated.head}) in _COUNTERPARTS and not claimed.words & stated.words:
            return not self.linked(claimed, stated)
        if claimed.kind is not stated.kind or claimed.borrowed or stated.borrowed:
            return False
        if claimed.kind is FillerKind.TIME:
            return self._other_time(claimed, stated)
        return claimed.kind in _COMPARABLE and self._other_thing(claimed, stated)

    def _other_thing(self, claimed: Filler, stated: Filler) -> bool:
        mine, its = own_words(claimed, stated)
        if not mine or not its or self.linked(claimed, stated):
            return False
        if claimed.words & stated.deep or stated.words & claimed.deep:
            return self._of_a_series(claimed, stated, mine, its)
        known = [place for place in self._places(claimed) if agree(claimed, place[3]) and not same(place[3], stated)]
        if claimed.kind is FillerKind.NAME:
            return bool(known) and _are_two_names(claimed, stated) and not self.lies_in(claimed, stated)
        return any(self._told_apart(place, stated) for place in known)

    def _other_time(self, claimed: Filler, stated: Filler) -> bool:
        """Whether two times of one sort are different, and the sources know both: Monday and Thursday, 2019 and 2021."""
        sorts = {_sort(claimed), _sort(stated)}
        known = any(claimed.words == place[3].words for place in self._placed)
        return len(sorts) == 1 and "" not in sorts and not claimed.words & stated.words and known

    def _of_a_series(self, claimed: Filler, stated: Filler, mine: frozenset[str], its: frozenset[str]) -> bool:
        """Whether two fillers are two of one kind: *port 22* and *port 443*, *sales in Spain* and *sales in Italy*."""
        if claimed.head != stated.head and not (claimed.labels and stated.labels):
            return False
        known = any(agree(claimed, place[3]) and claimed.all <= place[3].all for place in self._places(claimed))
        named = mine <= claimed.proper and its <= stated.proper
        known = known or (named and mine <= self.words)
        labelled = bool(claimed.labels and stated.labels) and claimed.labels != stated.labels
        opposed = any(predicates.opposite(one, other) for one in mine for other in its)
        return known and (named or labelled or opposed or self._pairs_off(claimed, stated))

    def _pairs_off(self, claimed: Filler, stated: Filler) -> bool:
        """Whether like frames bind the two to different partners."""
        own = [place for place in self._places(claimed) if agree(claimed, place[3]) and not same(place[3], stated)]
        return any(self._told_apart(place, stated) for place in own)

    def _told_apart(self, known: tuple[int, int, str, Filler], stated: Filler) -> bool:
        """Whether the sources tell two nouns apart: as two slots of one frame, or in one slot of two like frames.

        A general noun may be another word for the other: *the lender sued Mr Hale, and the bank won*.
        """
        mine, frame = known[3], self.bound[known[1]].frame
        general = mine.head != stated.head and (_is_general(mine) or _is_general(stated))
        if mine.borrowed or general:
            return False
        for sentence, number, slot, filler in self._places(stated):
            if (number, slot) == known[1:3] or filler.borrowed or not same(filler, stated):
                continue
            if (
                number == known[1]
                and frame.predicate != predicates.BE
                and not mine.words & stated.all
                and not stated.words & mine.all
            ):
                return True
            if number != known[1] and slot == known[2] and self._parallel(frame, self.bound[number].frame, slot):
                return True
            if sentence == known[0] and number != known[1] and _side_by_side(frame, self.bound[number].frame):
                return True
        return False

    def _parallel(self, one: PredicateFrame, other: PredicateFrame, slot: str) -> bool:
        """Whether two frames say the same, or the opposite, of different partners."""
        if predicates.opposite(one.predicate, other.predicate):
            return True
        if not predicates.alike(one.predicate, other.predicate):
            return False
        others = one.slots.keys() & other.slots.keys() - {slot}
        return any(not any(same(f, g) for f in one.slots[each] for g in other.slots[each]) for each in others)

    def linked(self, one: Filler, other: Filler) -> bool:
        """Whether a source says that two fillers are one thing."""
        pairs = (self._equated[number] for number in self._by_equated.may_be(one))
        return any((near(a, one) and near(r, other)) or (near(a, other) and near(r, one)) for a, r in pairs)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple(each.text.casefold() for each in self.passages)

    def lies_in(self, one: Filler, other: Filler) -> bool:
        """Whether a source names one of two places right behind the other, as that which it lies in: *Lyon, France*; no list of both."""
        names = one.text.casefold(), other.text.casefold()
        written = [f"{a}{joint}{b}" for a, b in (names, names[::-1]) for joint in (", ", " (", " in ")]
        return any(
            each in text and not text.partition(each)[2].startswith((",", " and ", " or ", " & "))
            for text in self._texts
            for each in written
        )

    def together(self, one: Filler, other: Filler, rival: BoundFrame) -> bool:
        """Whether a frame of another predicate and sentence than *rival* has both fillers, so that it may say what a claim says."""
        for each in self.bound:
            if predicates.alike(each.frame.predicate, rival.frame.predicate) or each.sentence == rival.sentence:
                continue
            own = [filler for _, filler in each.frame.all()]
            if any(near(f, one) for f in own) and any(near(f, other) for f in own):
                return True
        return False

    def agrees(self, claim: PredicateFrame, source: PredicateFrame) -> bool:
        """Whether a source's frame is of the predicate of a claim's and has the same fillers, as far as both are filled."""
        if not predicates.alike(claim.predicate, source.predicate):
            return False
        shared = claim.slots.keys() & source.slots.keys()
        if not self.slots_alike(claim, source, shared):
            return False
        found = [self.likeness(claim.slots[slot], source.slots[slot]) for slot in shared]
        return Likeness.SAME in found and Likeness.APART not in found

    def alike(self, frame: PredicateFrame) -> Iterator[BoundFrame]:
        """Yield the frames with a predicate of the same meaning."""
        return (each for each in self.bound if predicates.alike(each.frame.predicate, frame.predicate))

    def opposite(self, frame: PredicateFrame) -> Iterator[BoundFrame]:
        """Yield the frames with an opposite predicate."""
        return (each for each in self.bound if predicates.opposite(each.frame.predicate, frame.predicate))


def _is_general(filler: Filler) -> bool:
    return filler.head in GENERAL and filler.words == {filler.head}


def _side_by_side(one: PredicateFrame, other: PredicateFrame) -> bool:
    """Whether two frames of one sentence are of coordinated clauses, each with a subject of its own."""
    return bool(one.clause) and bool(other.clause) and one.clause != other.clause and one.level == other.level


def _sort(time: Filler) -> str:
    """Return of which sort a time is: a weekday, a month or a year; empty for any other."""
    for sort, words in _SORTS.items():
        if time.words and time.words <= words:
            return sort
    return "year" if time.words and all(w.isdigit() and len(w) == _YEAR for w in time.words) else ""


def agree(claimed: Filler, stated: Filler) -> bool:
    """Whether two fillers are the same, and so are the amounts that both state."""
    return same(claimed, stated) and (not claimed.amount or not stated.amount or claimed.amount == stated.amount)


def near(one: Filler, other: Filler) -> bool:
    return (
        same(one, other) or bool(one.words and one.words <= other.all) or bool(other.words and other.words <= one.all)
    )


def _are_two_names(one: Filler, other: Filler) -> bool:
    """Whether two names share no word but what a series shares, and neither is the other's initials."""
    if one.labels and other.labels:
        return one.labels != other.labels
    return not one.words & other.words and not _abbreviates(one, other) and not _abbreviates(other, one)


def _abbreviates(short: Filler, long: Filler) -> bool:
    letters = "".join(sorted(short.text.replace(".", "").lower()))
    initials = "".join(sorted(word[0].lower() for word in long.text.split() if word[:1].isupper()))
    return 2 <= len(letters) <= 6 and (letters == initials or short.text.lower() in long.text.lower())


def about(claim: ReadSentence, evidence: Evidence) -> ReadSentence | None:
    """Return the one sentence of the sources that a claim follows more closely than any other, or ``None``."""
    said = claim.bag
    ranked = sorted(
        ((len(said & each.bag), n) for n, each in enumerate(evidence.passages) if "|" not in each.text), reverse=True
    )
    if not ranked or not _is_close(said, evidence.passages[ranked[0][1]].bag):
        return None
    best = evidence.passages[ranked[0][1]]
    rivals = (evidence.passages[n] for count, n in ranked[1:] if count == ranked[0][0])
    return best if all(each.text == best.text for each in rivals) else None


def _is_close(said: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether a claim is of a source's sentence: of a short one, all of it, or a figure or a time that both have."""
    shared = said & stated
    if len(shared) < _LEAST_SHARED:
        return bool(shared) and (shared == said or any(c.isdigit() for word in shared for c in word))
    return len(shared) >= _MOSTLY * len(said)
