"""Trails of an agent tree: an orchestrator, two specialists and a helper of the first, sealed by a real service.

::

    1 root ── 2 legal ── 4 helper
        └──── 3 tax
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from tests.support.audit.audit import Service, event, report, session_id, window, window_id

ROOT, LEGAL, TAX, HELPER = 1, 2, 3, 4
PARENTS = {LEGAL: ROOT, TAX: ROOT, HELPER: LEGAL}
TYPES = {ROOT: "orchestrator", LEGAL: "specialist_legal", TAX: "specialist_tax", HELPER: ""}
FIRST = "first"
"""Stands for the HMAC of a session's first window."""
DEPTHS = {ROOT: 0, LEGAL: 1, TAX: 1, HELPER: 2}


@dataclass
class Spoiled:
    """What a dishonest or mistaken writer puts in place of the truth; keys are numbers of sessions."""

    created: dict[int, dict[str, Any]] = field(default_factory=dict)
    started: dict[int, dict[str, Any]] = field(default_factory=dict)
    results: dict[int, dict[str, Any]] = field(default_factory=dict)
    linked: dict[int, dict[str, Any]] = field(default_factory=dict)
    not_started: frozenset[int] = frozenset()
    not_recorded: frozenset[int] = frozenset()
    not_covered: frozenset[int] = frozenset()


@dataclass
class Grown:
    """A tree that was sealed; the latest answer of each session by its number."""

    service: Service
    spoiled: Spoiled
    tips: dict[int, audit_pb2.AppendResponse] = field(default_factory=dict)
    firsts: dict[int, str] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    async def create(self, number: int) -> None:
        """Begin a session, as its parent's sidecar and its own do."""
        parent, data = PARENTS.get(number), {"session_id": session_id(number), "agent_type": TYPES[number]}
        if parent is not None:
            grant = f"grant{number}"
            data |= {"root_session_id": session_id(ROOT), "parent_session_id": session_id(parent), "grant_id": grant}
            data |= {"loop_depth": DEPTHS[number]}
            started = {"session_id": session_id(number), "agent_type": TYPES[number], "grant_id": grant}
            if number not in self.spoiled.not_started:
                await self.record("SUB_AGENT_STARTED", {**started, **self.spoiled.started.get(number, {})}, parent)
        await self.record("SESSION_CREATED", {**data, **self.spoiled.created.get(number, {})}, number)

    async def record(self, kind: str, data: dict[str, Any], session: int) -> None:
        answer = await self.service.record(event(kind, json.dumps(data)), session=session)
        assert not answer.HasField("refusal"), answer.refusal

    async def say(self, number: int, *consumed: int) -> None:
        """Seal the next window of a session, made from the latest results of other sessions."""
        at = self.counts.get(number, 0) + 1
        found, events = report(), [event("DISPATCH_COMPLETED")]
        for child in consumed:
            values = {
                "session_id": session_id(child), "window_id": window_id(self.counts[child], child),
                "hmac": self.tips[child].hmac, "chain_tip": self.tips[child].hmac,
            }  # fmt: skip
            recorded = {**values, **self.spoiled.results.get(child, {})}
            recorded["chain_tip"] = recorded["chain_tip"].replace(FIRST, self.firsts[child])
            if child not in self.spoiled.not_recorded:
                data = {f"sub_agent_{name}": value for name, value in recorded.items()} | {"agent_type": TYPES[child]}
                events.append(event("SUB_AGENT_RESULT", json.dumps(data)))
            if child not in self.spoiled.not_covered:
                linked = {**recorded, **self.spoiled.linked.get(child, {})}
                found.linked_results.append(dpe_pb2.LinkedResult(**linked, agent_type=TYPES[child]))
        parent = self.tips[number].hmac if at > 1 else ""
        answer = await self.service.stub.Append(window(at, parent, session=number, report=found, events=events))
        assert not answer.HasField("refusal"), answer.refusal
        self.tips[number], self.counts[number] = answer, at
        self.firsts.setdefault(number, answer.hmac)


async def grow(service: Service, spoiled: Spoiled | None = None) -> Grown:
    """Seal the whole tree: ten windows in four sessions, three consumed results."""
    tree = Grown(service, spoiled or Spoiled())
    await tree.create(ROOT)
    await tree.say(ROOT)
    await tree.create(LEGAL)
    await tree.say(LEGAL)
    await tree.create(HELPER)
    await tree.say(HELPER)
    await tree.say(HELPER)
    await tree.say(LEGAL, HELPER)
    await tree.create(TAX)
    await tree.say(TAX)
    await tree.say(ROOT, LEGAL, TAX)
    await tree.say(HELPER)  # goes on after its result was consumed
    await tree.say(LEGAL)
    await tree.say(ROOT)
    return tree
