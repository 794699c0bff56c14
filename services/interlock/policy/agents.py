"""The registry of agent types behind the service's RPCs: messages to domain values and back (SPEC-012 §7)."""

from __future__ import annotations

import asyncio
from typing import Any

from prometheus_client import Counter

from interlock.api.policy.v1 import policy_pb2
from interlock.domain.agents import DIGEST, KEY_PREFIX, NAME, AgentType, Registry, read_registry
from interlock.domain.errors import forbidden, invalid
from interlock.policy import agents_file
from interlock.policy.watched import WatchedFile

IDENTIFIED = Counter(
    "interlock_policy_agents_identified", "Callers looked up in the registry, by outcome.", ["outcome"]
)


class AgentRegistry:
    """The registry in *file*; with ``None`` no agent is registered."""

    def __init__(self, file: WatchedFile[Registry] | None, *, required: bool) -> None:
        self._file, self._required = file, required
        self._empty = Registry([])

    @property
    def registry(self) -> Registry:
        """The registry in force."""
        return self._empty if self._file is None else self._file.now.value

    def identify(self, digest: str) -> policy_pb2.IdentifyAgentResponse:
        """Return the agent type of a key; an empty digest stands for a caller without a key."""
        if digest and not DIGEST.fullmatch(digest):
            raise invalid("INVALID_HASH", "a key's SHA-256 is 64 lower-case hex digits", field="api_key_sha256")
        agent = self.registry.with_key(digest)
        IDENTIFIED.labels("registered" if agent else "unregistered").inc()
        return policy_pb2.IdentifyAgentResponse(
            agent=to_message(agent) if agent else None, unregistered_allowed=not self._required
        )

    def list(self) -> policy_pb2.ListAgentsResponse:
        """Return every agent type in force, and the fault of the current file if it is not in force."""
        return policy_pb2.ListAgentsResponse(
            agents=map(to_message, self.registry.by_name.values()),
            registry_hash=self._file.now.hash if self._file else "",
            fault=self._file.now.fault if self._file else "",
        )

    async def register(self, message: policy_pb2.Agent) -> bool:
        """Write an agent type to the file and reload the file; return whether it replaced one."""
        file, agent = self._writable(), from_message(message)
        replaced = await asyncio.to_thread(agents_file.register, file.path, agent)
        await asyncio.to_thread(file.refresh)
        return replaced

    async def remove(self, name: str) -> bool:
        """Remove an agent type from the file and reload the file; return whether there was one."""
        file = self._writable()
        if not NAME.fullmatch(name):
            raise invalid("AGENTS_INVALID", "not a valid name of an agent type", field="agent_type")
        removed = await asyncio.to_thread(agents_file.remove, file.path, name)
        await asyncio.to_thread(file.refresh)
        return removed

    def _writable(self) -> WatchedFile[Registry]:
        if self._file is None:
            raise forbidden(
                "AGENTS_FILE_NOT_CONFIGURED", "there is no registry to write to", hint="set INTERLOCK_AGENTS_FILE"
            )
        return self._file


def to_message(agent: AgentType) -> policy_pb2.Agent:
    """Return an agent type as a message."""
    return policy_pb2.Agent(
        agent_type=agent.name,
        api_key_sha256=agent.keys,
        max_loop_depth=agent.max_loop_depth,
        max_delegations=agent.max_delegations,
        allowed_strategies=agent.strategies,
        safety_policy=agent.policy,
        roots_forbidden=agent.roots_forbidden,
        service_accounts=agent.accounts,
    )


def from_message(message: policy_pb2.Agent) -> AgentType:
    """Return the agent type that a message describes, validated by the same rules as the file (AGENTS_INVALID)."""
    fields: dict[str, Any] = {}
    if message.api_key_sha256 or not message.service_accounts:
        fields["api_key"] = [KEY_PREFIX + key for key in message.api_key_sha256]
    if message.service_accounts:
        fields["service_accounts"] = list(message.service_accounts)
    if message.HasField("max_loop_depth"):
        fields["max_loop_depth"] = message.max_loop_depth
    if message.HasField("max_delegations"):
        fields["max_delegations"] = message.max_delegations
    if message.allowed_strategies:
        fields["allowed_strategies"] = list(message.allowed_strategies)
    if message.safety_policy:
        fields["safety_policy"] = message.safety_policy
    if message.roots_forbidden:
        fields["roots"] = "forbidden"
    [agent] = read_registry({"agents": {message.agent_type: fields}}).by_name.values()
    return agent
