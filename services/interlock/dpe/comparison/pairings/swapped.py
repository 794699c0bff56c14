"""Swapped parties: an answer that ties to each of two what its sources tie to the other (SPEC-005 §5.3).

*Corvo bought the plums from its growers and sold most of them to Dulce, a jam maker* ties *growers* to Corvo and *jam* to Dulce. An
answer in which Dulce takes them from growers and Corvo makes jam has swapped the two, whatever verbs it uses and in however many
sentences. One word in the wrong place may be a word that fits both, so that both parties must have one of the other's, and few or none
of their own. What stands in the phrase of a party, such as its title, moves with it and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.stretches.ties import Tie
from interlock.dpe.text.wordlists import word_set

_LEAST = {FillerKind.NAME: 2, FillerKind.NOUN: 3}
"""Words that must have changed sides. Nouns are told apart less surely than names."""
_ACTING = ("er", "or", "ee", "ist", "ian", "ant", "man", "men", "woman", "women", "eur")
_ACTORS = word_set(
    "aunt uncle son cousin wife niece nephew boy girl child baby friend guest student pupil patient client nurse "
    "captain pilot chef cook guard judge jury landlord lord lady king queen prince duke count pope priest bishop "
    "mayor president minister secretary spouse bride groom host heir widow orphan twin partner team crew staff family "
    "couple police army company firm bank school university college hospital clinic court council city town state "
    "ministry government parliament agency authority board committee club union party church museum library shop "
    "store hotel restaurant airline insurer supplier customer association society foundation charity institute "
    "laboratory press court dog cat horse cow sheep alumnus alumni apprentice intern volunteer resident citizen "
    "neighbour neighbor tenant expert "
)
"""Nouns of those who can act, beside those that end as such do: of other things, a word that has changed sides says little."""
_FAR = 6
"""Steps from which a word of a sentence without the other party says nothing of the one."""
_NOWHERE = 99
_MOST_PAIRS = 400
_BOTH = 2


@dataclass(frozen=True)
class _Side:
    """To which of two parties a word is tied, 0 or 1, and whether it stands in that party's own phrase."""

    number: int
    inside: bool


Sides = Mapping[str, frozenset[_Side]]


@dataclass(frozen=True)
class _Sentences:
    """Sentences with a lookup of those that tell of a party."""

    all: Sequence[ReadSentence]

    @cached_property
    def _by_key(self) -> Mapping[str, frozenset[int]]:
        found: dict[str, set[int]] = {}
        for number, each in enumerate(self.all):
            for tie in each.ties.parties:
                for word in _keys(tie.party):
                    found.setdefault(word, set()).add(number)
        return {word: frozenset(numbers) for word, numbers in found.items()}

    def of(self, party: Filler) -> frozenset[int]:
        """Return the numbers of the sentences that may tell of a party."""
        return frozenset(n for word in _keys(party) for n in self._by_key.get(word, ()))

    def sides(self, pair: tuple[Filler, Filler]) -> Sides:
        """Return the words that are tied to one of two parties more than to the other, with the sides that they are on."""
        found: dict[str, set[_Side]] = {}
        for number in sorted(self.of(pair[0]) | self.of(pair[1])):
            for word, side in _sides(self.all[number], pair):
                found.setdefault(word, set()).add(side)
        return {word: frozenset(sides) for word, sides in found.items()}


def swapped(answer: Sequence[ReadSentence], evidence: Evidence) -> Iterator[tuple[ReadSentence, Misbinding]]:
    """Yield each sentence of an answer that swaps two parties of its sources, with what it swaps."""
    told, stated = _Sentences(answer), _Sentences(evidence.passages)
    for source, pair in islice(_pairs(told, evidence), _MOST_PAIRS):
        crossed = _crossed(told.sides(pair), stated.sides(pair))
        for each in answer if _is_swap(crossed, pair[0].kind, source.ties.names) else ():
            own = {word: side for word, side in _sides(each, pair) if crossed.moved.get(word) == side.number}
            if own:
                mine = min(side.number for side in own.values())
                yield each, Misbinding(
                    ENTITY_SUBSTITUTED, "party", pair[1 - mine].text, pair[mine].text, source.text, source.fact_id,
                    about=frozenset(own) | pair[mine].words,
                )  # fmt: skip


