"""How the budget of a caller is written: ``lua/common.lua`` lists the fields of its hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from interlock.domain.budget import Micros
from interlock.domain.ids import SessionId, WindowId
from interlock.domain.session.caller import CallerState, CallerView, Period, Spent


def view_from(caller_id: SessionId, told: Sequence[Any]) -> CallerView:
    """Return what a script tells of a caller's budget."""
    number, cap, spent, previous, _, held = told
    return CallerView(caller_id, number, Micros(cap), Micros(max(0, cap - spent)), previous, Micros(held))


def to_json(state: CallerState, *, ttl_s: int) -> str:
    """Return the budget of a caller as ``caller.lua`` reads it."""
    periods = [{"number": each.number, "cap": each.cap, "spent": list(each.spent.items())} for each in state.periods]
    return orjson.dumps({"periods": periods, "ttl_s": ttl_s}).decode()


def state_from(flat: Sequence[bytes]) -> CallerState:
    """Return the budget of a caller from all fields of its hash, names and values in turn."""
    fields = {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
    numbers = {int(fields["period"]), int(fields["previous"])} - {0}
    spent: dict[int, dict[SessionId, Micros]] = {number: {} for number in sorted(numbers)}
    holds: dict[int, dict[WindowId, Micros]] = {number: {} for number in numbers}
    for name, value in fields.items():
        number, _, session = name.partition(":")
        if session.startswith("crp_sess_") and int(number) in spent:
            spent[int(number)][SessionId(session)] = Micros(int(value))
        elif session.startswith("hold:") and int(number) in spent:
            holds[int(number)][WindowId(session.removeprefix("hold:"))] = Micros(int(value))
    return CallerState(
        tuple(Period(number, Micros(int(fields[f"{number}:cap"])), of, holds[number]) for number, of in spent.items())
    )


def spent_to_text(spent: Spent) -> str:
    """Return what a session has spent as stored."""
    return ",".join(f"{period}:{amount}" for period, amount in spent)


def spent_from(text: bytes) -> Spent:
    """Return what a session has spent from what is stored."""
    found = (entry.partition(":") for entry in text.decode().split(",") if entry)
    return tuple((int(period), Micros(int(amount))) for period, _, amount in found)
