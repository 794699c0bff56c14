"""People of the console in tests: one for each role, each with a key, and one whose sight is limited."""

from __future__ import annotations

from typing import Any

from interlock.policy.reviewers import key_text
from tests.support.policy import agents

VIEWER, ADMIN, LIMITED = "viewer@company.com", "admin@company.com", "limited@company.com"
NUMBERS = {agents.REVIEWER: 1, VIEWER: 3, ADMIN: 4, LIMITED: 5}
"""Person -> number of the private key."""


def who(name: str) -> dict[str, Any]:
    """Return what signs a person in."""
    return {"reviewer": name, "key": agents.private_key(NUMBERS[name])}


def people(*, sees: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the document of a reviewers file. *sees*: what the limited reviewer sees; another key unless given."""
    fields: dict[str, Any] = {
        VIEWER: {"role": "viewer"},
        ADMIN: {"role": "admin"},
        LIMITED: {"role": "reviewer", "sees": sees or {"keys": ["another-key"]}},
        agents.REVIEWER: {},
    }
    public = {name: key_text(agents.private_key(NUMBERS[name]).public_key().public_bytes_raw()) for name in fields}
    return {"reviewers": {name: {"public_key": public[name], **more} for name, more in fields.items()}}
