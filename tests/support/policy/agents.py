"""Registries, reviewers and approvals for tests."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.domain import approval
from interlock.domain.approval import Approval
from interlock.policy.reviewers import key_text

NOW_S = 1_779_703_200  # 2026-05-25T10:00:00Z
SESSION = "crp_sess_" + "1" * 32
APPROVAL = "crp_appr_" + "2" * 32
REVIEWER = "reviewer@company.com"


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def fields(key: str, **changes) -> dict:
    return {"api_key": f"sha256:{digest(key)}", **changes}


SPECIFICATION = {
    "agents": {
        "orchestrator": fields(
            "crp_gw_prod_orch_1",
            max_loop_depth=3,
            max_delegations=5,
            allowed_strategies=["push", "reflexive", "fan-out", "fan-in"],
            safety_policy="halt-on CRITICAL; require-grounding 0.80",
        ),
        "specialist_legal": fields(
            "crp_gw_prod_legal_1",
            max_loop_depth=1,
            max_delegations=0,
            allowed_strategies=["push", "reflexive"],
            safety_policy="halt-on HIGH; require-grounding 0.90; block-fabrication",
        ),
    }
}
"""SPEC-012 §7.1 as written there, with the keys hashed."""


def write(path: Path, document: object) -> Path:
    """Write *document* as YAML; JSON is some."""
    path.write_text(json.dumps(document))
    return path


def private_key(number: int = 1) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def reviewers(**names: Ed25519PrivateKey) -> dict:
    keys = names or {REVIEWER: private_key()}
    return {
        "reviewers": {name: {"public_key": key_text(key.public_key().public_bytes_raw())} for name, key in keys.items()}
    }


def approved(*, key: Ed25519PrivateKey | None = None, **changes) -> str:
    """Return the token of an approval of a delegation to a legal specialist, signed by the reviewer."""
    values = {
        "approval_id": APPROVAL,
        "reviewer": REVIEWER,
        "action": approval.DELEGATE,
        "scope": {"session": SESSION, "agent": "specialist_legal"},
        "issued_at": NOW_S,
        "expires_at": NOW_S + 900,
        **changes,
    }
    payload = approval.canonical_payload(Approval(**values))
    return approval.token(payload, (key or private_key()).sign(approval.signed_bytes(payload)))
