"""Scenario tables: what agents do one after the other, and what each of them must be told (style.md, Tests).

A table is a YAML list of scenarios. A scenario has a name, a sentence, requirement ids, settings of the mesh, registered
agents, and steps. A step is one of ``call``, ``together``, ``delegate``, ``start``, ``look``, ``end``, ``trail`` and
``provider``; what it expects stands below ``expect``. ``{agent.field}`` in a value is what that agent has learned.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import httpx
import yaml
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.paths import TESTS
from tests.support.sidecar.sidecar import token_of
from tests.support.sidecar.world import World

TABLES = TESTS / "scenarios"
_FIELD = re.compile(r"\{([a-z0-9_-]+)\.([a-zA-Z0-9_-]+)\}")
KINDS = ("call", "together", "delegate", "start", "look", "end", "trail", "provider")


@dataclass(frozen=True)
class Scenario:
    """One row of a table."""

    table: str
    name: str
    tells: str
    req: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    topologies: tuple[str, ...] = ("one",)

    @property
    def world(self) -> str:
        """What its mesh is made of: rows of one world can be played one after the other in it."""
        return json.dumps(dict(self.settings), sort_keys=True)

    def __str__(self) -> str:
        return f"{self.table}-{self.name}".replace(" ", "-")


def scenarios() -> list[Scenario]:
    """Every row of every table."""
    found = []
    for path in sorted(TABLES.glob("*.yaml")):
        for row in yaml.safe_load(path.read_text(encoding="utf-8")):
            lists = {name: tuple(row.pop(name)) for name in ("req", "steps", "topologies") if name in row}
            found.append(Scenario(table=path.stem, **lists, **row))
    return found


def registered() -> dict[str, Mapping[str, Any]]:
    """The agent types of all tables: one registry for all worlds. A name has one meaning."""
    found: dict[str, Mapping[str, Any]] = {}
    for scenario in scenarios():
        for name, fields in scenario.agents.items():
            if found.setdefault(name, fields) != fields:
                raise ValueError(f"two scenarios register {name} differently")
    return found


@dataclass
class Agent:
    """One agent: its sidecar, its key, and what it has learned."""

    name: str
    place: int
    key: str
    known: dict[str, str] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    """Headers of its next call alone: those of a delegation."""
    budgets: list[float] = field(default_factory=list)

    def learn(self, response: httpx.Response) -> None:
        headers = response.headers
        if "crp-set-session" in headers:
            self.known["token"] = token_of(response)
        for name, header in (
            ("session_id", "crp-context-session-id"), ("continuation_id", "crp-context-continuation-id"),
            ("hmac", "crp-provenance-hmac"), ("budget", "crp-agent-safety-budget"),
        ):  # fmt: skip
            if header in headers:
                self.known[name] = headers[header]


class Play:
    """One scenario in one world."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world, self.scenario = world, scenario
        self.agents: dict[str, Agent] = {}
        self.labels: dict[str, dict[str, str]] = {}
        self.asked_before = len(world.provider.received)

    async def play(self) -> None:
        """Take every step; then hold all sessions against what is true of every scenario."""
        for number, step in enumerate(self.scenario.steps, 1):
            (kind,) = [one for one in KINDS if one in step]
            try:
                await getattr(self, f"_{kind}")(step)
            except AssertionError as error:
                raise AssertionError(f"step {number} ({kind} {step[kind]}): {error}") from error
        await self._verify()

    def agent(self, name: str) -> Agent:
        """The agent of that name, which is its key as well."""
        if name not in self.agents:
            self.agents[name] = Agent(name, len(self.agents), name)
        return self.agents[name]

    async def _call(self, step: Mapping[str, Any]) -> None:
        response = await self._chat(step)
        check(response, self._filled(step.get("expect", {"status": 200})))

    async def _together(self, step: Mapping[str, Any]) -> None:
        calls = [one for given in step["together"] for one in [given] * int(given.get("times", 1))]
        responses = await asyncio.gather(*(self._chat(one) for one in calls))
        ends: dict[str, int] = {}
        for call, response in zip(calls, responses, strict=True):
            end = str(response.status_code) if response.status_code == 200 else response.json()["reason"]
            ends[end] = ends.get(end, 0) + 1
            check(response, self._filled(call.get("expect", {})))
        if "ends" in step:
            assert ends == {str(end): count for end, count in step["ends"].items()}, ends

    async def _chat(self, step: Mapping[str, Any]) -> httpx.Response:
        agent = self.agent(step["call"])
        known = self.labels[step["from"]] if "from" in step else agent.known
        headers = {"authorization": f"Bearer {step.get('key', agent.key)}"}
        if known.get("token") and step.get("token", True):
            headers["crp-session-token"] = known["token"]
        else:
            headers |= agent.first
        headers |= {name: str(value) for name, value in self._filled(step.get("send", {})).items()}
        text = f"Say: {step.get('says', 'LOW')}"
        body = {"model": "m", "messages": [{"role": "user", "content": text}], **self._filled(step.get("body", {}))}
        client = await self.world.client(step.get("at", agent.place))
        response = await client.post("/v1/chat/completions", json=body, headers=headers)
        if "as" in step or "from" in step:
            label = Agent(step.get("as", step.get("from")), agent.place, agent.key)
            label.learn(response)
            self.labels[label.name] = label.known
        else:
            agent.learn(response)
        if response.status_code == 200:
            agent.first = {}
        if "crp-context-session-id" in response.headers:
            agent.known.setdefault("session_id", response.headers["crp-context-session-id"])
            agent.known["session_id"] = response.headers["crp-context-session-id"]
        return response

    async def _delegate(self, step: Mapping[str, Any]) -> None:
        agent = self.agent(step["delegate"])
        headers = {"authorization": f"Bearer {agent.key}", "crp-session-token": agent.known.get("token", "none")}
        headers |= {name: str(value) for name, value in self._filled(step.get("send", {})).items()}
        wanted = {"agent_type": step["type"]} if "type" in step else {}
        client = await self.world.client(step.get("at", agent.place))
        response = await client.post("/crp/v3/delegations", json={**wanted, **step.get("body", {})}, headers=headers)
        check(response, self._filled(step.get("expect", {"status": 200})))
        if response.status_code == 200:
            child = self.agent(step["for"])
            child.first = dict(response.json()["headers"])
            child.known["grant"] = response.json()["grant"]

    async def _start(self, step: Mapping[str, Any]) -> None:
        """Start a session over gRPC, without a call."""
        agent = self.agent(step["start"])
        context = sidecar_pb2.CallContext(**self._filled(step.get("context", {})))
        request = sidecar_pb2.StartSessionRequest(context=context)
        if "grant" in agent.known:
            request.parent.grant = agent.known["grant"]
        if "below" in step:
            request.parent.session_token = self.agent(step["below"]).known["token"]
        stub = await self.world.stub(step.get("at", agent.place))
        expected = self._filled(step.get("expect", {}))
        try:
            started = await stub.StartSession(request, metadata=(("authorization", f"Bearer {agent.key}"),))
        except grpc.aio.AioRpcError as error:
            found = {"reason": _reason(error), "code": error.code().name}
        else:
            agent.known |= {"token": started.session_token, "session_id": started.session.session_id}
            found = {
                "budget": started.session.safety_budget_micros, "depth": started.session.loop_depth,
                "parent": started.session.parent_session_id, "policy": started.session.policy_text,
            }  # fmt: skip
        assert {name: found.get(name) for name in expected} == expected, found

    async def _look(self, step: Mapping[str, Any]) -> None:
        """Look at a session over HTTP."""
        agent = self.agent(step["look"])
        headers = {"authorization": f"Bearer {agent.key}", "crp-session-token": agent.known["token"]}
        client = await self.world.client(step.get("at", agent.place))
        response = await client.get(f"/crp/v3/session/{agent.known['session_id']}", headers=headers)
        check(response, {"status": 200, **self._filled(step["expect"])})

    async def _end(self, step: Mapping[str, Any]) -> None:
        agent = self.agent(step["end"])
        headers = {"authorization": f"Bearer {agent.key}", "crp-session-token": agent.known["token"]}
        client = await self.world.client(agent.place)
        response = await client.delete(f"/crp/v3/session/{agent.known['session_id']}", headers=headers)
        assert response.status_code == 200, response.text

    async def _trail(self, step: Mapping[str, Any]) -> None:
        """Expect events in a session's trail, in this order, others between them or not."""
        events = await self.world.trail(self.agent(step["trail"]).known["session_id"])
        left = iter(events)
        for wanted in step.get("holds", []):
            ((kind, fields),) = wanted.items()
            fields = self._filled(fields or {})
            assert any(
                name == kind and all(data.get(key) == value for key, value in fields.items()) for name, data in left
            ), f"no {kind} with {fields} in order in {events}"
        kinds = [name for name, _ in events]
        for kind in step.get("lacks", []):
            assert kind not in kinds, f"{kind} in {kinds}"

    async def _provider(self, step: Mapping[str, Any]) -> None:
        """Expect so many calls of the model provider so far."""
        assert len(self.world.provider.received) - self.asked_before == step["provider"]["calls"]

    async def _verify(self) -> None:
        """Every chain verifies from its stored bytes, whatever happened."""
        for session_id in {agent.known["session_id"] for agent in self.agents.values() if "session_id" in agent.known}:
            found = await self.world.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))
            sound = {common_pb2.CHAIN_INTEGRITY_VALID, common_pb2.CHAIN_INTEGRITY_UNVERIFIED}
            assert found.integrity in sound, found

    def _filled(self, value: Any) -> Any:
        """Put what agents have learned into the values of a step."""
        if isinstance(value, Mapping):
            return {key: self._filled(one) for key, one in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self._filled(one) for one in value]
        return _FIELD.sub(self._field, value) if isinstance(value, str) else value

    def _field(self, found: re.Match[str]) -> str:
        name, key = found.groups()
        return (self.labels.get(name) or self.agents[name].known)[key]


def check(response: httpx.Response, expected: Mapping[str, Any]) -> None:
    """Hold a response against what a step expects: status, reason, ``crp-*`` headers, and fields of the body by path."""
    found: dict[str, Any] = {}
    for name in expected:
        if name == "status":
            found[name] = response.status_code
        elif name.startswith(("crp-", "retry-")):
            found[name] = response.headers.get(name)
        else:
            found[name] = _at(response, name.removeprefix("body."))
    wrong = {name: (value, found[name]) for name, value in expected.items() if found[name] != value}
    assert not wrong, f"{ {name: f'wanted {w!r}, got {g!r}' for name, (w, g) in wrong.items()} } {response.text[:600]}"


def _at(response: httpx.Response, path: str) -> Any:
    value: Any = response.json()
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else (value or {}).get(part)
    return value


def _reason(error: grpc.aio.AioRpcError) -> str:
    info = error_details_pb2.ErrorInfo()
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        detail.Unpack(info)
    return info.reason
