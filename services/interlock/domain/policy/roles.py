"""What a person may do in the console: a role, and the sessions whose content it covers (issue 19; SPEC-015 §7).

A viewer sees figures. A reviewer sees content too, and decides held answers with a key of their own. An admin may stop sessions and
kernels as well. What is not named here is refused: an unknown role is an error, never the least of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from interlock.domain.errors import Refused, forbidden, invalid


class Role(StrEnum):
    """The roles, each with all that the one before it may do."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def sees_content(self) -> bool:
        """Whether questions, answers, claims and evidence are shown."""
        return self is not Role.VIEWER


ROLES = tuple(one.value for one in Role)


@dataclass(frozen=True)
class Sight:
    """The sessions that a role covers: those of these API keys, and those of these agent types. Without either: all."""

    keys: frozenset[str] = frozenset()
    agent_types: frozenset[str] = frozenset()

    @property
    def is_limited(self) -> bool:
        """Whether there are sessions that it does not cover."""
        return bool(self.keys or self.agent_types)

    def covers(self, scope: str, agent_type: str) -> bool:
        """Tell whether a session is covered, by the name of its API key or by its agent type; an empty name never covers."""
        if not self.is_limited:
            return True
        return bool((scope and scope in self.keys) or (agent_type and agent_type in self.agent_types))


EVERYTHING = Sight()

Complaint = Callable[[str, str], Refused]
"""Makes the refusal of a file from a place in it and what is expected there."""

_SEES = {"keys", "agent_types"}
_NAMED = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)


def read_role(place: str, given: object, bad: Complaint) -> Role:
    """Return the role that a file names."""
    if not isinstance(given, str) or given not in ROLES:
        raise bad(place, f"one of {', '.join(ROLES)}")
    return Role(given)


def read_sight(place: str, given: object, bad: Complaint) -> Sight:
    """Return the sessions that a role covers. An empty list is refused: it could be meant as all or as none."""
    if not isinstance(given, Mapping) or not given or not given.keys() <= _SEES:
        raise bad(place, "a mapping with keys, agent_types or both")
    for name, listed in given.items():
        if not isinstance(listed, list) or not listed or not all(_is_name(one) for one in listed):
            raise bad(f"{place}.{name}", "a list of at least one name")
    return Sight(frozenset(given.get("keys", ())), frozenset(given.get("agent_types", ())))


def _is_name(one: object) -> bool:
    return isinstance(one, str) and bool(_NAMED.fullmatch(one))


def require_content(role: Role) -> None:
    """Refuse a viewer with ROLE_SEES_NO_CONTENT."""
    if not role.sees_content:
        raise not_shown()


def require_admin(role: Role) -> None:
    """Refuse anyone but an admin with ROLE_NOT_ADMIN."""
    if role is not Role.ADMIN:
        raise forbidden(
            "ROLE_NOT_ADMIN", "only an admin stops sessions and kernels, and reads the settings", role=role.value
        )


STOP_REASONS = ("RUNAWAY", "HARMFUL", "COMPROMISED", "REQUESTED", "TEST")
"""Why a session or a kernel is stopped. It goes into a chain, from which nothing can be erased: a word of a list, not free text."""


def checked_stop_reason(reason: str) -> str:
    """Return a reason to stop. Refused with STOP_REASON_INVALID."""
    if reason not in STOP_REASONS:
        raise invalid("STOP_REASON_INVALID", f"a reason to stop is one of {', '.join(STOP_REASONS)}", field="reason")
    return reason


def not_shown() -> Refused:
    """Return the refusal of content to a viewer."""
    return forbidden("ROLE_SEES_NO_CONTENT", "a viewer sees figures; questions, answers and claims are for reviewers")


def not_covered() -> Refused:
    """Return the refusal of a session that a role does not cover."""
    return forbidden("SESSION_NOT_COVERED", "your role does not cover the sessions of this key and agent type")
