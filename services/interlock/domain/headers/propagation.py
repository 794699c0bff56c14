"""What crosses from one agent to another, and what never does (SPEC-012 §3; HDR-1 to HDR-3).

Each direction has one allow-list. The same names cross in every carrier (HTTP headers, gRPC metadata, MCP ``_meta``, A2A
metadata), and all other names are dropped, both outbound and inbound. Values that cross must match the grammar of their header,
so that no carrier brings in what a header could not. Trace context and baggage travel along; baggage never holds CRP values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from interlock.domain.budget import Micros, as_decimal
from interlock.domain.errors import Refused, invalid
from interlock.domain.headers import headers
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX

Fields = tuple[tuple[str, str], ...]
"""Headers under the names of the specification, in order. A policy may have several lines."""

MCP_PREFIX = "io.crprotocol/"
"""Prefix of the CRP keys in MCP ``_meta``: reverse DNS, and none of the prefixes that MCP reserves."""

A2A_EXTENSION = "https://crprotocol.io/a2a/multi-agent-safety/v3"
"""Key of the CRP object in A2A metadata, and the URI that an agent card declares."""


class Direction(Enum):
    """The direction in which a header crosses."""

    DOWNSTREAM = "downstream"
    """From an orchestrator to its sub-agent (§3.1)."""
    UPSTREAM = "upstream"
    """From a sub-agent back to its orchestrator (§3.2)."""


CROSSING: Mapping[Direction, tuple[str, ...]] = {
    Direction.DOWNSTREAM: (
        "CRP-Agent-Safety-Budget", "CRP-Safety-Policy", "CRP-Agent-Session-Parent", "CRP-Agent-Loop-Depth",
        "CRP-Safety-Mode", "CRP-Compliance-Data-Residency",
        # Not in §3.1: it proves the parent that §3.1 only names.
        "CRP-Agent-Delegation-Grant",
    ),
    Direction.UPSTREAM: (
        "CRP-Agent-Safety-Budget", "CRP-Safety-Hallucination-Risk", "CRP-Provenance-HMAC", "CRP-Provenance-Chain-Integrity",
        "CRP-Compliance-Audit-Trail-URI", "CRP-Quality-Score",
        # Not in §3.2: the session of the HMAC, without which the HMAC cannot be looked up (§8.1).
        "CRP-Context-Session-Id",
    ),
}  # fmt: skip

NEVER = ("CRP-Session-Token", "CRP-Context-ETag", "CRP-Context-Quality-Tier", "CRP-Set-Session")
"""The headers that §3.3 names. A header on no list stays behind all the same."""

_BY_NAME = {direction: {name.lower(): name for name in names} for direction, names in CROSSING.items()}
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_PRINTABLE = re.compile(r"[\x20-\x7e]*", re.ASCII)
_TRACESTATE_MEMBERS, _BAGGAGE_MEMBERS, _BAGGAGE_BYTES = 32, 64, 8192
_TRACED = ("traceparent", "tracestate", "baggage")


@dataclass(frozen=True)
class Trace:
    """W3C trace context and baggage; empty without one."""

    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Trace:
        """Return the valid trace values in *values*. Invalid ones are dropped, as W3C requires of a receiver."""
        parent, state, baggage = (_text(values.get(name)) for name in _TRACED)
        known = bool(_TRACEPARENT.fullmatch(parent))
        return cls(
            traceparent=parent if known else "",
            tracestate=state if known and len(state.split(",")) <= _TRACESTATE_MEMBERS else "",
            baggage=_without_ours(baggage),
        )

    def values(self) -> dict[str, str]:
        """Return the present values by name."""
        found = {"traceparent": self.traceparent, "tracestate": self.tracestate, "baggage": self.baggage}
        return {name: value for name, value in found.items() if value}


@dataclass(frozen=True)
class Crossed:
    """The headers that crossed, and the names that were left behind."""

    fields: Fields
    trace: Trace
    dropped: tuple[str, ...]
    """CRP names that must not cross, in lower case."""

    def get(self, name: str) -> str | None:
        """Return the value of a single-line header; ``None`` when it did not cross."""
        return next((value for known, value in self.fields if known.lower() == name.lower()), None)


def delegated(
    *, parent: str, grant: str, loop_depth: int, budget: Micros, policy: str, mode: str, residency: str
) -> Fields:
    """Return the headers that a sub-agent's first call must carry. *loop_depth* is the sub-agent's own: its parent's plus one."""
    values = {
        "CRP-Agent-Session-Parent": parent,
        "CRP-Agent-Delegation-Grant": grant,
        "CRP-Agent-Loop-Depth": str(loop_depth),
        "CRP-Agent-Safety-Budget": as_decimal(budget),
        "CRP-Safety-Policy": policy,
        "CRP-Safety-Mode": mode,
        "CRP-Compliance-Data-Residency": residency,
    }
    return tuple((name, value) for name, value in values.items() if value)


def crossing(fields: Iterable[tuple[str, str]], direction: Direction) -> tuple[Fields, tuple[str, ...]]:
    """Return the *fields* that cross, and the CRP names that do not.

    Refused with INVALID_HEADER, DUPLICATE_HEADER or HEADER_TOO_LARGE when a field that crosses is malformed: leaving out an
    unreadable policy would relax it.
    """
    kept: list[tuple[str, str]] = []
    dropped: list[str] = []
    for name, value in fields:
        known = _BY_NAME[direction].get(name.lower())
        if known:
            kept.append((known, value.strip(" ")))
        elif headers.is_ours(name):
            dropped.append(name.lower())
    _check(kept, direction)
    return tuple(kept), tuple(dict.fromkeys(dropped))


