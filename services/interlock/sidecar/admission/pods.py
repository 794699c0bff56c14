"""The pod that a sidecar is in: named by policy for its service account's token, and by nothing that the agent sends.

The identity stands for ``pod_identity_cache_s`` and is verified anew before half of that is over. A token that is refused ends it at
once. Where policy or the API server cannot tell, calls are refused as soon as the time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import structlog
from prometheus_client import Gauge

from interlock.domain.errors import Kind, Refused, unavailable
from interlock.domain.policy.pods import PodIdentity
from interlock.runtime.egress.kubernetes import read_token
from interlock.runtime.keys.api_keys import ApiKeys, Caller
from interlock.runtime.rpc.peers import PolicyPeer

log = structlog.get_logger()

VERIFIED = Gauge(
    "interlock_sidecar_pod_verified", "1 while the pod of this sidecar is identified, 0 while its calls are refused."
)

AGAIN_S = 1.0
"""Pause after nobody could tell."""
REFUSED_AGAIN_S = 5.0
"""Pause after a token was refused: the kubelet may bring another one."""
FINAL = frozenset({Kind.UNAUTHENTICATED, Kind.FORBIDDEN, Kind.INVALID})


class OwnPod:
    """Who this sidecar's pod is, kept current by a task."""

    def __init__(
        self, policy: PolicyPeer, token_file: Path, uid: str, keep_s: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._policy, self._file, self._uid, self._keep_s, self._now = policy, token_file, uid, keep_s, now
        self._known: PodIdentity | None = None
        self._until = 0.0
        self._refused = _unverified("it has not been asked about yet")
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask for the first time, and go on asking."""
        await self.verify()
        self._task = asyncio.create_task(self._kept())

    async def close(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def identity(self) -> PodIdentity:
        """Return the pod. Refused as policy refused its token, or with POD_IDENTITY_UNVERIFIED."""
        if self._known is not None and self._now() < self._until:
            return self._known
        raise Refused(
            self._refused.kind, self._refused.reason, self._refused.message, metadata=dict(self._refused.metadata),
            retry_after_ms=self._refused.retry_after_ms,
        )  # fmt: skip

    def unready(self) -> Mapping[str, str]:
        """Return what is missing while the pod is not identified."""
        try:
            self.identity()
        except Refused as refused:
            return {"pod identity": f"{refused.reason}: {refused.message}"}
        return {}

    async def verify(self) -> float:
        """Ask policy which pod the token is of; return the seconds until it is to be asked again."""
        asked_at = self._now()
        try:
            token = await asyncio.to_thread(read_token, self._file)
            found = await self._policy.identify_pod(token, self._uid)
        except (OSError, ValueError) as error:
            return self._failed(_unverified(f"its token cannot be read: {type(error).__name__}"))
        except Refused as refused:
            return self._failed(refused)
        self._known = PodIdentity(found.namespace, found.service_account, found.pod_name, found.pod_uid)
        self._until = asked_at + self._keep_s
        VERIFIED.set(1)
        return self._keep_s / 2

    def _failed(self, refused: Refused) -> float:
        final = refused.kind in FINAL
        self._refused = refused if final else _unverified("policy or the API server cannot be asked")
        if final:
            self._known = None
        standing = self._known is not None and self._now() < self._until
        VERIFIED.set(int(standing))
        log.warning("pod.not_identified", reason=refused.reason)
        return REFUSED_AGAIN_S if final else AGAIN_S

    async def _kept(self) -> None:
        pause = self._keep_s / 2 if self._known else AGAIN_S
        while True:
            await asyncio.sleep(pause)
            pause = await self.verify()


class PodKeys(ApiKeys):
    """Callers of a sidecar whose pod is identified: whatever key they send is for the provider, and names nobody."""

    def __init__(self, pod: OwnPod) -> None:
        super().__init__(None)
        self._pod = pod

    def caller(self, authorization: Sequence[str]) -> Caller:
        """Return the pod as the caller. Refused as its identity is, and with API_KEY_INVALID for a header that holds no key."""
        known, sent = self._pod.identity(), super().caller(authorization)
        return Caller(known.scope, sent.key, digest=known.digest)

    def unready(self) -> Mapping[str, str]:
        """Return what is missing while the pod is not identified."""
        return self._pod.unready()

    async def close(self) -> None:
        """Ask no more who the pod is."""
        await self._pod.close()

    def vouched(self, known_by: str) -> Caller:
        """Return the pod as the caller: a gateway in it is a part of it."""
        del known_by
        known = self._pod.identity()
        return Caller(known.scope, None, digest=known.digest)


def _unverified(why: str) -> Refused:
    return unavailable("POD_IDENTITY_UNVERIFIED", f"which pod this is cannot be told now: {why}")
