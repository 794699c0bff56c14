"""The results of a session: answers, and delegations to pass on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from interlock.domain.headers import propagation
from interlock.domain.headers.propagation import Crossed, Direction, Fields


@dataclass(frozen=True)
class Answer:
    """A released answer with its headers and token."""

    completion: Mapping[str, Any]
    """The chat completion in the format of the OpenAI API."""
    headers: Mapping[str, str] = field(repr=False)
    """Response headers, names in lower case."""
    token: str = field(repr=False, default="")
    """Token that continues exactly this window."""

    @property
    def text(self) -> str:
        """Content of the first choice; empty when there is none, as with a tool call."""
        return self.completion["choices"][0]["message"].get("content") or ""

    @property
    def session_id(self) -> str:
        """Session of the answer."""
        return self.headers.get("crp-context-session-id", "")

    @property
    def continuation_id(self) -> str | None:
        """Pointer to its window; ``None`` when the session ends with this window."""
        return self.headers.get("crp-context-continuation-id")

    @property
    def hmac(self) -> str:
        """Window HMAC, by which a consumer names the answer."""
        return self.headers.get("crp-provenance-hmac", "")

    @property
    def risk(self) -> str:
        """LOW, MEDIUM, HIGH or CRITICAL."""
        return self.headers.get("crp-safety-hallucination-risk", "")

    @property
    def budget(self) -> Decimal:
        """Safety budget of the session after this answer, 0 to 1."""
        return Decimal(self.headers.get("crp-agent-safety-budget", "0"))

    @property
    def strategy(self) -> str:
        """Dispatch strategy that produced it."""
        return self.headers.get("crp-context-strategy", "")

    def upstream(self) -> dict[str, str]:
        """Return only the headers that go back to the orchestrator (SPEC-012 §3.2)."""
        return dict(propagation.crossing(self.headers.items(), Direction.UPSTREAM)[0])

    def as_result(self, sub_query: str = "") -> dict[str, str]:
        """Return the reference by which an orchestrator's request names it (AGT-4)."""
        named = {"session_id": self.session_id, "hmac": self.hmac}
        return {**named, "sub_query": sub_query} if sub_query else named


@dataclass(frozen=True)
class Delegation:
    """The right of one sub-agent to start one child session: the downstream set of SPEC-012 §3.1, with the grant.

    Over HTTP pass ``headers`` on unchanged; ``grpc_metadata``, ``mcp_meta`` and ``a2a_metadata`` carry the same fields.
    """

    fields: Fields = field(repr=False)
    expires_at: str = ""
    """ISO 8601, in UTC; empty on the receiving side, where the grant itself has it."""

    @classmethod
    def received(cls, headers: Iterable[tuple[str, str]]) -> Delegation | None:
        """Return the delegation in the headers of a request to a sub-agent; ``None`` when there is none."""
        return cls._crossed(propagation.from_http(headers, Direction.DOWNSTREAM))

    @classmethod
    def received_mcp(cls, meta: Mapping[str, object]) -> Delegation | None:
        """Return the delegation in the ``_meta`` of an MCP request."""
        return cls._crossed(propagation.from_mcp(meta, Direction.DOWNSTREAM))

    @classmethod
    def received_a2a(cls, metadata: Mapping[str, object]) -> Delegation | None:
        """Return the delegation in the metadata of an A2A message."""
        return cls._crossed(propagation.from_a2a(metadata, Direction.DOWNSTREAM))

    @classmethod
    def received_grpc(cls, metadata: Iterable[tuple[str, str | bytes]]) -> Delegation | None:
        """Return the delegation in the metadata of a gRPC call to a sub-agent."""
        return cls._crossed(propagation.from_grpc(metadata, Direction.DOWNSTREAM))

    @classmethod
    def _crossed(cls, crossed: Crossed) -> Delegation | None:
        return cls(crossed.fields) if crossed.get("CRP-Agent-Delegation-Grant") else None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the sub-agent's first call."""
        return dict(self.fields)

    @property
    def loop_depth(self) -> int:
        """Depth of the child below the root."""
        return int(self.headers.get("CRP-Agent-Loop-Depth", "0"))

    def grpc_metadata(self) -> Fields:
        """Return the metadata of a gRPC call that delegates."""
        return propagation.to_grpc(self.fields, Direction.DOWNSTREAM)

    def mcp_meta(self, meta: Mapping[str, object] | None = None) -> dict[str, object]:
        """Return the ``_meta`` of an MCP request that delegates, with the entries of *meta*."""
        return propagation.to_mcp(self.fields, Direction.DOWNSTREAM, meta=meta)

    def a2a_metadata(self, metadata: Mapping[str, object] | None = None) -> dict[str, object]:
        """Return the metadata of an A2A message that delegates, with the entries of *metadata*."""
        return propagation.to_a2a(self.fields, Direction.DOWNSTREAM, metadata=metadata)


def result_of(headers: Iterable[tuple[str, str]], sub_query: str = "") -> dict[str, str]:
    """Return the reference to a sub-agent's result from the headers of its response (SPEC-012 §3.2)."""
    crossed = propagation.from_http(headers, Direction.UPSTREAM)
    named = {
        "session_id": crossed.get("CRP-Context-Session-Id") or "",
        "hmac": crossed.get("CRP-Provenance-HMAC") or "",
    }
    return {**named, "sub_query": sub_query} if sub_query else named