def to_http(fields: Iterable[tuple[str, str]], direction: Direction, trace: Trace | None = None) -> Fields:
    """Return the HTTP headers for the *fields* that cross."""
    return (*crossing(fields, direction)[0], *_beside(trace))


def from_http(lines: Iterable[tuple[str, str]], direction: Direction) -> Crossed:
    """Return what crosses in the header *lines* of a request or a response."""
    found = [(name.lower(), value) for name, value in lines]
    fields, dropped = crossing(found, direction)
    return Crossed(fields, Trace.of(_joined(found)), dropped)


def to_grpc(fields: Iterable[tuple[str, str]], direction: Direction, trace: Trace | None = None) -> Fields:
    """Return the gRPC metadata for the *fields* that cross, with keys in lower case."""
    return tuple((name.lower(), value) for name, value in to_http(fields, direction, trace))


def from_grpc(metadata: Iterable[tuple[str, str | bytes]], direction: Direction) -> Crossed:
    """Return what crosses in gRPC *metadata*. A binary CRP value does not cross."""
    lines = list(metadata)
    found = from_http([(key, value) for key, value in lines if isinstance(value, str)], direction)
    binary = tuple(key.lower() for key, value in lines if not isinstance(value, str) and headers.is_ours(key))
    return Crossed(found.fields, found.trace, (*found.dropped, *binary))


def to_mcp(
    fields: Iterable[tuple[str, str]],
    direction: Direction,
    trace: Trace | None = None,
    *,
    meta: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return an MCP ``_meta`` for the *fields* that cross. CRP keys already in *meta* are replaced."""
    kept = {key: value for key, value in (meta or {}).items() if not key.startswith(MCP_PREFIX) and key not in _TRACED}
    own = {MCP_PREFIX + _short(name): value for name, value in _by_name(crossing(fields, direction)[0]).items()}
    return {**kept, **own, **dict(_beside(trace))}


def from_mcp(meta: Mapping[str, object], direction: Direction) -> Crossed:
    """Return what crosses in the ``_meta`` of an MCP request or result."""
    ours = {f"crp-{key.removeprefix(MCP_PREFIX)}": value for key, value in meta.items() if key.startswith(MCP_PREFIX)}
    return _from_object(ours, meta, direction)


def to_a2a(
    fields: Iterable[tuple[str, str]],
    direction: Direction,
    trace: Trace | None = None,
    *,
    metadata: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the metadata of an A2A message or task, with the *fields* that cross under the extension's URI."""
    own = {name.lower(): value for name, value in _by_name(crossing(fields, direction)[0]).items()}
    return {**(metadata or {}), A2A_EXTENSION: {**own, **dict(_beside(trace))}}


def from_a2a(metadata: Mapping[str, object], direction: Direction) -> Crossed:
    """Return what crosses in the metadata of an A2A message or task. Refused with INVALID_HEADER when the CRP value is no object."""
    held = metadata.get(A2A_EXTENSION, {})
    if not isinstance(held, Mapping):
        raise _malformed(A2A_EXTENSION)
    return _from_object({key: value for key, value in held.items() if key not in _TRACED}, held, direction)


def _from_object(ours: Mapping[str, object], traced: Mapping[str, object], direction: Direction) -> Crossed:
    lines: list[tuple[str, str]] = []
    for name, value in ours.items():
        for line in value if isinstance(value, list) else [value]:
            if not isinstance(line, str):
                raise _malformed(name)
            lines.append((name, line))
    fields, dropped = crossing(lines, direction)
    return Crossed(fields, Trace.of(traced), dropped)


def _by_name(fields: Fields) -> dict[str, str | list[str]]:
    """Return one entry per name. Several lines of a name form a list."""
    found: dict[str, str | list[str]] = {}
    for name, value in fields:
        before = found.get(name)
        found[name] = value if before is None else [*([before] if isinstance(before, str) else before), value]
    return found


def _check(kept: Sequence[tuple[str, str]], direction: Direction) -> None:
    if direction is Direction.DOWNSTREAM:
        headers.read(kept)
        return
    if len({name for name, _ in kept}) < len(kept):
        raise invalid("DUPLICATE_HEADER", "a header that crosses was given more than once")
    for name, value in kept:
        if not RESPONSE_SYNTAX[name].fullmatch(value):
            raise _malformed(name.lower())


def _malformed(name: str) -> Refused:
    shown = name if re.fullmatch(r"[A-Za-z0-9/:._-]{1,80}", name) else "crp-?"
    return invalid("INVALID_HEADER", f"{shown} does not have the form of its header", header=shown)


def _beside(trace: Trace | None) -> Fields:
    """Return the trace after validation: a trace that a caller built by hand follows the same rules."""
    return tuple(Trace.of(trace.values()).values().items()) if trace else ()


def _joined(lines: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return one value per trace header. Several lines of a list form one list; two lines of traceparent count as none."""
    found: dict[str, str] = {}
    for name, value in lines:
        if name in _TRACED:
            found[name] = f"{found[name]},{value}" if name in found else value
    return found


def _without_ours(baggage: str) -> str:
    """Return the members of *baggage* without CRP ones: baggage goes wherever a request goes, including providers (HDR-5)."""
    members = [member.strip() for member in baggage.split(",") if member.strip()]
    if len(baggage) > _BAGGAGE_BYTES or len(members) > _BAGGAGE_MEMBERS:
        return ""
    return ",".join(member for member in members if not re.match(r"crp\b|crp_", member, re.IGNORECASE))


def _short(name: str) -> str:
    return name.lower().removeprefix("crp-")


def _text(value: object) -> str:
    return value.strip(" ") if isinstance(value, str) and _PRINTABLE.fullmatch(value) else ""
