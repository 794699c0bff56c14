"""How full a window's context is: the token budget of the envelope, and the share of it that is used (SPEC-003 §7.2, §9)."""

from __future__ import annotations

EXPECTED_RESPONSE = 2048
"""Tokens kept free for the answer where the request does not limit it."""

MARGIN = 512
"""Tokens kept free because token counts are estimates."""


def token_budget(window: int, *, request: int, response: int = EXPECTED_RESPONSE, margin: int = MARGIN) -> int:
    """Return the tokens of *window* that the envelope may take, never below 0.

    *request* counts everything in the request besides the envelope: system messages, the query, the conversation.
    """
    return max(0, window - request - response - margin)


def saturation(used: int, budget: int) -> float:
    """Return the share of *budget* that *used* tokens take, 0.0 to 1.0. A budget that is spent has no room: 1.0."""
    return min(1.0, used / budget) if budget > 0 else 1.0
