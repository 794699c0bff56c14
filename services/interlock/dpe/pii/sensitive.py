"""Sensitive data of a named person: the special categories of GDPR Art. 9 (SPEC-005 §13.2).

Health and genes, politics, origin, religion, union membership, and sex life or orientation count when the text says
them of an identified person: a name, my neighbour, somebody's patient, or a pronoun for one of them. They do not count
of nobody, in a denial or a question, for one's profession or studies, of the long dead, and, for politics and religion,
of a holder of public office, who made them public. A nationality is no ethnic origin.

The word list is searched first. Only passages with such a word and a possible person are parsed.
"""

import secrets
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.pii.lexicon import ILLNESS, Term, terms
from interlock.dpe.pii.persons import People, is_public
from interlock.dpe.pii.records import recorded
from interlock.dpe.pii.said_of import is_said
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.parse.trees import ParseTree
from interlock.dpe.text.patterns import pattern

SCORE = 0.7
_BEFORE, _AFTER = 300, 200
BYTES_A_CHARACTER = 300
_MOST_READ = 6_000  # code points that are parsed once something is found
_POSSIBLE_PERSON = pattern(r"\p{Lu}\p{Ll}|\b(?:[Mm]y|[Oo]ur|[Yy]our)\b")
_MARKS = frozenset("*`_")  # of layout: the parser reads the words without them
_STEPS = ("tok2vec", "tagger", "parser", "attribute_ruler", "lemmatizer", "ner")


@dataclass(frozen=True)
class Sensitive:
    """Something sensitive that is said of a person, in code points of the text."""

    start: int
    end: int
    kind: str


class SensitiveParser:
    """Reads passages by a loaded pipeline, whose steps run one by one. A passage that was read is remembered: answers grow."""

    def __init__(self, nlp: Any) -> None:
        self._nlp, self._own = nlp, secrets.token_hex(8)

    def read(self, passage: str) -> Any:
        """Return the parse of a passage, with its names."""
        return STORE.of(
            f"sensitive {self._own}", (passage,), lambda: self._anew(passage), bytes_a_character=BYTES_A_CHARACTER
        )

    def _anew(self, passage: str) -> Any:
        doc = self._nlp.make_doc(passage)
        for step in _STEPS:
            doc = self._nlp.get_pipe(step)(doc)
        return ParseTree(doc)


def sensitive(text: str, parser: SensitiveParser) -> Iterator[Sensitive]:
    """Yield what a text says of identified persons."""
    found = list(terms(text))
    if not found:
        return
    told = {(each.start, each.end) for each in recorded(text, found)}
    yield from (Sensitive(each.start, each.end, each.kind) for each in found if (each.start, each.end) in told)
    read = 0
    for start, end, inside in _passages(text, [each for each in found if (each.start, each.end) not in told]):
        if told and read > _MOST_READ:
            return
        read += end - start
        for each in _said(text[start:end], start, inside, parser):
            told.add((each.start, each.end))
            yield Sensitive(each.start, each.end, each.kind)


def _said(passage: str, offset: int, inside: Sequence[Term], parser: SensitiveParser) -> Iterator[Term]:
    """Yield the terms of a passage that are said of a person."""
    if not _POSSIBLE_PERSON.search(passage):
        return
    places = [place for place, written in enumerate(passage) if written not in _MARKS]
    doc = parser.read("".join(passage[place] for place in places).replace("\n", " "))
    read = {each: _moved(each, offset, places) for each in inside}
    people = People(doc, [(each.start, each.end) for each in read.values()])
    for each, term in read.items():
        sentence = doc.char_span(term.start, term.end).sent
        if sentence.text.rstrip().endswith("?") or is_public(
            sentence, role_counts=each.group not in ILLNESS | {"state"}
        ):
            continue
        if is_said(term, doc, people):
            yield each


def _moved(term: Term, offset: int, places: Sequence[int]) -> Term:
    """Return a term with its place among the code points that are read."""
    start, end = bisect_left(places, term.start - offset), bisect_left(places, term.end - offset)
    return replace(term, start=start, end=end)


def _passages(text: str, found: Sequence[Term]) -> Iterator[tuple[int, int, list[Term]]]:
    """Yield the parts of a text around terms, with the sentences before that a pronoun may refer to."""
    group: list[Term] = []
    start = end = 0
    for each in found:
        first, last = _around(text, each)
        if group and first < end and last - start <= _BEFORE + 3 * _AFTER:
            group.append(each)
            end = max(end, last)
            continue
        if group:
            yield start, end, group
        start, end, group = first, last, [each]
    if group:
        yield start, end, group


def _around(text: str, term: Term) -> tuple[int, int]:
    """Return the passage to read for a term: its paragraph up to the end of its sentence, bounded."""
    end = min(len(text), term.end + _AFTER)
    for mark in ("\n", ". ", "! ", "? "):
        place = text.find(mark, term.end, end)
        if place >= 0 and not (mark == "\n" and _goes_on(text, place)) and not _is_short(text, place):
            end = place + 1
    return _begin(text, max(0, term.start - _BEFORE), term.start), end


def _begin(text: str, floor: int, place: int) -> int:
    """Return where the paragraph around a place begins, or the first whole word after *floor*."""
    line = text.rfind("\n", floor, place)
    while line >= 0 and _goes_on(text, line):
        line = text.rfind("\n", floor, line)
    if line >= 0:
        return line + 1
    blank = text.find(" ", floor, place) if floor else -1
    return blank + 1 if blank >= 0 else floor


def _goes_on(text: str, place: int) -> bool:
    """Whether a sentence goes on after a line break."""
    return text[place + 1 : place + 2].islower()


def _is_short(text: str, place: int) -> bool:
    """Whether a full stop ends a title or an initial: Dr. Osei, J. Roe."""
    before = text[max(0, place - 4) : place].split()
    return bool(before) and text[place] == "." and len(before[-1]) <= 3 and before[-1][:1].isupper()
