"""The sentences of an answer held against the records of its sources, one after the other (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.placing.records.copies import is_object, of_objects, of_row
from interlock.dpe.grounding.placing.records.grids import grids
from interlock.dpe.grounding.placing.records.held import HeldValue
from interlock.dpe.grounding.placing.records.told import RecordVerdict, ToldRow
from interlock.dpe.grounding.placing.records.words import content, tokens
from interlock.dpe.grounding.placing.scopes import Scopes, stems_of
from interlock.dpe.values.cells import cells_of, is_of_structure

_LONGEST_ITEM = 6


def verdicts(
    claims: Sequence[Claim],
    sentences: Mapping[str, str],
    envelope: Envelope,
    known: Scopes,
    query: str,
    *,
    titles: Collection[str] = (),
) -> dict[str, RecordVerdict]:
    """Return what the records say of each claim's sentence. A finding is that of the claim which has its words."""
    if not envelope.cut.records:
        return {}
    found: dict[str, RecordVerdict] = {}
    texts = [(scope.fact_id, frozenset(content(scope.text))) for scope in known.all if not scope.slots]
    own = grids(envelope)
    for answer in _answers(claims):
        told = ToldRow(HeldValue(own, texts), tokens(query))
        lists = _Lists()
        for _, each in groupby(answer, key=lambda claim: claim.sentence_index):
            members = list(each)
            text = sentences.get(members[0].claim_id, members[0].text)
            row = cells_of(text)
            if row is not None:
                found |= _of_claims(members, RecordVerdict(tuple(of_row(*row, own))))
            elif is_object(text):
                found |= _of_claims(members, RecordVerdict(tuple(of_objects(text, own))))
            else:
                lists.add(text, members[0], title=members[0].claim_id in titles)
                found |= _of_claims(members, _of_its_key(text, told.of_sentence(text), known))
        for heading, items in lists.done():
            listed = told.of_sentence(f"{heading}: {', '.join(text for text, _ in items[:-1])} and {items[-1][0]}")
            strange = tuple(one for one in listed.moved if one.type == ENTITY_SUBSTITUTED)
            for name, verdict in _of_claims([claim for _, claim in items], RecordVerdict(strange)).items():
                if verdict.moved and not found[name].moved:
                    found[name] = verdict
    return found


def _of_its_key(text: str, verdict: RecordVerdict, known: Scopes) -> RecordVerdict:
    """Return what is said of a text; of a field of an object only what is of its own key: *Ida loan code: 311* denies no *renewed: yes*."""
    key, colon, _ = text.partition(": ")
    own = stems_of(key)
    if not (colon and verdict.moved and is_of_structure(text)):
        return verdict
    if not any(slot.noun and slot.noun <= own for scope in known.all for slot in scope.slots):
        return verdict
    return replace(verdict, moved=tuple(one for one in verdict.moved if not one.slot or stems_of(one.slot) & own))


@dataclass
class _Lists:
    """The lists of an answer: short items under a short heading."""

    _open: list[tuple[str, Claim]] = field(default_factory=list)
    _heading: str = ""
    _found: list[tuple[str, list[tuple[str, Claim]]]] = field(default_factory=list)

    def add(self, text: str, claim: Claim, *, title: bool) -> None:
        """Take the next sentence: a heading, an item, or what ends a list."""
        bare = text.strip().rstrip(":")
        short = len(bare.split()) <= _LONGEST_ITEM and not bare.endswith((".", "!", "?"))
        if title or text.rstrip().endswith(":"):
            self._end()
            self._heading = bare if short else ""
        elif short and self._heading:
            self._open.append((bare, claim))
        else:
            self._end()

    def done(self) -> list[tuple[str, list[tuple[str, Claim]]]]:
        """Return each heading with its items."""
        self._end()
        return self._found

    def _end(self) -> None:
        if self._heading and len(self._open) > 1:
            self._found.append((self._heading, list(self._open)))
        self._open, self._heading = [], ""


def _answers(claims: Sequence[Claim]) -> Iterator[list[Claim]]:
    """Yield the claims of each output, once for each of its readings."""
    run: list[Claim] = []
    for claim in claims:
        if (run and (run[-1].choice_index, run[-1].output_index) != (claim.choice_index, claim.output_index)) or (
            run and run[-1].sentence_index > claim.sentence_index
        ):
            yield run
            run = []
        run.append(claim)
    if run:
        yield run


def _of_claims(members: Sequence[Claim], verdict: RecordVerdict) -> dict[str, RecordVerdict]:
    moved: dict[str, list[Distortion]] = {}
    for each in verdict.moved:
        words = set(each.claim_value.casefold().split())
        teller = max(members, key=lambda claim: len(words & set(claim.text.casefold().split())))
        moved.setdefault(teller.claim_id, []).append(each)
    return {
        claim.claim_id: RecordVerdict(
            tuple(moved.get(claim.claim_id, ())), verdict.premises, verdict.whole, verdict.figures
        )
        for claim in members
    }
