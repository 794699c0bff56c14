"""What role a group of an OpenID provider gives (docs/console.md): closed, so that a person without a listed group has none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from interlock.domain.errors import Refused, invalid
from interlock.domain.policy.roles import EVERYTHING, ROLES, Role, Sight, read_role, read_sight

MOST_GROUPS = 10_000
LONGEST_GROUP = 256
_FIELDS = {"role", "sees"}


@dataclass(frozen=True)
class GroupGrant:
    """A role, and the sessions whose content it covers."""

    role: Role
    sight: Sight = EVERYTHING


GroupRoles = Mapping[str, GroupGrant]
"""Group → what it gives."""


def granted(groups: Collection[str], roles: GroupRoles) -> GroupGrant | None:
    """Return what a person of these *groups* may do; ``None`` where no group is listed.

    The highest role counts, with the sessions of the groups that give it. What no single group gives, several do not give together:
    an admin of some sessions who is a reviewer of all others is an admin of some.
    """
    held = [roles[group] for group in groups if group in roles]
    if not held:
        return None
    role = max((grant.role for grant in held), key=lambda one: ROLES.index(one.value))
    sights = [grant.sight for grant in held if grant.role is role]
    if not all(sight.is_limited for sight in sights):
        return GroupGrant(role)
    keys = frozenset[str]().union(*(sight.keys for sight in sights))
    return GroupGrant(role, Sight(keys, frozenset[str]().union(*(sight.agent_types for sight in sights))))


def read_group_roles(document: object) -> GroupRoles:
    """Return what *document* gives: a mapping with ``groups``: group → role, optional sees. Refused with OIDC_ROLES_INVALID."""
    if not isinstance(document, Mapping) or document.keys() != {"groups"}:
        raise _bad("the file", "a mapping with only the key groups")
    listed = document["groups"]
    if not isinstance(listed, Mapping) or not 0 < len(listed) <= MOST_GROUPS:
        raise _bad("groups", f"a mapping of 1 to {MOST_GROUPS} groups, each with a role and optional sees")
    return {_group(name): _grant(f"groups.{name}", fields) for name, fields in listed.items()}


def _group(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_GROUP:
        raise _bad("groups", f"names of 1 to {LONGEST_GROUP} characters; a number stands in quotes")
    return name


def _grant(place: str, fields: object) -> GroupGrant:
    if not isinstance(fields, Mapping) or "role" not in fields or not fields.keys() <= _FIELDS:
        raise _bad(place, "a mapping with role, optional sees, and nothing else")
    role = read_role(f"{place}.role", fields["role"], _bad)
    return GroupGrant(role, read_sight(f"{place}.sees", fields["sees"], _bad) if "sees" in fields else EVERYTHING)


def _bad(place: str, rule: str) -> Refused:
    return invalid("OIDC_ROLES_INVALID", f"{place}: expected {rule}", field=place)
