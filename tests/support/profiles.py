"""The profile under which tests run unless they say otherwise.

Most tests send a plain call and expect that what the policy says is done: that is the profile enforce. Callers have no budget of
their own, because tests share keys.
"""

from __future__ import annotations

from typing import Any

ENFORCING: dict[str, Any] = {"profile": "enforce", "caller_budget": 0.0}
"""Settings that every mesh of the tests starts with; a test's own win."""
