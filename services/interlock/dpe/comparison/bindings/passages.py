"""Passages: sentences as they are compared, with their frames, limits and content words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from interlock.dpe.comparison.bindings.clauses import SenseBag, clauses
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.frames import PredicateFrame, frames
from interlock.dpe.comparison.bindings.limits import Limit, degree, limits
from interlock.dpe.comparison.bindings.relations.causes import causes
from interlock.dpe.comparison.bindings.relations.counts import Count, counts
from interlock.dpe.comparison.bindings.relations.events import ToldEvent, events
from interlock.dpe.comparison.bindings.relations.linked import UNTOLD, ToldWhole, filled
from interlock.dpe.comparison.bindings.relations.linked import told as told_by
from interlock.dpe.comparison.bindings.relations.needs import StatedNeed, needs
from interlock.dpe.comparison.bindings.relations.norms import Normed, norms
from interlock.dpe.comparison.bindings.relations.order import Order, orders
from interlock.dpe.comparison.bindings.relations.shifts import Shift, StatedPlace, shifts, standings
from interlock.dpe.comparison.bindings.relations.transfers import Handover, transfers
from interlock.dpe.comparison.bindings.stances.held import Stance, stances
from interlock.dpe.comparison.bindings.stretches.parts import WHOLE, Parted, parted
from interlock.dpe.comparison.bindings.stretches.pieces import Piece, pieces, whole
from interlock.dpe.comparison.bindings.stretches.ties import NONE, Ties, ties
from interlock.dpe.comparison.bindings.told.assertions import NOTHING, ToldSentence
from interlock.dpe.comparison.bindings.told.assertions import told as asserted_in
from interlock.dpe.values.frames import STOP


@dataclass(frozen=True)
class ReadSentence:
    """A sentence: its frames, its limits, its degree from 0 to 4, its content words, and the fact that it stands in."""

    text: str
    frames: tuple[PredicateFrame, ...]
    limits: tuple[Limit, ...]
    degree: int
    degree_word: str
    content: frozenset[str]
    fact_id: str = ""
    clauses: tuple[SenseBag, ...] = ()
    pieces: tuple[tuple[Piece, ...], ...] = ()
    whole: Piece | None = None
    senses: frozenset[str] = frozenset()
    orders: tuple[Order, ...] = ()
    causes: tuple[Order, ...] = ()
    parted: Parted = WHOLE
    ties: Ties = NONE
    norms: tuple[Normed, ...] = ()
    needs: tuple[StatedNeed, ...] = ()
    events: tuple[ToldEvent, ...] = ()
    counts: tuple[Count, ...] = ()
    stances: tuple[Stance, ...] = ()
    told: ToldWhole = UNTOLD
    asserted: ToldSentence = NOTHING
    transfers: tuple[Handover, ...] = ()
    shifts: tuple[Shift, ...] = ()
    standings: tuple[StatedPlace, ...] = ()

    @cached_property
    def bag(self) -> frozenset[str]:
        """The senses of all its clauses."""
        return frozenset(sense for clause in self.clauses for sense in clause.senses)

    def behind(self, before: ReadSentence) -> ReadSentence:
        """Return it with what it leaves to the sentence before it: *That is why …*, *Only then …*."""
        told = self.told.behind(before.told)
        if told is self.told and all(each.first and each.second for each in (*self.orders, *self.causes)):
            return self
        return replace(
            self, orders=filled(self.orders, before.told), causes=filled(self.causes, before.told), told=told
        )

    def as_record(self) -> ReadSentence:
        """Return it without what only a sentence has: a record's fields are no clauses beside each other."""
        return replace(self, parted=WHOLE, ties=NONE, asserted=NOTHING, stances=())


def passage(sentence: Any) -> ReadSentence:
    """Return the passage of a parsed sentence, a spaCy span."""
    held, word = degree(sentence)
    content = frozenset(
        key_of(t) for t in sentence if t.is_alpha and t.lower_ not in STOP and t.pos_ not in {"PRON", "AUX"}
    )
    found, framed = clauses(sentence), frames(sentence)
    single = whole(sentence)
    return ReadSentence(
        sentence.text.strip(), framed, limits(sentence), held, word, content, clauses=found,
        orders=orders(sentence), causes=causes(sentence), needs=needs(sentence), events=events(sentence), counts=counts(sentence), transfers=transfers(sentence), shifts=shifts(sentence), standings=standings(sentence), parted=parted(sentence), ties=ties(sentence, framed), norms=norms(sentence), pieces=pieces(sentence), whole=single, senses=single.words if single is not None else frozenset(), told=told_by(sentence), stances=stances(sentence), asserted=asserted_in(sentence),
    )  # fmt: skip
