"""Who somebody is by the claims of the provider: a name for the record, and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.approval import REVIEWER
from interlock.domain.errors import unauthenticated
from interlock.domain.policy.group_roles import LONGEST_GROUP

MOST_GROUPS = 2_000


@dataclass(frozen=True)
class ProviderPerson:
    """A person whom the provider knows."""

    name: str
    groups: frozenset[str]


def lacks(claims: Mapping[str, Any], name_claim: str, groups_claim: str) -> bool:
    """Tell whether userinfo has to be asked: the ID token names no groups, or no person that counts."""
    wanted = {name_claim, "email_verified"} if name_claim == "email" else {name_claim}
    return not wanted <= claims.keys() or _found(claims, groups_claim) is None


def identity_of(claims: Mapping[str, Any], name_claim: str, groups_claim: str) -> ProviderPerson:
    """Return the person of these claims. Refused with OIDC_NAME_INVALID, OIDC_EMAIL_NOT_VERIFIED or OIDC_GROUPS_MISSING."""
    name = claims.get(name_claim)
    if not isinstance(name, str) or not REVIEWER.fullmatch(name):
        message = f"the claim {name_claim} is missing, or no name of 1 to 128 letters, digits and ._@+-"
        raise unauthenticated("OIDC_NAME_INVALID", message, hint="set oidc_name_claim, or ask for its scope")
    if name_claim == "email" and claims.get("email_verified") not in (True, "true"):
        hint = "verify it there, or set oidc_name_claim to preferred_username or sub"
        raise unauthenticated("OIDC_EMAIL_NOT_VERIFIED", "the provider has not verified this e-mail address", hint=hint)
    return ProviderPerson(name, _groups(claims, groups_claim))


def _groups(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    found = _found(claims, claim)
    listed = [found] if isinstance(found, str) else found
    if not isinstance(listed, list) or len(listed) > MOST_GROUPS:
        why = ": the provider gives a reference instead" if "_claim_names" in claims else ""
        message = f"the claim {claim} is no list of at most {MOST_GROUPS} groups{why}"
        hint = "have the provider send that claim with the groups of this console alone, or set oidc_groups_claim"
        raise unauthenticated("OIDC_GROUPS_MISSING", message, hint=hint)
    return frozenset(one for one in listed if isinstance(one, str) and 0 < len(one) <= LONGEST_GROUP)


def _found(claims: Mapping[str, Any], claim: str) -> Any:
    """Return a claim by its whole name, which may have dots, or else by a path of names."""
    if claim in claims:
        return claims[claim]
    at: Any = claims
    for name in claim.split("."):
        at = at.get(name) if isinstance(at, Mapping) else None
    return at
