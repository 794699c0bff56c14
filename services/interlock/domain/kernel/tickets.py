"""Tickets: who comes next where many evaluate on the same version and only one of them can commit on it.

``session/lua/kernel_ticket.lua`` carries it too. ``tickets`` are keys and lifetimes in the order in which they were taken; ``turn`` is the
time at which the first one's turn is over, and the next one's begins. While a ticket stands, actions on a version wait that do not name the
first one; those on any version are not evaluated by anybody, and pass, but in a kernel with conditions in CEL, where every action is.
"""

from __future__ import annotations

from interlock.domain.kernel.decision import KernelStep
from interlock.domain.kernel.state import Stepped

TICKETS = 64

Line = list[tuple[str, int]]


def standing(step: KernelStep) -> tuple[Line, int]:
    """Return the tickets that stand, the one whose turn it is first, and when its turn is over."""
    words = (step.get("tickets") or "").split()
    line = [(key, int(lifetime)) for key, lifetime in zip(words[::2], words[1::2], strict=True)]
    until = int(step.get("turn") or "0")
    while line and step.now > until:
        line.pop(0)
        until += line[0][1] if line else 0
    return line, until


def take(step: KernelStep) -> Stepped:
    """Take a place at the end of the line. It is not a change of the state, so that versions stay as they are."""
    (line, until), ask = standing(step), step.ask
    lifetime = int(ask["lifetime_ms"])
    step.check("tickets", len(line) < TICKETS, "TICKETS_TOO_MANY", str(len(line)), str(TICKETS))
    ask["granted"] = str(len(line))
    step.changed |= _fields([*line, (ask["key"], lifetime)], until if line else step.now + lifetime)
    return step.commit("KERNEL_TICKET_TAKEN", "", [], [], "-")


def give_back(step: KernelStep) -> Stepped:
    """Leave the line, wherever one stands in it; the next one's turn begins now if it was one's own."""
    line, until = standing(step)
    rest = [one for one in line if one[0] != step.ask["ticket"]]
    if len(rest) == len(line):
        return Stepped("KERNEL_TICKET_UNKNOWN", {})
    first = line[0] not in rest
    step.changed |= _fields(rest, (step.now + rest[0][1] if rest else 0) if first else until)
    return step.commit("KERNEL_TICKET_RETURNED", "", [], [], "-")


def turned(step: KernelStep) -> tuple[str, str]:
    """Use up the ticket that an action names; the reason of a refusal, and how many are ahead, where it is another's turn."""
    ticket, (line, _) = step.ask.get("ticket", ""), standing(step)
    keys = [key for key, _ in line]
    if ticket and ticket not in keys:
        return "KERNEL_TICKET_UNKNOWN", ""
    if not ticket and step.ask.get("version", "0") == "0" and step.get("cel") is None:
        return "", ""
    if keys and keys[0] != ticket:
        return "KERNEL_TICKET_AHEAD", str(keys.index(ticket) if ticket else len(keys))
    if ticket:
        rest = line[1:]
        step.turn = _fields(rest, step.now + rest[0][1] if rest else 0)
    return "", ""


def _fields(line: Line, until: int) -> dict[str, str]:
    return {"tickets": " ".join(f"{key} {lifetime}" for key, lifetime in line), "turn": str(until)}
