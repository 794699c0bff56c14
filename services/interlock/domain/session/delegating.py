"""What the ledger and the store tell each other when a session delegates (SPEC-007 §5)."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.domain.budget import Micros
from interlock.domain.session.state import PolicyText, Status, Terms


@dataclass(frozen=True)
class Delegated:
    """What a verified grant brings to the creation of a child; *parent* are the terms of its parent, which never change."""

    parent: Terms
    grant_id: str
    approval_id: str
    parent_policy_hash: str
    """Policy of the parent that the child's was resolved against."""


@dataclass(frozen=True)
class ParentView:
    """What is looked at of a session before something is delegated by it."""

    terms: Terms
    policy: PolicyText
    status: Status
    budget: Micros
    delegations: int
    grant_used: bool
    approval_used: bool
    top: int
    pointed_hmac: str
    """HMAC of the window that the presented pointer leads to; empty when there is none."""
