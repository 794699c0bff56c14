"""The profile under which tests run unless they say otherwise.

Most tests send a plain call and expect that what the policy says is done: that is the profile enforce. Remedies are switched on,
because their tests are older than the profiles, which leave them off.
"""

from __future__ import annotations

from typing import Any

ENFORCING: dict[str, Any] = {"profile": "enforce", "remediation": "full"}
"""Settings that every mesh of the tests starts with; a test's own win."""
