"""Passages: sentences as they are compared, with their frames, limits and content words.

What a sentence tells in one respect is read when a rule asks for it: of most sentences few respects are ever compared.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any, Generic, TypeVar

from interlock.dpe.comparison.bindings.clauses import clauses
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.frames import frames
from interlock.dpe.comparison.bindings.limits import degree, limits
from interlock.dpe.comparison.bindings.relations.causes import causes
from interlock.dpe.comparison.bindings.relations.counts import counts
from interlock.dpe.comparison.bindings.relations.events import events
from interlock.dpe.comparison.bindings.relations.linked import ToldWhole, filled
from interlock.dpe.comparison.bindings.relations.linked import told as told_by
from interlock.dpe.comparison.bindings.relations.needs import needs
from interlock.dpe.comparison.bindings.relations.norms import norms
from interlock.dpe.comparison.bindings.relations.order import Order, orders
from interlock.dpe.comparison.bindings.relations.shifts import shifts, standings
from interlock.dpe.comparison.bindings.relations.transfers import transfers
from interlock.dpe.comparison.bindings.stances.held import stances
from interlock.dpe.comparison.bindings.stretches.parts import WHOLE, parted
from interlock.dpe.comparison.bindings.stretches.pieces import pieces, whole
from interlock.dpe.comparison.bindings.stretches.ties import NONE, ties
from interlock.dpe.comparison.bindings.told.assertions import NOTHING
from interlock.dpe.comparison.bindings.told.assertions import told as asserted_in
from interlock.dpe.values.frames import STOP

T = TypeVar("T")


class _Read(Generic[T]):
    """What a function reads of a parsed sentence, and of what else was read of it: once, for all copies of its ``ReadSentence``."""

    def __init__(self, derive: Callable[..., T], *given: str) -> None:
        self._derive, self._given = derive, given

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, one: ReadSentence, owner: type) -> T:
        known = one.known
        if self._name not in known:
            known[self._name] = self._derive(one.sentence, *[getattr(one, name) for name in self._given])
        value: T = known[self._name]
        one.__dict__[self._name] = value  # where it is found first from now on
        return value


def _content(sentence: Any) -> frozenset[str]:
    return frozenset(
        key_of(t) for t in sentence if t.is_alpha and t.lower_ not in STOP and t.pos_ not in {"PRON", "AUX"}
    )


class ReadSentence:
    """A sentence: its frames, its limits, its degree from 0 to 4, its content words, and the fact that it stands in.

    ``record``: it is the fields of a record, written one after the other. ``sentence``: its parse, a span. ``known``: what was read of
    it, by name; copies share it.
    """

    frames = _Read(frames)
    limits = _Read(limits)
    content = _Read(_content)
    clauses = _Read(clauses)
    pieces = _Read(pieces)
    whole = _Read(whole)
    parted = _Read(parted)
    ties = _Read(ties, "frames")
    norms = _Read(norms)
    needs = _Read(needs)
    events = _Read(events)
    counts = _Read(counts)
    stances = _Read(stances)
    asserted = _Read(asserted_in)
    transfers = _Read(transfers)
    shifts = _Read(shifts)
    standings = _Read(standings)
    _degree = _Read(degree)
    _told = _Read(told_by)
    _orders = _Read(orders)
    _causes = _Read(causes)

    def __init__(self, sentence: Any) -> None:
        """Take a parsed sentence, a span; it is read on the thread that asks."""
        self.sentence = sentence
        self.text: str = sentence.text.strip()
        self.fact_id, self.record = "", False
        self.known: dict[str, Any] = {}
        self.before: ReadSentence | None = None

    @property
    def degree(self) -> int:
        """How sure or frequent it is, from 0 to 4."""
        return self._degree[0]

    @property
    def degree_word(self) -> str:
        """The word that says so."""
        return self._degree[1]

    @property
    def senses(self) -> frozenset[str]:
        """The words of the whole of it."""
        return self.whole.words if self.whole is not None else frozenset()

    @cached_property
    def bag(self) -> frozenset[str]:
        """The senses of all its clauses."""
        return frozenset(sense for clause in self.clauses for sense in clause.senses)

    @cached_property
    def told(self) -> ToldWhole:
        """What it tells as a whole: *He said …* with the voice of the sentence before it."""
        return self._told if self.before is None else self._told.behind(self.before.told)

    @cached_property
    def orders(self) -> tuple[Order, ...]:
        """What comes before what. *Only then …*: with the sentence before it."""
        return self._orders if self.before is None else filled(self._orders, self.before.told)

    @cached_property
    def causes(self) -> tuple[Order, ...]:
        """What comes of what. *That is why …*: with the sentence before it."""
        return self._causes if self.before is None else filled(self._causes, self.before.told)

    def behind(self, before: ReadSentence) -> ReadSentence:
        """Return it with what it leaves to the sentence before it, as that one stands by itself: *That is why …*, *Only then …*."""
        own = copy(self)
        own.before = before
        for name in ("told", "orders", "causes"):
            own.__dict__.pop(name, None)
        return own

    def placed(self, fact_id: str, text: str = "") -> ReadSentence:
        """Return it as a sentence of a fact, with *text* in place of its own."""
        own = copy(self)
        own.fact_id, own.text = fact_id, text or own.text
        return own

    def as_record(self) -> ReadSentence:
        """Return it without what only a sentence has: a record's fields are no clauses beside each other."""
        own = copy(self)
        own.record = True
        own.__dict__.update(frames=(), stances=(), parted=WHOLE, ties=NONE, asserted=NOTHING)
        return own
