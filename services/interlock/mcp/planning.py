"""A call of a tool as an action of a kernel: a pure function of the mapping and the call."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.client.kernel.calls import micros, value_json
from interlock.domain.errors import Refused, forbidden, invalid
from interlock.mcp.mapping import ArgumentBound, DrawnCost, ToolMapping, ToolRule, field_of
from interlock.mcp.protocol import is_text, misspelt

LONGEST_TOOL = 200
LARGEST = 10**9
"""What a kernel can hold."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]")
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_.-]{0,63})\}")
_DIGITS = 12


@dataclass(frozen=True)
class PlannedCall:
    """What is asked of the kernel for one call."""

    tool: str
    action: str
    body: Mapping[str, Any] | None
    """The action as it is registered; ``None``: the kernel has it."""
    actual: Mapping[str, int] = field(default_factory=dict)
    """Costs that are known to be below what is reserved, millionths by resource."""
    told: Mapping[str, str] = field(default_factory=dict)
    """Resources whose cost the result tells: the name of its field."""
    timeout_s: float = 60.0
    is_error_done: bool = False

    def settled(self, content: Any) -> list[dict[str, str]]:
        """Return what the call really cost, given the structured content of its result."""
        found = dict(self.actual)
        for resource, name in self.told.items():
            value = field_of(content, name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                try:
                    found[resource] = max(0, micros(round(value, 6)))
                except (ValueError, OverflowError):
                    continue
        return [{"resource": resource, "micros": str(amount)} for resource, amount in found.items()]


def planned(mapping: ToolMapping, tool: str, arguments: Mapping[str, Any]) -> PlannedCall:
    """Return a call as an action. Refused with MCP_TOOL_UNMAPPED or MCP_ARGUMENT_REFUSED."""
    if not tool or len(tool) > LONGEST_TOOL:
        raise invalid("MCP_CALL_INVALID", f"the name of a tool has 1 to {LONGEST_TOOL} characters")
    rule = mapping.rule_of(tool)
    if rule is None:
        if mapping.unmapped == "refuse":
            raise forbidden("MCP_TOOL_UNMAPPED", "nobody has said what this tool costs, so it may not be used here")
        action = action_id(f"unmapped:{tool}")
        return PlannedCall(tool, action, {"id": action, "name": f"unmapped: {tool}"[:200]}, timeout_s=mapping.timeout_s)
    _check(rule, arguments)
    return _of(rule, tool, arguments, rule.timeout_s or mapping.timeout_s)


def action_id(name: str) -> str:
    """Return an id for a name: the name itself where it can be one, else its safe characters and a digest."""
    safe = _UNSAFE.sub("_", name)[:100].lstrip(".:-") or "tool"
    return name if safe == name else f"{safe[:80]}:{_digest(name)}"


def _of(rule: ToolRule, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> PlannedCall:
    costs, actual, told, varies = {}, {}, {}, bool(rule.preconditions and _PLACE.search(" ".join(rule.preconditions)))
    for resource, cost in rule.costs.items():
        if not isinstance(cost, DrawnCost):
            costs[resource] = micros(cost)
        elif cost.result:
            costs[resource], told[resource] = micros(cost.most or 0.0), cost.result
        else:
            amount = _amount(cost.argument, arguments)
            if cost.most is None:
                costs[resource], varies = amount, True
                continue
            costs[resource] = micros(cost.most)
            actual[resource] = amount
            if amount > costs[resource]:
                raise _argument(cost.argument, f"is above {cost.most:g}")
    effects = [
        _effect(one.variable, one.mode, _value(one.argument, arguments) if one.argument else one.value)
        for one in rule.effects
    ]
    varies = varies or any(one.argument for one in rule.effects)
    body = {
        "name": rule.action or tool[:200],  # the same for every tool of one action: what is registered never changes
        "effects": effects,
        "costs": [{"resource": resource, "micros": str(amount)} for resource, amount in costs.items()],
        "preconditions": [_filled(one, arguments) for one in rule.preconditions],
        "irreversible": rule.irreversible,
    }
    name = rule.action or action_id(tool)
    # What is registered never changes: another amount is another action, told by a digest of what it is.
    action = f"{name}:{_digest(json.dumps(body, sort_keys=True))}" if varies else name
    return PlannedCall(
        tool, action, {"id": action, **body} if rule.registers else None, actual, told, timeout_s, rule.on_error == "done"
    )  # fmt: skip


def _effect(variable: str, mode: str, value: Any) -> dict[str, Any]:
    operand = {} if mode == "delete" else {"value": value_json(value)}
    return {"variable": variable, "mode": f"EFFECT_MODE_{mode.upper()}", **operand}


def _check(rule: ToolRule, arguments: Mapping[str, Any]) -> None:
    if (other := misspelt(arguments, _named(rule))) is not None:
        raise _argument(
            other, "is written in other letters than the mapping has, and some servers take it for that one"
        )
    for name, bound in rule.arguments.items():
        _check_one(name, bound, arguments)


def _named(rule: ToolRule) -> set[str]:
    """Return the arguments that a rule rests on."""
    drawn = [cost.argument for cost in rule.costs.values() if isinstance(cost, DrawnCost)]
    filled = [name for one in rule.preconditions for name in _PLACE.findall(one)]
    return {*rule.arguments, *drawn, *(one.argument for one in rule.effects), *filled} - {""}


def _check_one(name: str, bound: ArgumentBound, arguments: Mapping[str, Any]) -> None:
    if name not in arguments:
        raise _argument(name, "is missing")
    value = arguments[name]
    if bound.one_of is not None and not any(type(value) is type(one) and value == one for one in bound.one_of):
        raise _argument(name, f"must be one of {', '.join(str(one) for one in bound.one_of)}")
    if bound.min is None and bound.max is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
        raise _argument(name, "must be a number")
    if bound.min is not None and value < bound.min:
        raise _argument(name, f"must be at least {bound.min:g}")
    if bound.max is not None and value > bound.max:
        raise _argument(name, f"must be at most {bound.max:g}")


def _value(name: str, arguments: Mapping[str, Any]) -> Any:
    value = arguments.get(name)
    if not isinstance(value, str | int | float | bool):
        raise _argument(name, "must be a number, a text or a truth value")
    if isinstance(value, int | float) and abs(value) > LARGEST:
        raise _argument(name, "is too large")
    if isinstance(value, str) and not is_text(value):
        raise _argument(name, "has half of a pair of surrogates")
    try:
        value_json(value)
    except (ValueError, OverflowError) as error:
        raise _argument(name, f"cannot be kept: {error}") from None
    return value


def _amount(name: str, arguments: Mapping[str, Any]) -> int:
    value = _value(name, arguments)
    if isinstance(value, str | bool) or value < 0:
        raise _argument(name, "must be a number, 0 or more")
    return micros(value)


def _filled(expression: str, arguments: Mapping[str, Any]) -> str:
    return _PLACE.sub(lambda found: _literal(found[1], _value(found[1], arguments)), expression)


def _literal(name: str, value: Any) -> str:
    """Return a value as the language of expressions writes it. What it cannot write is refused, so that nothing else is said."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if '"' in value or "\\" in value or not value.isprintable():
            raise _argument(name, "has characters that a condition cannot hold")
        return f'"{value}"'
    if value < 0:
        raise _argument(name, "must be 0 or more")
    whole, part = divmod(micros(value), 1_000_000)
    return f"{whole}.{part:06}".rstrip("0").rstrip(".")


def _argument(name: str, why: str) -> Refused:
    return forbidden("MCP_ARGUMENT_REFUSED", f"argument {name} {why}", argument=name[:64])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
