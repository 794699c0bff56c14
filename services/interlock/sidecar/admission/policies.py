"""The policy that a call is held to: its own layers, its agent type's, and that of the session or the parent (POL-5 to POL-8)."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable

from interlock.api.policy.v1 import policy_pb2
from interlock.domain.errors import forbidden
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.policy.directives import Oversight, kebab
from interlock.domain.policy.policy_text import parse
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import PolicyPeer
from interlock.sidecar.trail.response_headers import ResponseHeaders

MODES = ("", "permissive", "warn", "strict")
"""Safety modes, the strictest last."""


MOST_KEPT = 256
LONGEST_KEPT_S = 1.0


class Policies:
    """Asks policy for the effective policy of a call, and keeps an answer to the same question for a second.

    All that decides stands in the question, but for the deployment's default policy, which a policy service has for its life. A service
    that was started with another one is followed after that second, and ``agent_cache_s`` of less keeps for less.
    """

    def __init__(self, policy: PolicyPeer, *, keep_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self._policy, self._keep_s, self._now = policy, min(keep_s, LONGEST_KEPT_S), now
        self._kept: OrderedDict[bytes, tuple[float, policy_pb2.ResolveResponse]] = OrderedDict()

    async def resolve(
        self,
        asked: RequestHeaders,
        base: str | None,
        agent: policy_pb2.Agent,
        reply: ResponseHeaders,
        deadline: Deadline,
    ) -> policy_pb2.ResolveResponse:
        """Return the policy of the call's session from now on; *base* is that of the session, or of the parent.

        Refused with SAFETY_POLICY_INHERITANCE_VIOLATION when the call relaxes it, naming each directive with both values.
        """
        request = policy_pb2.ResolveRequest(
            base_text=base,
            policy_texts=_lines(asked, base),
            safety_mode=asked.safety_mode or "",
            oversight_mode=asked.oversight_mode or "",
            accept_risk=asked.accept_risk.name if asked.accept_risk else "",
            report_only_texts=asked.report_only,
            accept_quality=asked.accept_quality,
            agent_text=agent.safety_policy,
        )
        policy = await self._resolved(request, deadline)
        reply.set({"CRP-Safety-Policy-Applied": policy.policy_text or None})
        return policy

    async def _resolved(self, request: policy_pb2.ResolveRequest, deadline: Deadline) -> policy_pb2.ResolveResponse:
        question = request.SerializeToString(deterministic=True)
        until, kept = self._kept.get(question, (0.0, None))
        if kept is not None and self._now() < until:
            return kept
        answer = await self._policy.resolve(request, deadline)
        self._kept.pop(question, None)
        self._kept[question] = (self._now() + self._keep_s, answer)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return answer


def _lines(asked: RequestHeaders, base: str | None) -> list[str]:
    """Return the policy lines of a request. A report address joins them; alone, it must not stand for a new policy."""
    if asked.report_uri is None:
        return list(asked.policies)
    explicit = list(asked.policies) or ([base] if base else [])
    return [*explicit, f"report-uri {asked.report_uri}"]


def stricter(first: str, second: str) -> str:
    """Return the stricter of two safety modes; empty is none."""
    return max(first, second, key=MODES.index)


def check_layers(asked: RequestHeaders, *, mode: str, policy_text: str) -> None:
    """Refuse a sub-agent whose mode or oversight header is looser than what it inherits (SPEC-012 §3.1, §4.2).

    A looser mode would relax nothing, since modes only tighten. A caller that asks for one gets an error all the same.
    """
    relaxed = []
    if asked.safety_mode and MODES.index(asked.safety_mode) < MODES.index(mode):
        relaxed.append({"directive": "safety-mode", "parent": mode, "child": asked.safety_mode})
    # Without a setting it is auto (§4.2), and log-only is looser.
    set_to = parse(policy_text).oversight if policy_text else None
    held = Oversight.AUTO if set_to is None else set_to
    wanted = {kebab(one): one for one in Oversight}.get(asked.oversight_mode or "")
    if wanted is not None and wanted < held:
        relaxed.append({"directive": "oversight", "parent": kebab(held), "child": kebab(wanted)})
    if relaxed:
        first = relaxed[0]
        told = "; ".join(f"{one['directive']} {one['parent']} is relaxed to {one['child']}" for one in relaxed)
        raise forbidden(
            "SAFETY_POLICY_INHERITANCE_VIOLATION", f"the policy may only be tightened: {told}", directive=first["directive"],
            parent=first["parent"], child=first["child"], relaxations=json.dumps(relaxed, separators=(",", ":")),
        )  # fmt: skip
