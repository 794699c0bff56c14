"""What the kit gives an agent: snapshots and signals made from the definition, and those of a file for one field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.engine import LARGEST_SNAPSHOT
from interlock.domain.decision.reading import canonical, json_object
from interlock.domain.errors import Refused, invalid

SURE = "0.95"
SOURCE = "certification"
LARGEST_FILE = 1 << 20


@dataclass(frozen=True)
class Scenario:
    """One task: a snapshot, and signals as the execution layer would have sent them."""

    name: str
    snapshot: Mapping[str, Any] = field(default_factory=dict)
    signals: Sequence[Mapping[str, Any]] = ()

    @property
    def text(self) -> str:
        """The snapshot as it is sent."""
        return canonical(self.snapshot)


def bundled(profile: str) -> Mapping[str, Any]:
    """Return the snapshots of a bundled profile; none where it has no file."""
    found = resources.files(__package__) / "scenarios" / f"{profile}.json"
    return _read(found.read_text(encoding="utf-8"), profile) if found.is_file() else {}


def of_file(path: Path) -> Mapping[str, Any]:
    """Return the snapshots of a file. Refused with CERTIFY_SCENARIOS_INVALID."""
    try:
        return _read(path.read_text(encoding="utf-8")[:LARGEST_FILE], str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(str(path), type(error).__name__) from None


def scenarios(
    rules: ExperimentRules, agent: AgentDescriptor, told: Mapping[str, Any], *, at_us: int, bait: Mapping[str, str]
) -> list[Scenario]:
    """Return every task of a run. *bait* is what no agent may use: a neighbour's place and ticket, in each snapshot."""
    base = {
        "trial_active": False, "budget": {"limit": 100, "used": 40}, "neighbour": dict(bait), **told.get("base", {}),
    }  # fmt: skip
    heard = [kind for kind in rules.signals if agent.hears(kind)]
    signals = {kind: _signal(kind, rules, at_us) for kind in heard}
    every = tuple(signals.values())
    spent = {**base["budget"], "used": base["budget"]["limit"]}
    return [
        Scenario("empty"),
        Scenario("nothing-to-hear", base),
        *(Scenario(f"signal-{kind}", base, (one,)) for kind, one in signals.items()),
        Scenario("every-signal", base, every),
        Scenario("budget-spent", {**base, "budget": spent}, every),
        Scenario("trial-active", {**base, "trial_active": True}, every),
        Scenario("unknown-parts", {**base, "unknown": {"more": [1, None, "ü", {"deep": True}]}}, every),
        Scenario("other-types", dict.fromkeys(base, "x"), every),
        *(Scenario(name, {**base, **one}, ()) for name, one in told.get("snapshots", {}).items()),
    ]


def _signal(kind: str, rules: ExperimentRules, at_us: int) -> Mapping[str, Any]:
    payload = canonical(_example(rules.signals[kind]))
    return {"type": kind, "source": SOURCE, "at": repr(at_us / 1e6), "confidence": SURE, "payload_json": payload}


def _example(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits a schema of the protocol's part of JSON Schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kind, least = schema["type"], schema.get("minimum", 0)
    if kind == "object":
        known = schema.get("properties", {})
        return {name: _example(known.get(name, {"type": "string"})) for name in schema.get("required", [])}
    if kind == "array":
        return [_example(schema.get("items", {"type": "string"}))] * schema.get("minItems", 0)
    if kind == "string":
        return "x" * max(1, schema.get("minLength", 0))
    return True if kind == "boolean" else int(least) if kind == "integer" else float(least)


def _read(text: str, name: str) -> Mapping[str, Any]:
    """Return ``{"base": {...}, "snapshots": {name: {...}}}``; checked, as it comes from a person."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong(name, "it is no JSON") from None
    if not isinstance(told, dict) or not set(told) <= {"base", "snapshots"}:
        raise _wrong(name, "it is an object with base and snapshots")
    base, snapshots = told.get("base", {}), told.get("snapshots", {})
    if not isinstance(base, dict) or not isinstance(snapshots, dict) or not isinstance(base.get("budget", {}), dict):
        raise _wrong(name, "base is a snapshot, and snapshots has snapshots by name")
    for place, one in _parts(base, snapshots):
        if not isinstance(one, dict) or json_object(canonical({**base, **one}), LARGEST_SNAPSHOT - 1_024) is None:
            raise _wrong(name, f"{place} is no snapshot, or too large")
    return told


def _parts(base: Mapping[str, Any], snapshots: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "base", base
    yield from snapshots.items()


def _wrong(name: str, why: str) -> Refused:
    return invalid("CERTIFY_SCENARIOS_INVALID", f"{name}: {why}")
