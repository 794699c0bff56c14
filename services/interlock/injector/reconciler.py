"""Pods that run without their sidecar, looked for again and again: counted, told in their namespace, and evicted where the operator says so.

The webhook sees a pod once. What it did not see is found here: pods from before it was installed, or from while it was away.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter as Counts
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import structlog
from prometheus_client import Counter, Gauge

from interlock.domain.errors import Refused
from interlock.injector.census import Ungoverned, Why, census
from interlock.injector.rules import InjectorRules, Reconciling
from interlock.runtime.egress.kubernetes import Cluster, Json

log = structlog.get_logger()

UNGOVERNED = Gauge(
    "interlock_injector_ungoverned_pods",
    "Pods without the sidecar that they should have, at the last look, by reason.",
    ["reason"],
)
LOOKED_AT = Gauge(
    "interlock_injector_census_time_seconds", "When all pods were last looked at, seconds since 1970; 0: not yet."
)
EVICTED = Counter(
    "interlock_injector_evictions", "Pods without their sidecar that were to be evicted, by outcome.", ["outcome"]
)

OFF_S = 10.0
"""Pause before the rules are read again, where they ask for nothing."""
MOST_EVICTED = 10
"""In one round: a cluster is not emptied at once."""
MOST_TOLD = 100
"""Events in one round."""
GONE, TAKEN, NOT_NOW = "404", "409", "429"


class Reconciler:
    """Looks at all pods by the rules in force, in a task of its own."""

    def __init__(
        self, cluster: Cluster, rules: Callable[[], InjectorRules], now: Callable[[], float] = time.time
    ) -> None:
        self._cluster, self._rules, self._now = cluster, rules, now
        self._told: set[tuple[str, Why]] = set()
        self._since: dict[str, float] = {}
        """When the first pod of an owner was evicted: one that is younger lacks its sidecar again, and evicting it would help nobody."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look, and go on looking."""
        self._task = asyncio.create_task(self._kept())

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._cluster.close()

    async def look(self) -> Sequence[Ungoverned]:
        """Look once; return what was found. Refused as the API server is, and then nothing is counted anew."""
        rules = self._rules()
        asked = rules.reconcile
        if asked is None:
            return ()
        listed = await self._cluster.items("/api/v1/namespaces")
        pods = await self._cluster.items("/api/v1/pods")
        labels = {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in listed}
        found = list(census(pods, labels, rules, exempt={asked.namespace}))
        self._count(found)
        await self._tell(found)
        if asked.action == "evict":
            by_uid = {str(one["metadata"].get("uid")): one for one in pods}
            await self._evict([by_uid[one.uid] for one in found if one.why is Why.MISSING])
        return found

    async def _kept(self) -> None:
        while True:
            try:
                await self.look()
            except Refused as refused:
                log.warning("census.failed", reason=refused.reason, code=refused.metadata.get("code", ""))
            except Exception:  # what one look breaks on must not end all others
                log.exception("census.defect")
            asked: Reconciling | None = self._rules().reconcile
            await asyncio.sleep(asked.seconds if asked else OFF_S)

    def _count(self, found: Sequence[Ungoverned]) -> None:
        counts = Counts(one.why for one in found)
        for why in Why:
            UNGOVERNED.labels(why).set(counts[why])
        LOOKED_AT.set(self._now())

    async def _tell(self, found: Sequence[Ungoverned]) -> None:
        """Log what is new, and write an event beside the pod, as `kubectl describe` and `kubectl get events` show it."""
        new = [one for one in found if (one.uid, one.why) not in self._told]
        self._told &= {(one.uid, one.why) for one in found}
        for one in new[:MOST_TOLD]:
            log.warning("pod.ungoverned", reason=one.why, namespace=one.namespace, uid=one.uid)
            try:
                await self._cluster.post(f"/api/v1/namespaces/{one.namespace}/events", self._event(one))
            except Refused as refused:
                code = refused.metadata.get("code", "")
                if code not in {TAKEN, GONE}:  # else another injector has told it, or its namespace is gone
                    log.warning("pod.not_told", reason=refused.reason, code=code, uid=one.uid)
                    continue
            self._told.add((one.uid, one.why))

    def _event(self, one: Ungoverned) -> Json:
        at = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": one.namespace, "name": one.pod, "uid": one.uid}
        words = "".join(part.capitalize() for part in one.why.split("_"))
        return {
            "apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": words, "message": f"interlock: {one.why}: {one.detail}",
            "metadata": {"name": f"interlock-{one.uid}-{one.why.lower().replace('_', '-')}", "namespace": one.namespace},
            "involvedObject": about, "source": {"component": "interlock-injector"}, "reportingComponent": "interlock.dev/injector",
            "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        }  # fmt: skip

    async def _evict(self, pods: Sequence[Json]) -> None:
        """Evict pods that something creates anew, as disruption budgets let them; a bare one stays, since nothing would bring it back."""
        due = [pod for pod in pods if (owner := _owner(pod)) and self._is_older(pod, owner)]
        for pod in due[:MOST_EVICTED]:
            metadata = pod["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
            options = {"preconditions": {"uid": metadata["uid"]}}
            body = {
                "apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options,
                "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            }  # fmt: skip
            try:
                await self._cluster.post(path, body)
            except Refused as refused:
                code = refused.metadata.get("code", "")
                EVICTED.labels({NOT_NOW: "held", GONE: "gone", TAKEN: "gone"}.get(code, "refused")).inc()
                log.warning("pod.not_evicted", reason=refused.reason, code=code, uid=metadata["uid"])
                continue
            self._since.setdefault(_owner(pod), self._now())
            EVICTED.labels("evicted").inc()
            log.warning("pod.evicted", namespace=metadata["namespace"], uid=metadata["uid"])

    def _is_older(self, pod: Json, owner: str) -> bool:
        """Return whether a pod is from before its owner's first eviction; one from after it shows that the webhook does not see its like."""
        since = self._since.get(owner)
        return since is None or _created(pod) < since


def _owner(pod: Mapping[str, Json]) -> str:
    """Return the id of what creates a pod anew; "" for a bare one."""
    owners = pod["metadata"].get("ownerReferences") or []
    return next((str(one.get("uid")) for one in owners if one.get("controller")), "")


def _created(pod: Mapping[str, Json]) -> float:
    return datetime.fromisoformat(str(pod["metadata"]["creationTimestamp"])).timestamp()
