"""The allow-list of callers inside the mesh: a call that is not in the table is denied (SVC-6, reliability.md A-35, A-48).

A caller is the service that its verified certificate names. Without certificates, on loopback, the machine is the boundary:
any local process may call, and this table does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog
from prometheus_client import Counter

from interlock.domain.errors import forbidden
from interlock.runtime.tls.mutual import spiffe_id

log = structlog.get_logger()

DENIED = Counter(
    "interlock_callers_denied", "Calls inside the mesh that the caller may not make.", ["service", "method", "caller"]
)

MEMBERS = frozenset({"session", "policy", "dpe", "audit", "sidecar", "oversight", "decision", "envoy", "operator"})
"""All members of a mesh. ``operator`` is the operator's command line, ``envoy`` the proxy in front of a provider."""

UNKNOWN = "unknown"

_SIDECAR = frozenset({"sidecar"})
_OVERSIGHT = frozenset({"oversight"})
_DECISION = frozenset({"decision"})
_OPERATOR = frozenset({"operator"})
_ENVOY = frozenset({"envoy"})
_ALL = _SIDECAR | _OVERSIGHT | _OPERATOR

CALLERS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "session": {
        "StartSession": _SIDECAR,
        "OpenWindow": _SIDECAR,
        "CommitWindow": _SIDECAR,
        "FailWindow": _SIDECAR,
        "HoldWindow": _SIDECAR,
        "RenewWindow": _SIDECAR,
        "SpendWindow": _SIDECAR,
        "AbandonWindow": _SIDECAR,
        "Delegate": _SIDECAR,
        "ReadGrant": _SIDECAR,
        "VerifyResults": _SIDECAR,
        "AcknowledgeMoves": _SIDECAR,
        "TerminateSession": _SIDECAR | _OVERSIGHT,
        "RestoreTree": _SIDECAR,
        "RestoreTrees": _SIDECAR,
        "RestoreCaller": _SIDECAR,
        "GetCaller": _ALL,
        "StepKernel": _SIDECAR | _DECISION | _OVERSIGHT,
        "StepKernels": _SIDECAR | _DECISION | _OVERSIGHT,
        "AcknowledgeKernel": _SIDECAR | _DECISION | _OVERSIGHT,
        "RestoreKernel": _SIDECAR | _DECISION | _OVERSIGHT,
        "ReadKernel": _OVERSIGHT,
        "DecideCompensation": _OVERSIGHT,
        "GetSession": _ALL,
        "GetDag": _ALL,
    },
    "policy": {
        "Parse": _SIDECAR | _OPERATOR,
        "Compare": _SIDECAR | _OPERATOR,
        "Resolve": _SIDECAR,
        "Decide": _SIDECAR,
        "IdentifyAgent": _SIDECAR,
        "IdentifyPod": _SIDECAR,
        "VerifyApproval": _ALL,
        "ListAgents": _OPERATOR,
        "RegisterAgent": _OPERATOR,
        "RemoveAgent": _OPERATOR,
        "ListReviewers": _OVERSIGHT | _OPERATOR,
        "RegisterReviewer": _OPERATOR,
        "RemoveReviewer": _OPERATOR,
    },
    "dpe": {
        "ReservePlace": _SIDECAR,
        "ReleasePlace": _SIDECAR,
        "Analyze": _SIDECAR,
        "CheckSummary": _SIDECAR,
        "Describe": _SIDECAR | _OPERATOR,
    },
    "audit": {
        "Append": _SIDECAR,
        "Record": _SIDECAR,
        "GetWindow": _SIDECAR | _DECISION,
        "GetContents": _SIDECAR | _OVERSIGHT,
        "GetStanding": _SIDECAR,
        "DropContent": _SIDECAR,
        "KeepAnswer": _SIDECAR,
        "GetKeptAnswers": _SIDECAR,
        "DropKeptAnswer": _SIDECAR,
        "ReleaseHeld": _SIDECAR,
        "GetReport": _ALL,
        "GetTreeRecord": _ALL,
        "GetCallerRecord": _SIDECAR,
        "ListSessions": _OVERSIGHT | _OPERATOR,
        "ListWouldHaves": _OVERSIGHT,
        "GetTreeRecords": _ALL,
        "VerifyTree": _ALL,
        "Verify": _ALL,
        "Export": _OPERATOR,
        "GetHeld": _SIDECAR | _OVERSIGHT,
        "ListHeld": _SIDECAR | _OVERSIGHT,
        "DecideHeld": _OVERSIGHT,
        "RecordStop": _OVERSIGHT,
        "GetCheckpoint": _ALL,
        "ProveInclusion": _OPERATOR,
        "ProveConsistency": _OPERATOR,
        "ListEntries": _OPERATOR,
        "AcknowledgeTruncation": _OPERATOR,
        "EraseSession": _OPERATOR,
        "SealKernel": _SIDECAR | _DECISION | _OVERSIGHT,
        "GetKernelRecord": _SIDECAR | _DECISION | _OVERSIGHT,
        "ListStuck": _OVERSIGHT,
        "ListKernels": _OVERSIGHT,
        "ListExperiments": _OVERSIGHT,
        "ListCycles": _OVERSIGHT,
        "SealDecision": _DECISION,
        "GetDecisionRecord": _DECISION | _OVERSIGHT,
    },
    "oversight": {
        "Challenge": _OPERATOR,
        "SignIn": _OPERATOR,
        "ListHeld": _OPERATOR,
        "GetHeld": _OPERATOR,
        "Decide": _OPERATOR,
        "ListStuck": _OPERATOR,
        "GetStuck": _OPERATOR,
        "DecideStuck": _OPERATOR,
    },
    "externalprocessor": {"Process": _ENVOY},
    "authorization": {"Check": _ENVOY},
    "ratelimitservice": {"ShouldRateLimit": _ENVOY},
    # For monitoring. Each service answers for itself only, and reveals nothing about a session.
    "health": {"Check": MEMBERS, "Watch": MEMBERS, "List": MEMBERS},
    "serverreflection": {"ServerReflectionInfo": _OPERATOR},
}
"""Service → method → allowed callers."""


class Gate:
    """Admits the callers of one mesh by the SPIFFE id in their verified certificate."""

    def __init__(self, trust_domain: str) -> None:
        self._prefix = spiffe_id(trust_domain, "")

    def admit(self, service: str, method: str, peer: Mapping[str, list[bytes]]) -> str:
        """Return the caller. Refused with CALLER_NOT_ALLOWED. *peer* is gRPC's authentication context of the call."""
        caller = self.caller(peer)
        if caller not in CALLERS.get(service, {}).get(method, ()):
            DENIED.labels(service, method, caller).inc()
            log.warning("caller.denied", caller=caller, service=service, method=method)
            raise forbidden("CALLER_NOT_ALLOWED", "the caller may not make this call", caller=caller)
        return caller

    def caller(self, peer: Mapping[str, list[bytes]]) -> str:
        """Return the member that *peer* identifies; ``unknown`` for a foreign id, none, or several (X.509-SVID §2)."""
        ids = peer.get("peer_spiffe_id") or []
        text = ids[0].decode("utf-8", "replace") if len(ids) == 1 else ""
        name = text.removeprefix(self._prefix) if text.startswith(self._prefix) else ""
        return name if name in MEMBERS else UNKNOWN
