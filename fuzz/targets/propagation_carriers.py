"""What crosses between agents, over every carrier: HTTP, gRPC, MCP and A2A (HDR-1 to HDR-3)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from fuzz.reading import json_of, lines_of, told
from interlock.domain.headers import propagation
from interlock.domain.headers.propagation import Crossed, Direction

WORDS = (
    b"\nCRP-Agent-Safety-Budget: 0.5", b"\nCRP-Safety-Policy: halt-on HIGH", b"\nCRP-Agent-Session-Parent: crp_sess_",
    b"\nCRP-Agent-Loop-Depth: 1", b"\nCRP-Session-Token: ", b"\nCRP-Set-Session: ", b"\nbaggage: crp-a=1,b=2",
    b"\ntraceparent: 00-", b"io.crprotocol/", b"safety-policy", b"https://crprotocol.io/a2a/multi-agent-safety/v3",
    b"crp-agent-delegation-grant",
)  # fmt: skip
_ALPHABET = frozenset(map(chr, range(32, 127)))


def TestOneInput(data: bytes) -> None:
    """What came over goes out and comes over again as it was, over every carrier; nothing else of ours does."""
    kind, rest = data[:1], data[1:]
    direction = Direction.UPSTREAM if kind.isupper() else Direction.DOWNSTREAM
    if kind.lower() == b"m":
        found = _of_object(rest, lambda value: propagation.from_mcp(value, direction))
    elif kind.lower() == b"a":
        found = _of_object(rest, lambda value: propagation.from_a2a(value, direction))
    else:
        found = told(lambda: propagation.from_http(lines_of(rest), direction))
    if found is not None:
        _crosses_again(found, direction)


def _of_object(data: bytes, read: Callable[[Mapping[str, object]], Crossed]) -> Any:
    value = json_of(data)
    return told(lambda: read(value)) if isinstance(value, dict) else None


def _crosses_again(crossed: Crossed, direction: Direction) -> None:
    fields, trace = crossed.fields, crossed.trace
    allowed = set(propagation.CROSSING[direction])
    assert {name for name, _ in fields} <= allowed
    assert all(set(value) <= _ALPHABET for _, value in fields)
    assert not {member.split("=")[0].lower()[:4] for member in trace.baggage.split(",")} & {"crp-", "crp_"}
    assert propagation.from_http(propagation.to_http(fields, direction, trace), direction).fields == fields
    over_grpc = propagation.from_grpc(propagation.to_grpc(fields, direction, trace), direction)
    assert (over_grpc.fields, over_grpc.dropped) == (fields, ())
    over_mcp = propagation.from_mcp(propagation.to_mcp(fields, direction, trace), direction)
    assert sorted(over_mcp.fields) == sorted(fields)
    over_a2a = propagation.from_a2a(propagation.to_a2a(fields, direction, trace), direction)
    assert sorted(over_a2a.fields) == sorted(fields)
    assert over_a2a.trace == over_mcp.trace == over_grpc.trace


def seeds() -> dict[str, bytes]:
    """A delegation and a result over each carrier, with things beside them that must not cross."""
    down = [
        ("CRP-Agent-Session-Parent", "crp_sess_" + "0a" * 16), ("CRP-Agent-Loop-Depth", "1"),
        ("CRP-Agent-Safety-Budget", "0.95"), ("CRP-Safety-Policy", "halt-on HIGH"), ("CRP-Safety-Policy", "block-pii"),
        ("CRP-Session-Token", "secret.secret"), ("traceparent", f"00-{'0a' * 16}-{'0b' * 8}-01"), ("baggage", "crp-a=1,b=2"),
    ]  # fmt: skip
    up = [
        ("CRP-Agent-Safety-Budget", "0.80"), ("CRP-Safety-Hallucination-Risk", "HIGH"),
        ("CRP-Context-Session-Id", "crp_sess_" + "0a" * 16), ("CRP-Quality-Score", "0.9"), ("CRP-Set-Session", "token=a"),
    ]  # fmt: skip
    lines = {"h": down, "H": up}
    kept = propagation.from_http(down, Direction.DOWNSTREAM)
    mcp = propagation.to_mcp(kept.fields, Direction.DOWNSTREAM, kept.trace, meta={"other": 1})
    a2a = propagation.to_a2a(kept.fields, Direction.DOWNSTREAM, kept.trace)
    return {
        "down_http": b"h" + "\n".join(f"{name}: {value}" for name, value in lines["h"]).encode(),
        "up_http": b"H" + "\n".join(f"{name}: {value}" for name, value in lines["H"]).encode(),
        "down_mcp": b"m" + json.dumps(mcp).encode(),
        "down_a2a": b"a" + json.dumps(a2a).encode(),
        "nested_mcp": b'm{"io.crprotocol/safety-policy": [["halt-on HIGH"]]}',
        "a2a_of_text": b'a{"https://crprotocol.io/a2a/multi-agent-safety/v3": "x"}',
    }
