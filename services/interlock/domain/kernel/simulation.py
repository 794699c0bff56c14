"""A recorded trace decided again under other limits and invariants: what would have been rejected, and what approved.

The rule decides (``rule.step``); what was asked is read from what the records changed. An action that was rejected is tried again, since
it may be approved now; of anything else that was rejected the record does not say what was asked, so it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.domain.errors import invalid, not_found, unavailable
from interlock.domain.kernel import rule
from interlock.domain.kernel.cel.conditions import CelLanguage, kept, unavailable_here, verdicts, without
from interlock.domain.kernel.cel.names import digest, parted
from interlock.domain.kernel.decision import ROOT
from interlock.domain.kernel.definition import require_base, require_cel_base
from interlock.domain.kernel.expression import Declared, compiled, windows
from interlock.domain.kernel.state import LOOK, Fields, Resource, Stepped

Data = Mapping[str, Any]
_DIGEST = "simulated"


@dataclass(frozen=True)
class OtherTerms:
    """What is otherwise: limits by resource or ``child/resource``, least costs, invariants by name, and invariants left out."""

    limits: Mapping[str, int]
    min_costs: Mapping[str, int]
    invariants: Mapping[str, str]
    without: frozenset[str]
    cel: Mapping[str, str] = field(default_factory=dict)
    """Conditions in CEL by name."""


@dataclass(frozen=True)
class Differs:
    """One record that would have been decided otherwise. *approved* is what it would be; *checks* are those that fail."""

    sequence: int
    type: str
    action: str
    key: str
    approved: bool
    checks: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Simulated:
    """How a trace went. *left_out* are numbers of records that were not decided again."""

    records: int
    differs: Sequence[Differs]
    left_out: Sequence[int]
    recorded: Mapping[str, Resource]
    simulated: Mapping[str, Resource]


def simulated(
    records: Sequence[tuple[int, str, Data]], changes: OtherTerms, cel: CelLanguage | None = None
) -> Simulated:
    """Decide records (number, type, data) again, from the first. Refused with KERNEL_RECORD_BROKEN, or where *changes* do not fit.

    *cel* is needed where the kernel has conditions in CEL, or is to have some (KERNEL_CEL_UNAVAILABLE).
    """
    if not records or [number for number, _, _ in records] != [*range(1, len(records) + 1)]:
        raise unavailable(
            "KERNEL_RECORD_BROKEN", "a trace is decided again from its first record, none left out", retry_after_ms=0
        )
    run = _Run(records, changes, cel)
    for number, kind, data in records[1:]:
        run.decide(number, kind, data)
    return Simulated(len(records), run.differs, run.left_out, _resources(run.was), _resources(run.now))


def _resources(fields: Fields) -> dict[str, Resource]:
    return {name: Resource.of(fields["r:" + name]) for name in fields["res"].split()}


class _Run:
    """The kernel as it was, and as it would be."""

    def __init__(self, records: Sequence[tuple[int, str, Data]], changes: OtherTerms, cel: CelLanguage | None) -> None:
        first = dict(records[0][2]["changes"])
        self._changes, self._cel = changes, cel
        self.was: Fields = {**first, "seq": "1", "sealed": "1"}
        self.now: Fields = {**_altered(first, records, changes, cel), "seq": "1", "sealed": "1", "link": ""}
        self.differs: list[Differs] = []
        self.left_out: list[int] = []

    def decide(self, number: int, kind: str, data: Data) -> None:
        """Decide one record again, and let the recorded one happen."""
        ask = self._asked(kind, data)
        if ask is None:
            self.left_out.append(number)
        else:
            found = self._decided({"key": data["key"], "digest": _DIGEST, **ask}, int(data["at_ms"]))
            self._compare(number, kind, data, found)
        for sealed in range(int(self.now["sealed"]) + 1, int(self.now["seq"]) + 1):
            self.now.pop(f"o:{sealed}", None)
        self.now["sealed"] = self.now["seq"]
        self.was.update(data["changes"] or {})
        for name in data["dropped"] or ():
            self.was.pop(name, None)

    def _decided(self, ask: Mapping[str, Any], now_ms: int) -> Stepped:
        """Return what the rule says; what it asks back is looked at, as in the session service."""
        found, told = rule.step(self.now, ask, now_ms), dict[str, str]()
        while found.status == LOOK:
            if self._cel is None:
                raise unavailable_here()
            told[digest(found.subject)] = verdicts(self.now["cel"], parted(found.subject)[1], self._cel.matches)
            found = rule.step(self.now, {**ask, "told": told}, now_ms)
        return found

    def _compare(self, number: int, kind: str, data: Data, found: Stepped) -> None:
        approved = found.status == "OK" and found.answer.get("approved", "1") == "1"
        if approved == (data["approved"] == "1"):
            return
        checks = [one for one in found.answer.get("checks") or () if one[1] != "1" and one[5] != "1"]
        if found.status != "OK":
            checks = [["asked", "0", found.status, "", "", "0"]]
        self.differs.append(Differs(number, kind, str(data["action"]), str(data["key"]), approved, checks))

    def _asked(self, kind: str, data: Data) -> dict[str, Any] | None:
        """Return what was asked; nothing where the record does not say, or what it speaks of did not happen here."""
        readers: Mapping[str, Callable[[Data], dict[str, Any] | None]] = {
            "KERNEL_EXECUTED": lambda one: self._acted("execute", one),
            "KERNEL_PERMITTED": lambda one: self._acted("permit", one),
            "KERNEL_REJECTED": lambda one: self._acted("execute", one) if one["action"] else None,
            "KERNEL_CONFIRMED": self._confirmed,
            "KERNEL_ABORTED": self._aborted,
            "KERNEL_ROLLED_BACK": lambda one: self._undone("rollback", one, "EC"),
            "KERNEL_LEASED": self._leased,
            "KERNEL_RETURNED": self._returned,
            "KERNEL_SAGA_BEGUN": self._begun,
            "KERNEL_SAGA_ENDED": lambda one: self._saga("end_saga", one),
            "KERNEL_SAGA_ROLLED_BACK": lambda one: self._saga("rollback", one),
            "KERNEL_COMPENSATION_STUCK": lambda one: self._saga("rollback", one),
            "KERNEL_COMPENSATED": self._compensated,
            "KERNEL_EMERGENCY": self._emergency,
            "KERNEL_CHILD_OPENED": self._child,
            "KERNEL_REGISTERED": lambda one: {"op": "register", "fields": [*map(list, self._named(one, "v:", "a:"))]},
        }
        reader = readers.get(kind)
        return reader(data) if reader else None

    def _acted(self, op: str, data: Data) -> dict[str, Any]:
        entry = json.loads(data["changes"]["x:" + data["key"]])
        saga = next((name[2:] for name, text in self._named(data, "g:") if text.endswith(" " + data["key"])), "")
        told = {one[0].partition(":")[2]: one[1] for one in data["checks"] or () if one[0].startswith("predicate:")}
        held = [[name, digest, told.get(name, "1")] for name, _, digest in json.loads(self.now["pred"])]
        return {
            "op": op, "action": data["action"], "version": self.now["version"], "held": held,
            "child": entry.get("child", ""), "saga": saga if f"g:{saga}" in self.now else "",
        }  # fmt: skip

    def _confirmed(self, data: Data) -> dict[str, Any] | None:
        permits = [name[2:] for name, _ in self._named(data, "x:") if name[2:] != data["key"]]
        if not permits or self._state(permits[0]) != "P":
            return None
        return {"op": "confirm", "permit": permits[0], "actual": [list(one) for one in data["costs"] or ()]}

    def _aborted(self, data: Data) -> dict[str, Any] | None:
        for name, text in self._named(data, "x:"):
            if json.loads(text)["state"] == rule.UNSEEN:
                return {"op": "abort", "executions": [name[2:]], "unseen": "1"}
        return self._undone("abort", data, "P")

    def _undone(self, op: str, data: Data, states: str) -> dict[str, Any] | None:
        keys = [
            name[2:]
            for name, _ in self._named(data, "x:")
            if name[2:] != data["key"] and self._state(name[2:]) in states
        ]
        keys.sort(key=lambda key: int(json.loads(self.now["x:" + key])["answer"]["sequence"]))
        return {"op": op, "executions": keys, "saga": ""} if keys else None

    def _leased(self, data: Data) -> dict[str, Any]:
        name, amount, _, until, *child = data["changes"]["l:" + data["key"]].split(" ")
        lifetime = str(int(until) - int(data["at_ms"]))
        return {"op": "lease", "resource": name, "wanted": amount, "lifetime_ms": lifetime, "child": "".join(child)}

    def _returned(self, data: Data) -> dict[str, Any] | None:
        key = next((name[2:] for name in data["dropped"] or () if name[:2] == "l:" and name in self.now), "")
        if not key:
            return None
        name, granted, fence, *_ = self.now["l:" + key].split(" ")
        before, after = (Resource.of(one["r:" + name]).refunded for one in (self.was, data["changes"]))
        return {"op": "give_back", "lease": key, "fence": fence, "unspent": str(min(after - before, int(granted)))}

    def _begun(self, data: Data) -> dict[str, Any]:
        until = data["changes"]["g:" + data["key"]]
        return {"op": "begin_saga", "lifetime_ms": str(int(until) - int(data["at_ms"]))}

    def _saga(self, op: str, data: Data) -> dict[str, Any] | None:
        sagas = [name[2:] for name in data["dropped"] or () if name[:2] == "g:" and name in self.now]
        return {"op": op, "saga": sagas[0], "executions": []} if sagas else None

    def _compensated(self, data: Data) -> dict[str, Any] | None:
        jobs = [name[2:] for name in data["dropped"] or () if name[:2] == "j:" and name in self.now]
        return {"op": "settle", "execution": jobs[0], "fence": "0", "outcome": "done"} if jobs else None

    def _emergency(self, data: Data) -> dict[str, Any]:
        child = next((name[2:] for name, _ in self._named(data, "z:")), "")
        stopped = bool(child) or data["changes"].get("stopped") == "1"
        return {"op": "emergency", "action": data["action"], "stop": "1" if stopped else "0", "child": child}

    def _child(self, data: Data) -> dict[str, Any]:
        child, parent = next((name[2:], text) for name, text in self._named(data, "p:"))
        # One that was there already was found, and changed nothing.
        shares = self._named(data, f"q:{child}:") or [
            one for one in self.now.items() if one[0].startswith(f"q:{child}:")
        ]
        named = {name.rpartition(":")[2]: text.split(" ")[0] for name, text in shares}
        limits = [[name, str(self._changes.limits.get(f"{child}/{name}", limit))] for name, limit in named.items()]
        return {"op": "child", "child": child, "parent": parent.replace(ROOT, ""), "limits": limits}

    @staticmethod
    def _named(data: Data, *prefixes: str) -> Sequence[tuple[str, str]]:
        return [(name, text) for name, text in (data["changes"] or {}).items() if name.startswith(prefixes)]

    def _state(self, key: str) -> str:
        text = self.now.get("x:" + key)
        return str(json.loads(text)["state"]) if text else "-"


def _altered(
    first: Fields, records: Sequence[tuple[int, str, Data]], changes: OtherTerms, cel: CelLanguage | None
) -> Fields:
    """Return the fields of the kernel as it would have been opened."""
    fields = dict(first)
    for _, kind, data in records[1:]:
        if kind == "KERNEL_REGISTERED":  # other invariants may speak of what was registered later
            fields |= {name: text for name, text in (data["changes"] or {}).items() if name[:2] in {"v:", "a:"}}
    _limit(fields, records, changes)
    kinds = {name[2:]: text[0] for name, text in fields.items() if name[:2] == "v:"}
    names = Declared(
        kinds, frozenset(name[2:] for name in fields if name[:2] == "a:"), frozenset(fields["res"].split())
    )
    programs = {name: compiled(text, names) for name, text in changes.invariants.items()}
    gone = changes.without | programs.keys() | changes.cel.keys()
    rest = [one for one in json.loads(fields["inv"]) if one[0] not in gone]
    known = {one[0] for part in ("inv", "pred") for one in json.loads(fields[part])}
    known |= {one[0] for one in json.loads(fields.get("cel", '{"programs": []}'))["programs"]}
    if missing := changes.without - known:
        raise not_found("KERNEL_INVARIANT_UNKNOWN", "the kernel has no invariant of this name", name=min(missing))
    fields["inv"] = json.dumps([*rest, *([name, "blocking", one] for name, one in programs.items())])
    fields["pred"] = json.dumps([one for one in json.loads(fields["pred"]) if one[0] not in changes.without])
    spans = json.loads(fields["win"])
    for program in programs.values():
        for name, seconds in windows(program).items():
            spans[name] = str(max(int(spans.get(name, 0)), seconds))
    fields["win"] = json.dumps(spans)
    require_base(fields, programs.items())
    return _conditions(fields, changes, gone, names, cel)


def _conditions(
    fields: Fields, changes: OtherTerms, gone: frozenset[str], names: Declared, cel: CelLanguage | None
) -> Fields:
    """Return the fields with the conditions in CEL that it would have had."""
    text = without(fields.pop("cel"), gone) if "cel" in fields else ""
    if changes.cel:
        if cel is None:
            raise unavailable_here()
        told = [(name, "blocking", one) for name, one in changes.cel.items()]
        text = kept(told, names, cel, before=text)
        require_cel_base({**fields, "cel": text}, cel, changes.cel.keys())
    return {**fields, "cel": text} if text else fields


def _limit(fields: Fields, records: Sequence[tuple[int, str, Data]], changes: OtherTerms) -> None:
    shares = {
        name[2:].replace(":", "/", 1) for _, _, data in records for name in data["changes"] or () if name[:2] == "q:"
    }
    resources = fields["res"].split()
    for name in (*changes.limits, *changes.min_costs):
        if name not in resources and (name in changes.min_costs or name not in shares):
            raise not_found(
                "KERNEL_RESOURCE_UNKNOWN", "the kernel has no resource, and no child with one, of this name", name=name
            )
    for name in resources:
        old = Resource.of(fields["r:" + name])
        limit, least = changes.limits.get(name, old.limit), changes.min_costs.get(name, old.min_cost)
        if limit < 0 or least < 0:
            raise invalid("KERNEL_AMOUNT_INVALID", "an amount is 0 or more")
        fields["r:" + name] = Resource(limit, least).text
    bounds = [one.limit // one.min_cost for one in _resources(fields).values() if one.min_cost]
    fields["maxsteps"] = str(min(bounds)) if bounds else ""
