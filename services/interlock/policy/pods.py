"""Which pod a sidecar is: its token, held to what the API server says of it (A-37)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Refused, forbidden, invalid, unauthenticated, unavailable
from interlock.domain.policy.pods import TOKEN, UID, PodIdentity, identified
from interlock.runtime.egress.kubernetes import Cluster, access_of_pod
from interlock.runtime.settings.model import Settings

log = structlog.get_logger()

IDENTIFIED = Counter(
    "interlock_policy_pods_identified",
    "Tokens of pods that were presented, by outcome: identified, or the reason.",
    ["outcome"],
)
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


class PodIdentities:
    """Identifies pods of *namespaces* by tokens for *audience*; without a cluster it identifies none."""

    def __init__(
        self, cluster: Cluster | None, *, audience: str = "", namespaces: frozenset[str] = frozenset()
    ) -> None:
        self._cluster, self._audience, self._namespaces = cluster, audience, namespaces

    async def identify(self, token: str, uid: str) -> PodIdentity:
        """Return the pod that a token is bound to. Nothing is remembered: a pod that is gone is refused from then on.

        Refused as ``domain.policy.pods.identified`` is, with POD_IDENTITY_OFF, and with POD_IDENTITY_UNVERIFIED where nobody can tell.
        """
        try:
            found = await self._identified(token, uid)
        except Refused as refused:
            IDENTIFIED.labels(refused.reason).inc()
            log.warning("pod.not_identified", reason=refused.reason, uid=uid if UID.fullmatch(uid) else "")
            raise
        IDENTIFIED.labels("identified").inc()
        return found

    async def close(self) -> None:
        """Close the connection to the API server."""
        if self._cluster is not None:
            await self._cluster.close()

    async def _identified(self, token: str, uid: str) -> PodIdentity:
        if self._cluster is None:
            hint = "set pod_identity_audience, or do not give sidecars a token"
            raise forbidden("POD_IDENTITY_OFF", "this mesh identifies no pods", hint=hint)
        if not UID.fullmatch(uid):
            raise invalid("POD_UID_INVALID", "the id of a pod is 1 to 64 letters, digits or hyphens", field="pod_uid")
        if not TOKEN.fullmatch(token):
            raise unauthenticated("POD_TOKEN_REJECTED", "what was presented is no token of a service account")
        status = await self._reviewed(self._cluster, token)
        return identified(status, audience=self._audience, namespaces=self._namespaces, uid=uid)

    async def _reviewed(self, cluster: Cluster, token: str) -> Mapping[str, Any]:
        """Return what the API server says. Where it says nothing that can be read, nobody is identified."""
        review = {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }  # fmt: skip
        try:
            status = (await cluster.post(REVIEWS, review)).get("status")
        except Refused as refused:
            log.warning("pod.unverified", reason=refused.reason, code=refused.metadata.get("code", ""))
            raise _unverified() from None
        if not isinstance(status, Mapping):
            raise _unverified()
        return status


def pod_identities(settings: Settings) -> PodIdentities:
    """Return what identifies pods, from the settings."""
    if not settings.pod_identity_audience:
        return PodIdentities(None)
    cluster = Cluster(access_of_pod(settings.kubernetes_url, settings.kubernetes_folder))
    named = frozenset(filter(None, settings.pod_identity_namespaces.split(",")))
    return PodIdentities(cluster, audience=settings.pod_identity_audience, namespaces=named)


def _unverified() -> Refused:
    return unavailable("POD_IDENTITY_UNVERIFIED", "the API server cannot be asked now which pod this is")
