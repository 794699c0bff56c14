"""What records show of a claim, put together: its values, its states, its row, and what its sentence says of rows (SPEC-005 §5.2)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from interlock.dpe.comparison.cues import NEGATION_FLIP
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.follows import Followed
from interlock.dpe.grounding.placing.copied_rows import RowVerdict
from interlock.dpe.grounding.placing.records.segments import count_of
from interlock.dpe.grounding.placing.records.told import RecordVerdict
from interlock.dpe.grounding.placing.states import RecordStates
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value

_FIGURE = re.compile(r"\d[\d.,]*(?<![.,])")


@dataclass(frozen=True)
class Reckoning:
    """What calculation shows of a claim: the values accounted for, what it takes from another row, whether it is supported."""

    values: frozenset[str]
    moved: tuple[Distortion, ...]
    supported: bool
    premise: str = ""
    rest: bool = False
    """Whether the claim counts what its source leaves, or says *not* as a field does, so that its *not* negates no sentence."""
    agreed: bool = False
    """Whether the fields of the sources have the states that the claim gives them."""


def with_states(settled: Reckoning | None, of_states: RecordStates, claim: Claim) -> Reckoning | None:
    """Return what calculation shows with what the states of fields show: of a claim without values that is all."""
    if not (of_states.moved or of_states.premises):
        return settled
    shown = settled or Reckoning(frozenset(), (), supported=False)
    if of_states.moved:
        return replace(shown, moved=(*shown.moved, *of_states.moved), supported=False)
    bare = all(value.vague for value in read(claim.text).values)
    borne = of_states.whole and bare and not shown.moved
    return replace(
        shown, supported=shown.supported or borne, premise=shown.premise or " ".join(of_states.premises), rest=True,
        agreed=True,
    )  # fmt: skip


def with_pins(settled: Reckoning | None, of_pins: Followed) -> Reckoning | None:
    """Return what is shown with the versions that the sources give to what a claim names, and with its days of the week."""
    if not (of_pins.settled or of_pins.moved):
        return settled
    shown = settled or Reckoning(frozenset(), (), supported=False)
    return replace(
        shown, values=shown.values | of_pins.settled, moved=(*shown.moved, *of_pins.moved),
        supported=shown.supported and not of_pins.moved, rest=shown.rest or of_pins.rest,
    )  # fmt: skip


def with_row(settled: Reckoning | None, verdict: RowVerdict) -> Reckoning | None:
    """Return what is shown with what the record of a row says of it."""
    if not (verdict.moved or verdict.agreeing):
        return settled
    shown = settled or Reckoning(frozenset(), (), supported=False)
    texts = frozenset(
        text for cell in verdict.agreeing for value in read(cell).values for text in (value.text, *figures(value.text))
    )
    known = {one.type for one in verdict.moved}
    moved = (*verdict.moved, *(one for one in shown.moved if one.type not in known))
    return replace(
        shown, values=shown.values | texts | frozenset(verdict.agreeing), moved=moved, premise=shown.premise or verdict.premise,
        supported=not moved and (shown.supported or verdict.whole), agreed=shown.agreed or (verdict.whole and not moved),
    )  # fmt: skip


def with_told(settled: Reckoning | None, verdict: RecordVerdict, claim: Claim) -> Reckoning | None:
    """Return what is shown with what the records say of the rows that the sentence of a claim names.

    A sentence all of whose segments agree is borne out where its only figures count its rows.
    """
    if not (verdict.moved or verdict.whole):
        return settled
    shown = settled or Reckoning(frozenset(), (), supported=False)
    if verdict.moved:
        known = {one.slot for one in shown.moved if one.slot}
        new = tuple(one for one in verdict.moved if one.slot not in known)
        return replace(shown, moved=(*shown.moved, *new), supported=False)
    shown = replace(shown, moved=tuple(one for one in shown.moved if one.type != NEGATION_FLIP))
    counts = {number for count, whole, _ in count_of(claim.text.lower().split()) for number in (count, whole)}
    premise = " ".join(verdict.premises)
    bare = all(_is_shown(value, counts, verdict.figures, premise) for value in read(claim.text).values)
    borne = bare and not shown.moved
    return replace(
        shown, supported=shown.supported or borne, premise=shown.premise or premise, rest=True, agreed=True,
    )  # fmt: skip


def _is_shown(value: Value, counts: Collection[int], told: frozenset[str], premise: str) -> bool:
    """Whether a value is vague, counts rows, is that of its row, or is an ordinal of a name: *first aid*."""
    if value.kind == ORDINAL:
        return value.text.casefold() in premise.casefold()
    return value.vague or (value.kind == NUMBER and value.amount in counts) or bool(told & set(figures(value.text)))


def figures(text: str) -> tuple[str, ...]:
    """Return the bare figure of a value, as a cell without its unit has it."""
    found = _FIGURE.search(text)
    if found is None:
        return ()
    figure = found.group()
    return (figure, figure.rstrip("0").rstrip(".")) if "." in figure else (figure,)
