"""What a person decides about a compensation that is stuck, why, and which ones wait for a person after a record.

The reasons are fixed words: they remain in a chain that cannot be erased.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.domain.errors import invalid

DONE, RETRY, LEAVE = "done", "retry", "leave"
REASONS: Mapping[str, Sequence[str]] = {
    DONE: ("MADE_UP_FOR", "NOTHING_TO_MAKE_UP_FOR", "LOSS_ACCEPTED"),
    RETRY: ("CAUSE_MENDED", "CAUSE_PASSED"),
    LEAVE: ("LOOKED_INTO", "WAITS_FOR_OTHERS", "UNCLEAR"),
}
"""Outcome of a decision → the reasons that can be given for it. One that is left stays stuck."""

LEFT = "KERNEL_COMPENSATION_LEFT"
MOVING = frozenset({
    "KERNEL_SAGA_ROLLED_BACK", "KERNEL_COMPENSATION_STUCK", "KERNEL_COMPENSATION_CLAIMED", "KERNEL_COMPENSATION_FAILED",
    "KERNEL_COMPENSATION_RETRIED", "KERNEL_COMPENSATED", LEFT,
})  # fmt: skip
"""Types of the records that move compensations."""
_JOB, _STUCK = "j:", " stuck"


def require_reason(outcome: str, reason: str) -> None:
    """Refuse an outcome that there is not, and a reason that is not one of it, with INVALID_REASON."""
    if outcome not in REASONS:
        raise invalid("INVALID_OUTCOME", f"an outcome is one of {', '.join(REASONS)}", field="outcome")
    if reason not in REASONS[outcome]:
        raise invalid("INVALID_REASON", f"a reason is one of {', '.join(REASONS[outcome])}", field="reason")


def waiting_after(data: Mapping[str, Any]) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the steps that a record leaves stuck, each with its stored form, and those that it ends or tries again."""
    jobs = {name[2:]: text for name, text in (data["changes"] or {}).items() if name[:2] == _JOB}
    ended = [name[2:] for name in data["dropped"] or () if name[:2] == _JOB]
    stuck = {step: text for step, text in jobs.items() if text.endswith(_STUCK)}
    return stuck, [*ended, *(step for step in jobs if step not in stuck)]
