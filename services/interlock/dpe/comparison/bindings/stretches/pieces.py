"""Pieces: the parallel parts of a sentence, each with a value of its own (SPEC-005 §5.3).

*Adults pay £24, over-65s £17 and under-16s £9* has three pieces, of which two have no verb. A parser reads such gapped clauses badly;
the pieces are cut between the values and need no parse of what was left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from interlock.dpe.comparison.bindings.clauses import sense
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.moods import has_subject
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value, comparable

_STRONG = word_set("; while whereas but")
_WEAK = word_set(", and or then")
_WAYS = {"up": "increase+", "down": "increase-"}
_MOST_PIECES = 8
_LONGEST = 60
_PLAIN = word_set("respectively also too only about around roughly approximately nearly almost each")


@dataclass(frozen=True)
class Piece:
    """A part of a sentence: its values, and the senses of the words before and after the first of them.

    ``subject`` are those before its verb, empty where it has none, and ``lead`` those between the verb and the value.
    """

    values: tuple[Value, ...]
    subject: frozenset[str]
    lead: frozenset[str]
    after: frozenset[str]
    events: frozenset[str]
    names: frozenset[str]
    preposed: bool
    text: str

    @property
    def gapped(self) -> bool:
        """Whether it has no verb of its own."""
        return not self.events

    @property
    def words(self) -> frozenset[str]:
        """The senses of all its words but those of its values."""
        return self.subject | self.lead | self.after | self.events


def pieces(sentence: Any) -> tuple[tuple[Piece, ...], ...]:
    """Return each way in which values of one kind cut a parsed sentence, a spaCy span, into parallel pieces."""
    tokens = [t for t in sentence if not t.is_space]
    if not 0 < len(tokens) <= _LONGEST:
        return ()
    values = _values(sentence)
    found: list[tuple[Piece, ...]] = []
    taken: set[tuple[int, ...]] = set()
    for value in values:
        kind = tuple(n for n, other in enumerate(values) if comparable(value, other))
        if len(kind) < 2 or len(kind) > _MOST_PIECES or kind in taken:
            continue
        taken.add(kind)
        cuts = _cuts(tokens, [values[n] for n in kind], sentence.start_char)
        if cuts is not None:
            bounds = [0, *cuts, _end(tokens, values[kind[-1]], sentence.start_char)]
            found.append(tuple(_piece(tokens[a:b], values, sentence.start_char) for a, b in pairwise(bounds)))
    return tuple(found)


def whole(sentence: Any) -> Piece | None:
    """Return a sentence as one piece."""
    tokens = [t for t in sentence if not t.is_space]
    if not 0 < len(tokens) <= _LONGEST:
        return None
    return _piece(tokens, _values(sentence), sentence.start_char)


def _values(sentence: Any) -> list[Value]:
    """Return the values of a sentence that measure something. The number of *severity 1* is a part of its name."""
    labels = {t.idx - sentence.start_char for t in sentence if _is_label(t)}
    values = read(sentence.text).values
    return [
        v for v in values if not (v.vague or v.label or v.kind == ORDINAL or (v.kind == NUMBER and v.start in labels))
    ]


def _is_label(token: Any) -> bool:
    return bool(token.like_num and token.i > token.sent.start and token.nbor(-1).pos_ in {"NOUN", "PROPN"})


def _cuts(tokens: Sequence[Any], values: Sequence[Value], offset: int) -> list[int] | None:
    """Return where the pieces begin, or ``None`` where that is not clear."""
    cuts: list[int] = []
    for one, other in pairwise(values):
        between = [n for n, t in enumerate(tokens) if one.end <= t.idx - offset < other.start]
        joins = [n for n in between if tokens[n].lower_ in _STRONG] or [n for n in between if tokens[n].lower_ in _WEAK]
        if not joins:
            return None
        groups = [n for n in joins if n - 1 not in joins]
        if len(groups) > 1:
            last = groups[-1]
            if any(t.dep_ != "case" and t.pos_ in {"NOUN", "PROPN", "VERB"} for t in tokens[last : between[-1] + 1]):
                return None
            groups = [last]
        cuts.append(groups[0])
    return cuts


def _end(tokens: Sequence[Any], last: Value, offset: int) -> int:
    """Return where the last piece ends: what follows a semicolon behind its value is a clause of its own."""
    behind = (n for n, t in enumerate(tokens) if t.text == ";" and t.idx - offset >= last.end)
    return next(behind, len(tokens))


def _piece(tokens: Sequence[Any], values: Sequence[Value], offset: int) -> Piece:
    start, end = tokens[0].idx - offset, tokens[-1].idx + len(tokens[-1]) - offset
    own = tuple(v for v in values if start <= v.start and v.end <= end)
    outside = [t for t in tokens if not any(v.start <= t.idx - offset < v.end for v in own)]
    first = own[0].start if own else end
    verb, since = _verb(outside, first + offset)
    before = [t for t in outside if t.idx - offset < first]
    after = [t for t in outside if t.idx - offset >= first]
    subject = [t for t in before if verb is not None and since <= t.i < verb.i]
    lead = [t for t in before if verb is None or t.i > verb.i]
    opening = next((t for t in lead if t.text not in {",", ";"} and t.dep_ != "cc"), None)
    return Piece(
        own,
        frozenset(_keys(subject)),
        frozenset(_keys(lead)),
        frozenset(_keys(after)),
        frozenset(_events(outside)),
        frozenset(key_of(t) for t in outside if t.pos_ == "PROPN"),
        opening is not None and opening.pos_ == "ADP",
        " ".join(t.text for t in tokens),
    )


def _verb(tokens: Sequence[Any], before: int) -> tuple[Any, int]:
    """Return the verb of the first value, the last before it or else the first, and where its subject may begin."""
    verbs = [t for t in tokens if t.pos_ in {"VERB", "AUX"}]
    own = [t for t in verbs if t.idx < before] or verbs[:1]
    if not own:
        return None, 0
    first = len(own) - 1
    while first and (not has_subject(own[first]) or own[first - 1].head.i == own[first].i):
        first -= 1
    return own[first], own[first - 1].i + 1 if first else 0


def _events(tokens: Sequence[Any]) -> Iterator[str]:
    """Yield the senses of verbs and directions: *up 22 %*."""
    for token in tokens:
        said = sense(token)
        if token.lower_ in _WAYS and token.pos_ in {"ADV", "ADP"}:
            yield _WAYS[token.lower_]
        elif token.pos_ == "VERB" or (said[-1:] in {"+", "-"} and token.is_alpha):
            yield said


def _keys(tokens: Sequence[Any]) -> Iterator[str]:
    """Yield the senses of content words. A number beside its noun is one with it: *severity 1*."""
    for token in tokens:
        low = token.lower_
        if _is_label(token):
            yield f"{key_of(token.nbor(-1))}#{low}"
        elif (
            token.pos_ in {"NOUN", "PROPN", "ADJ", "X"}
            and not _is_rate(token)
            and low not in STOP | _PLAIN
            and any(c.isalnum() for c in low)
        ):
            yield sense(token)


def _is_rate(token: Any) -> bool:
    """Whether a word is the unit of a rate: *per kilowatt-hour*."""
    head = token
    while head.dep_ in {"compound", "amod", "nmod"}:
        head = head.head
    return any(t.dep_ == "prep" and t.lower_ == "per" for t in (head.head,))
