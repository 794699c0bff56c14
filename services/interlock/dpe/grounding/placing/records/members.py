"""Members: what a sentence or a list of an answer counts among the members of a source's list, and what is none of them (SPEC-005 §5.3).

*The shop takes cash, cheques and vouchers* beside ``accepted: [cash, vouchers]``. Leaving a member out is no fault; a stranger among
members is one, where it stands in the row with them, and where nothing else that the sources say puts it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.grounding.placing.records.words import RecordWord, content
from interlock.dpe.grounding.placing.words import alike
from interlock.dpe.text.wordlists import word_set

_JOINS = word_set("and or & plus")
_MOST_WORDS = 3
_LEAST_MEMBERS = 2
_REST = word_set("more other others else etc so on similar various such further another like also too either then both")
_VERBS = word_set(
    "is are was were has have had does do can may must will covers takes accepts includes offers runs allows"
)
_OPENING = word_set("in for on at with during from as since after before by to of")
_LEAST_LEAD = 4


@dataclass(frozen=True)
class _Chunk:
    """What stands between two joins: its words, and whether it is one of the members."""

    tokens: tuple[RecordWord, ...]
    member: int | None


def strangers(found: Sequence[RecordWord], items: Sequence[str]) -> list[str]:
    """Return what a text counts among *items* and that is none of them."""
    stems = [content(each) for each in items]
    chunks = [_Chunk(part, _member(part, stems)) for part in _chunks(found)]
    places = [n for n, chunk in enumerate(chunks) if chunk.member is not None]
    told = {chunks[n].member for n in places}
    if len(told) < min(_LEAST_MEMBERS, len(items)) or places[-1] - places[0] + 1 > len(items) + _LEAST_MEMBERS:
        return []
    inside = [chunks[n] for n in range(places[0], places[-1]) if n not in places]
    names = [_name(chunk.tokens) for chunk in inside]
    if not all(names):
        return []
    around = [_before(chunks, places[0]), _after(chunks, places[-1], found)]
    left = [stem for n, own in enumerate(stems) if n not in told for stem in own]
    return [
        " ".join(token.text for token in name)
        for name in (*names, *around)
        if name
        and not any(alike(token.stem, stem) for token in name for stem in left)  # another word for a member left out
    ]


def _chunks(found: Sequence[RecordWord]) -> Iterator[tuple[RecordWord, ...]]:
    part: list[RecordWord] = []
    for token in found:
        if token.low in _JOINS or token.low in {",", ":", ";", "(", ")"}:
            if part:
                yield tuple(part)
            part = []
        elif token.low != ".":
            part.append(token)
    if part:
        yield tuple(part)


def _member(part: Sequence[RecordWord], stems: Sequence[Sequence[str]]) -> int | None:
    for n, own in enumerate(stems):
        if own and all(any(alike(token.stem, stem) for token in part) for stem in own):
            return n
    return None


def _name(part: Sequence[RecordWord]) -> tuple[RecordWord, ...]:
    """Return the words of a chunk that may be one more of a row, or nothing."""
    own = tuple(token for token in part if token.counts or (token.is_word and token.low.isdigit()))
    plain = own and len(own) <= _MOST_WORDS and not any(token.low in _VERBS or token.low in _REST for token in part)
    return own if plain else ()


def _before(chunks: Sequence[_Chunk], place: int) -> tuple[RecordWord, ...]:
    """Return the last word before the first member, where a clause leads to it: *it covers floors 1, 2 and 3*."""
    if not place or not any(chunk.member is not None for chunk in chunks[place + 1 :]):
        return ()
    part = chunks[place - 1].tokens
    if len(part) < _LEAST_LEAD or part[0].low in _OPENING or len(chunks[place].tokens) > _MOST_WORDS:
        return ()
    last = part[-1]
    figures = all(chunk.member is None or any(t.low.isdigit() for t in chunk.tokens) for chunk in chunks)
    leads = last.low.isdigit() if figures else part[-2].low in _OPENING | {"the"} and last.counts
    return (last,) if leads and last.low not in _REST else ()


def _after(chunks: Sequence[_Chunk], place: int, found: Sequence[RecordWord]) -> tuple[RecordWord, ...]:
    """Return the chunk behind the last member, where *and* joins it: *every Monday, Thursday and Saturday*."""
    if place + 1 >= len(chunks):
        return ()
    first = chunks[place + 1].tokens[0]
    at = next(n for n, token in enumerate(found) if token is first)
    return _name(chunks[place + 1].tokens) if at and found[at - 1].low in _JOINS else ()
