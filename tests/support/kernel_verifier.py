"""An independent look at a kernel after faults: its trace, its store and what its clients were told (KRN-2, KRN-12).

It shares no code with the rule: it adds up what the records say, one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNIT = 1_000_000
BOUNDS = {"active": 10 * UNIT}


def verify(
    trace: Sequence[Mapping[str, Any]], shown: Mapping[str, Any], told: Iterable[Mapping[str, Any]]
) -> Mapping[str, int]:
    """Check T1 to T5 and T7 over a whole trace, the state against it, and every answer; return what was counted."""
    limits = {one["name"]: int(one["limit_micros"]) for one in shown["resources"]}
    fields: dict[str, str] = {}
    done: dict[str, Mapping[str, Any]] = {}
    steps = 0
    for number, record in enumerate(trace, 1):
        data = json.loads(record["data_json"])
        assert int(record["sequence"]) == number, "T6: a gap"
        before, changes = dict(fields), dict(data["changes"] or {})
        fields.update(changes)
        for field in data["dropped"] or ():
            fields.pop(field, None)
        _check_budgets(fields, before, limits)
        assert all(_number(fields, name) <= most for name, most in BOUNDS.items()), "T3"
        if record["type"] == "KERNEL_REJECTED":
            touched = [name for name in changes if name[:2] in {"r:", "v:"}]
            assert not touched, "T5: a rejection changed something"
        if record["type"] in {"KERNEL_EXECUTED", "KERNEL_PERMITTED"}:
            steps += 1
            _check_whole(data, fields, before)
        if data["key"]:
            assert data["key"] not in done, "an action was done twice under one key"
            done[data["key"]] = {"sequence": number, "approved": data["approved"] == "1"}
    least = [
        int(one["limit_micros"]) // int(one["min_cost_micros"])
        for one in shown["resources"]
        if int(one["min_cost_micros"])
    ]
    assert not least or steps <= min(least), "T2"
    _check_state(fields, shown)
    return {"records": len(trace), "steps": steps, "answers": _check_answers(told, done)}


def _check_budgets(fields: Mapping[str, str], before: Mapping[str, str], limits: Mapping[str, int]) -> None:
    for name, limit in limits.items():
        _, _, gross, refunded, leased = map(int, fields[f"r:{name}"].split(" "))
        assert 0 <= gross - refunded <= limit, "T1"
        assert 0 <= leased <= gross - refunded
        if f"r:{name}" in before:
            _, _, old_gross, old_refunded, _ = map(int, before[f"r:{name}"].split(" "))
            assert gross >= old_gross, "T4"
            assert refunded >= old_refunded, "T4"


def _check_whole(data: Mapping[str, Any], fields: Mapping[str, str], before: Mapping[str, str]) -> None:
    """T5: the charge and the effects of an action are in one record, or neither is."""
    action = json.loads(fields[f"a:{data['action']}"])
    for name, cost in action["costs"]:
        old, new = (int(one[f"r:{name}"].split(" ")[2]) for one in (before, fields))
        assert new - old == int(cost), "T5: not charged as registered"
    for variable, mode, operand in action["effects"]:
        if mode == "increment":
            assert _number(fields, variable) - _number(before, variable) == int(operand[2:]), (
                "T5: effects apart from the charge"
            )


def _check_state(fields: Mapping[str, str], shown: Mapping[str, Any]) -> None:
    for one in shown["resources"]:
        _, _, gross, refunded, leased = fields[f"r:{one['name']}"].split(" ")
        assert (gross, refunded, leased) == (one["gross_micros"], one["refunded_micros"], one["leased_micros"]), (
            "store ≠ chain"
        )
    assert _number(fields, "active") == int(shown["state"]["active"]["number_micros"]), "store ≠ chain"
    assert fields["version"] == shown["version"], "store ≠ chain"


def _check_answers(told: Iterable[Mapping[str, Any]], done: Mapping[str, Mapping[str, Any]]) -> int:
    """Every answer that a client got is in the trace, as it was told."""
    count = 0
    for one in told:
        if one.get("recorded"):  # by its sidecar; it is sealed by now
            assert done.get(one["key"], {}).get("approved"), ("T8: recorded, not sealed", one)
            count += 1
        elif "sequence" in one:
            key = one.get("key") or next(k for k, v in done.items() if v["sequence"] == one["sequence"])
            assert done.get(key) == {"sequence": one["sequence"], "approved": one["approved"]}, (
                "told, not sealed",
                one,
            )
            count += 1
    return count


def _number(fields: Mapping[str, str], variable: str) -> int:
    value = fields.get(f"v:{variable}", "n!")
    return int(value[2:] or 0)
