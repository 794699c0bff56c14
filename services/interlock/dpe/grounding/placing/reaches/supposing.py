"""Figures that a claim only supposes, or that are one of a span: nobody invents them (SPEC-005 §5.2)."""

from __future__ import annotations

from interlock.dpe.comparison.cases.examples import is_example, supposes
from interlock.dpe.grounding.placing.near import Near
from interlock.dpe.values.frames import frame
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import Value

_MOST_CONTENTS = 24


def is_supposed(value: Value, text: str, near: Near) -> bool:
    """Whether a figure is one of a span or of a side of a bound that the sources state, or a weekday where they name none."""
    contents = [frame(content) for content in near.told.contents[:_MOST_CONTENTS]] if near.told else []
    claim, moment = frame(text), value.moment
    if moment is not None and moment == Moment(weekday=moment.weekday):
        told = (each.moment for one in contents for each in one.values)
        named = any(each is not None and each.weekday is not None for each in told)
        return not named and supposes(value, claim)  # a card bought on a Monday
    return any(is_example(value, claim, each) for each in contents)