def _keys(party: Filler) -> frozenset[str]:
    return party.words if party.kind is FillerKind.NAME else frozenset({party.head})


def _pairs(told: _Sentences, evidence: Evidence) -> Iterator[tuple[ReadSentence, tuple[Filler, Filler]]]:
    """Yield two parties of one sentence of the sources, both of whom the answer tells of."""
    seen: set[frozenset[frozenset[str]]] = set()
    for source in evidence.passages:
        known = [tie.party for tie in source.ties.parties if told.of(tie.party)]
        for one, other in combinations(known, _BOTH):
            names = frozenset({one.words, other.words})
            if names not in seen and _are_two(one, other):
                seen.add(names)
                yield source, (one, other)


def _are_two(one: Filler, other: Filler) -> bool:
    apart = not one.words & other.all and not other.words & one.all
    acting = all(each.kind is FillerKind.NAME or can_act(each) for each in (one, other))
    return one.kind is other.kind and apart and acting and not {one.head, other.head} & GENERAL


def can_act(party: Filler) -> bool:
    """Whether a noun is of somebody who can act."""
    word = next(iter(party.text.casefold().split()[-1:]), "")
    return bool({word, word.removesuffix("s")} & _ACTORS) or word.removesuffix("s").endswith(_ACTING)


def _is(party: Filler, tie: Tie) -> bool:
    if party.kind is FillerKind.NAME:
        return bool(party.words & tie.party.words)
    return party.head == tie.party.head and not (party.words - tie.party.words and tie.party.words - party.words)


def _sides(sentence: ReadSentence, pair: tuple[Filler, Filler]) -> Iterator[tuple[str, _Side]]:
    """Yield each word of a sentence that is tied to one of two parties more than to the other, and each role of one alone."""
    own = [[tie for tie in sentence.ties.parties if _is(party, tie)] for party in pair]
    alone = not all(own)
    steps = [_nearest(ties) for ties in own]
    for word in (steps[0].keys() | steps[1].keys()) - pair[0].all - pair[1].all:
        near = [each.get(word, _NOWHERE) for each in steps]
        side = 0 if near[0] < near[1] else 1
        rival = min(_FAR, sentence.ties.pronouns.get(word, _NOWHERE)) if alone else max(near)
        if near[side] < rival:
            yield word, _Side(side, any(word in tie.inside for tie in own[side]))
    roles = [frozenset(role for tie in ties for role in tie.roles) for ties in own]
    for side in (0, 1):
        yield from ((role, _Side(side, inside=False)) for role in roles[side] - roles[1 - side])


def _nearest(ties: Sequence[Tie]) -> dict[str, int]:
    found: dict[str, int] = {}
    for tie in ties:
        for word, far in tie.steps.items():
            found[word] = min(far, found.get(word, far))
    return found


@dataclass(frozen=True)
class _Crossed:
    """The words that an answer ties to the other party, with the party that it ties them to, and those on the same side."""

    moved: Mapping[str, int]
    kept: frozenset[str]


def _crossed(claimed: Sides, stated: Sides) -> _Crossed:
    moved: dict[str, int] = {}
    kept: set[str] = set()
    for word in claimed.keys() & stated.keys():
        mine, its = ({side.number for side in sides[word]} for sides in (claimed, stated))
        if len(mine) > 1 or all(side.inside for side in claimed[word] | stated[word]):
            continue
        if mine <= its:
            kept.add(word)
        else:
            moved[word] = mine.pop()
    return _Crossed(moved, frozenset(word for word in kept if not word.endswith(":object")))


def _is_swap(crossed: _Crossed, kind: FillerKind, names: frozenset[str]) -> bool:
    """Whether enough words changed sides, in both directions: one that stayed is outweighed by one more that did not.

    A noun may be what somebody is called, *the yard* of Hansa, so that names alone say nothing of two nouns.
    """
    events = {(word.partition(":")[0], side) for word, side in crossed.moved.items()}
    kept = len({word.partition(":")[0] for word in crossed.kept} - {event for event, _ in events})
    telling = {side for word, side in events if kind is FillerKind.NAME or word not in names}
    return len(telling) == _BOTH and kept <= 1 and len(events) >= _LEAST[kind] + kept
