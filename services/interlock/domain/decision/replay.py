"""Deciding a recorded cycle again: the same bytes, or the place where they part (SEED-5 §10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.decision.definition import defined
from interlock.domain.decision.engine import decide
from interlock.domain.decision.reading import canonical
from interlock.domain.errors import Refused


@dataclass(frozen=True)
class Replayed:
    """How a replay ended. *differs_at*: the path of the first difference; empty where there is none."""

    differs_at: str
    recorded: str = ""
    replayed: str = ""

    @property
    def is_same(self) -> bool:
        """Whether every byte is the same."""
        return not self.differs_at


def replayed(definition: str, trace: str) -> Replayed:
    """Decide the inputs of a trace again under a definition. Never raises, whatever the texts are."""
    try:
        told = json.loads(trace)
        again = decide(defined(definition), told["inputs"])
        text = canonical(again)
    except Refused as refused:
        return Replayed("definition", replayed=refused.message)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Replayed("trace", replayed=f"this is no trace: {type(error).__name__}")
    if text == trace:
        return Replayed("")
    at, old, new = _difference(told, again, "")
    return Replayed(at or "form", _short(old), _short(new))


def _difference(old: Any, new: Any, path: str) -> tuple[str, Any, Any]:
    """Return the path of the first difference in the order of names, and both values."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted({*old, *new}):
            here = f"{path}.{name}" if path else str(name)
            if name not in old or name not in new:
                return here, old.get(name), new.get(name)
            if old[name] != new[name]:
                return _difference(old[name], new[name], here)
        return "", None, None
    if isinstance(old, list) and isinstance(new, list):
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if one != other:
                return _difference(one, other, f"{path}[{number}]")
        return f"{path}[{min(len(old), len(new))}]", len(old), len(new)
    return path, old, new


def _short(value: Any) -> str:
    return canonical(value)[:200]
