"""Conversations as data: what a user says, which tools the agent has, and what a good model answers.

A scenario is a YAML file below ``scenarios``. Its answers are written by hand, as an assistant would write them: they paraphrase,
derive, cite and use markdown. A fault replaces the answer, or the tool call, of one turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "scenarios"
DEV, HELD = Path(__file__).parent / "dev", Path(__file__).parent / "held"
"""Conversations that only ``python -m bench conversations`` has: some that rules of the judge were written on, and some that none was,
of which it prints figures and no row."""

TYPES = {"string": "string", "number": "number", "integer": "integer", "boolean": "boolean"}

Call = tuple[str, Mapping[str, Any]]
Round = tuple[Call, ...]
"""The calls of one answer: most often one, more where a model calls tools in parallel."""


@dataclass(frozen=True)
class Turn:
    """One thing that the user says, and what a good model does about it."""

    number: int
    kind: str
    """What the turn exercises, such as small talk, tool, citations, follow-up, code, json, table, refusal, language."""
    user: str
    says: str
    rounds: tuple[Round, ...] = ()
    fields: Mapping[str, str] | None = None
    """Field → JSON type of a structured answer; ``says`` is then its JSON text."""


@dataclass(frozen=True)
class Fault:
    """What a bad model does at one turn instead."""

    turn: int
    kind: str
    says: str | None = None
    rounds: tuple[Round, ...] | None = None


@dataclass(frozen=True)
class Scenario:
    """A conversation, the tools of its agent, and the faults that may be planted in it."""

    name: str
    field: str
    system: str
    tools: Mapping[str, Mapping[str, Any]]
    turns: tuple[Turn, ...]
    faults: tuple[Fault, ...]

    def case(self, *, upto: int | None = None) -> dict[str, Any]:
        """Return what an agent is told: instructions, tools with their data, the user's turns."""
        turns = [turn for turn in self.turns if upto is None or turn.number <= upto]
        return {
            "system": self.system,
            "tools": self.tools,
            "turns": [{"number": t.number, "user": t.user, "fields": t.fields} for t in turns],
        }


def load(name: str, folder: Path = FOLDER) -> Scenario:
    """Return the scenario of that *name*. ValueError where a text would not tell its turn from another."""
    told = yaml.safe_load((folder / f"{name}.yaml").read_text(encoding="utf-8"))
    turns = tuple(_turn(number, one) for number, one in enumerate(told["turns"], 1))
    faults = tuple(_fault(one) for one in told["faults"])
    scenario = Scenario(name, told["field"], told["system"].strip(), told.get("tools") or {}, turns, faults)
    _check(scenario)
    return scenario


def names() -> list[str]:
    """Return the names of all scenarios, in order."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def _turn(number: int, told: Mapping[str, Any]) -> Turn:
    says = _json(told["json"]) if "json" in told else told["says"].strip()
    return Turn(number, told["kind"], told["user"].strip(), says, _rounds(told.get("calls", ())), told.get("fields"))


def _fault(told: Mapping[str, Any]) -> Fault:
    rounds = _rounds(told["calls"]) if "calls" in told else None
    return Fault(told["turn"], told["kind"], told["says"].strip() if "says" in told else None, rounds)


def _rounds(told: Sequence[Mapping[str, Any]]) -> tuple[Round, ...]:
    return tuple(tuple(one.items()) for one in told)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _check(scenario: Scenario) -> None:
    """Refuse a scenario in which a user's words stand in another turn too: the provider could not tell them apart."""
    for turn in scenario.turns:
        if any(turn.user in other.user for other in scenario.turns if other is not turn):
            raise ValueError(f"{scenario.name}: turn {turn.number} is part of another turn")
    if not all(0 < fault.turn <= len(scenario.turns) for fault in scenario.faults):
        raise ValueError(f"{scenario.name}: a fault at a turn that is not there")
