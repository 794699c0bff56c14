"""What is set aside for a window whose answer is released in parts; the rule is in ``holding.py`` (BUD-11)."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.budget import Micros
from interlock.domain.ids import SessionId, WindowId


@dataclass(frozen=True)
class BudgetHold:
    """The most that a window may cost whose answer is released in parts, until it is settled (BUD-11)."""

    window_id: WindowId
    amount: Micros
    period: int = 0
    """Period of its caller in which the window was opened; 0 without a caller."""


@dataclass(frozen=True)
class HoldWindow:
    """A window that holds its lease asks for its hold. *ceiling* is what it started with."""

    session_id: SessionId
    root_session_id: SessionId
    window_id: WindowId
    amount: Micros
    ceiling: Micros
    caller_id: str = ""
    caller_period: int = 0
