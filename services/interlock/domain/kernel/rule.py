"""The rule of the kernel: check, charge, change and record in one step (SEED-2, T1 to T5, T7). ``session/lua/kernel_step.lua`` carries it too.

A step works on the fields of the store's hash and answers with what is to be written. It knows no clock: the time is an argument.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from interlock.domain.kernel import saga, tickets
from interlock.domain.kernel.decision import ROOT, KernelStep
from interlock.domain.kernel.state import LEASES, MOST_NAMED, OUTBOX, SKEW_MS, Fields, Resource, Stepped

EPOCH = "memory"
CHILDREN, DEEPEST = 256, 16
UNSEEN = "U"
"""State of a permit that was aborted before it was there."""
TAKEN_BACK = frozenset("RS")
"""States of a permit that was aborted, or rolled back with its saga."""


def step(fields: Fields, ask: Mapping[str, Any], now_ms: int) -> Stepped:
    """Decide what is asked of a kernel and write the outcome into *fields*; nothing is written for a refusal or a dry run."""
    if "seq" not in fields:
        return Stepped("KERNEL_NOT_FOUND", {})
    return _Step(fields, dict(ask), now_ms).run()


class _Step(KernelStep):
    """What can be asked."""

    def run(self) -> Stepped:
        """Answer what was answered before, or decide."""
        ask, fields = self.ask, self.fields
        if ask.get("dry"):
            return self._execute(permit=False)
        known = fields.get("x:" + ask["key"]) if ask["op"] != "register" else None
        if known:
            return self._again(json.loads(known))
        if int(fields["seq"]) - int(fields["sealed"]) >= OUTBOX:
            return self.answered("FULL", {})
        steps: Mapping[str, Callable[[], Stepped]] = {
            "execute": lambda: self._execute(permit=False),
            "permit": lambda: self._execute(permit=True),
            "rollback": lambda: saga.rollback(self) if ask["saga"] else self._rollback("KERNEL_ROLLED_BACK", "EC"),
            "begin_saga": lambda: saga.begin(self),
            "end_saga": lambda: saga.end(self),
            "claim": lambda: saga.claim(self),
            "settle": lambda: saga.settle(self),
            "decide": lambda: saga.decide(self),
            "abort": self._abort,
            "confirm": self._confirm,
            "ticket": lambda: tickets.take(self),
            "return_ticket": lambda: tickets.give_back(self),
            "lease": self._lease,
            "give_back": self._give_back,
            "emergency": self._emergency,
            "child": self._child,
            "register": self._register,
        }
        return steps[ask["op"]]()

    def _again(self, entry: Mapping[str, Any]) -> Stepped:
        """Answer as before what is asked again under its key, but for a permit that was taken back: nobody may act on it now."""
        if entry["state"] == UNSEEN:
            return Stepped("KERNEL_PERMIT_ABORTED", {})
        if entry["digest"] != self.ask["digest"]:
            return Stepped("KERNEL_KEY_REUSED", {})
        if self.ask["op"] == "permit" and entry["state"] in TAKEN_BACK:
            return Stepped("KERNEL_PERMIT_ABORTED", {})
        return self.answered("OK", entry["answer"] | {"replayed": "1"})

    def _execute(self, *, permit: bool) -> Stepped:
        ask = self.ask
        text = self.get("a:" + ask["action"])
        if text is None:
            return Stepped("KERNEL_ACTION_UNKNOWN", {})
        action, dry, wanted = json.loads(text), bool(ask.get("dry")), ask.get("version", "0")
        if self.need("pred") != "[]" and not dry and wanted == "0":
            return Stepped("KERNEL_VERSION_NEEDED", {})
        if refused := self._misplaced(wanted):
            return refused
        if dry and action["emergency"] == "1":  # always allowed (T8)
            self.checks, self.failed = [], False
            return self._shown(ask["action"], action, [], whole=True)
        undo, whole = self._try(ask["action"], action)
        if dry:
            return self._shown(ask["action"], action, undo, whole=whole) if self.look is None else self.looked()
        self.predicates()
        ask["irreversible"], ask["compensation"] = action["irreversible"], action.get("compensation", "")
        kind, state = ("KERNEL_PERMITTED", "P") if permit else ("KERNEL_EXECUTED", "E")
        return self.commit(kind, ask["action"], action["costs"], undo, state)

    def _misplaced(self, wanted: str) -> Stepped | None:
        """Return the refusal of an action out of turn, on another version, of a child that is not there, in a saga that is not open, or of a key in use."""
        if not self.ask.get("dry"):
            reason, ahead = tickets.turned(self)
            if reason:
                return Stepped(reason, {}, ahead)
        if wanted not in {"0", str(self.version)}:
            return Stepped("KERNEL_VERSION_CHANGED", {}, str(self.version))
        reason = self.entered() or saga.joined(self)
        if not reason and not self.ask.get("dry") and self.get("j:" + self.ask["key"]) is not None:
            reason = "KERNEL_KEY_REUSED"  # remembered no longer, and to be compensated still
        return Stepped(reason, {}) if reason else None

    def _try(self, action_id: str, action: Mapping[str, Any]) -> tuple[list[list[str]], bool]:
        """Run every check of an action and return how to undo its effects, and whether all could be applied."""
        self.check("running", self.fields["stopped"] == "0", "KERNEL_STOPPED")
        for number, program in enumerate(action["preconditions"], 1):
            self.check(f"precondition:{number}", self.holds(program), "PRECONDITION_BROKEN")
        self.charge(action["costs"], grants=False)
        self.take_steps(1)
        self.moment("a:" + action_id, 1)
        for name, amount in action["costs"]:
            self.moment("r:" + name, int(amount))
        undo = self.change(action["effects"])
        whole = len(undo) == len(action["effects"])
        if whole:
            self.invariants()
        return undo, whole

    def _shown(self, action_id: str, action: Mapping[str, Any], undo: list[list[str]], *, whole: bool) -> Stepped:
        held = {field[2:]: value for field, value in self.fields.items() if field.startswith("v:")}
        shown = {name: self.need("v:" + name) if whole else value for name, value in held.items()}
        answer = self.answer(action_id, action["costs"], undo, sequence=0)
        return self.answered(
            "OK", answer | {"granted": "", "until_ms": "", "values": [[*one] for one in shown.items()]}
        )

    def _abort(self) -> Stepped:
        """Take a permit back; one that is not there is refused when it comes, where that is asked for."""
        (key,) = self.ask["executions"]
        if self.ask.get("unseen") != "1" or self.get("x:" + key) is not None:
            return self._rollback("KERNEL_ABORTED", "P")
        self.check("unseen:" + key, True, "")  # noqa: FBT003 - a check is told as passed
        self.changed["x:" + key] = json.dumps({"state": UNSEEN})
        self.ask["voids"] = key
        return self.commit("KERNEL_ABORTED", "", [], [], "-")

    def _rollback(self, kind: str, wanted: str) -> Stepped:
        undone: list[list[str]] = []
        for key in reversed(self.ask["executions"]):
            text = self.get("x:" + key)
            entry = json.loads(text) if text else {"state": ""}
            if not entry["state"] or entry["state"] not in wanted:
                return Stepped("KERNEL_EXECUTION_UNKNOWN", {}, key)
            reversible = entry["irreversible"] != "1" or entry["state"] == "P"
            self.check("reversible:" + key, reversible, "ACTION_IRREVERSIBLE")
            alone = not entry.get("compensation") or entry["state"] == "P"
            self.check("alone:" + key, alone, "ACTION_NEEDS_SAGA")
            for one in reversed(entry["undo"] or ()):
                self.undo(one, undone)
            self.refund(entry["costs"], entry.get("child") or "")
            self.changed["x:" + key] = json.dumps(entry | {"state": "R"})
        self.invariants()
        return self.commit(kind, "", [], undone, "-")

    def _confirm(self) -> Stepped:
        ask = self.ask
        text = self.get("x:" + ask["permit"])
        entry = json.loads(text) if text else {"state": ""}
        if entry["state"] != "P":
            return Stepped("KERNEL_PERMIT_UNKNOWN", {}, ask["permit"])
        costs: Any = entry["costs"] or ()
        reserved, actual = {one[0]: one[1] for one in costs}, {one[0]: one[1] for one in ask["actual"]}
        left: list[list[str]] = []
        for name, amount in costs:
            spent = int(actual.get(name, amount))
            self.check("reserved:" + name, spent <= int(amount), "COST_ABOVE_RESERVED", str(spent), amount)
            left.append([name, str(spent)])
        for name, amount in ask["actual"]:
            named = name in reserved or amount == "0"
            self.check("named:" + name, named, "COST_ABOVE_RESERVED", amount, "0")
        back = [[name, str(max(0, int(reserved[name]) - int(spent)))] for name, spent in left]
        self.refund(back, entry.get("child") or "")
        self.changed["x:" + ask["permit"]] = json.dumps(entry | {"state": "C", "costs": left})
        return self.commit("KERNEL_CONFIRMED", "", left, [], "-")

    def _lease(self) -> Stepped:
        ask = self.ask
        name = ask["resource"]
        if self.get("r:" + name) is None:
            return Stepped("KERNEL_RESOURCE_UNKNOWN", {})
        if refused := self.entered():
            return Stepped(refused, {})
        live, budget = self._end_leases(), self.resource(name)
        if ask["key"] in live:  # remembered no longer, and out still
            return Stepped("KERNEL_KEY_REUSED", {})
        shares = (self.get(f"q:{one}:{name}") for one in self.path(ask.get("child", "")))
        left = min([budget.left, *(Resource.of(text).left for text in shares if text is not None)])
        unit = max(budget.min_cost, 1)
        count = sum(self.need("l:" + key).split(" ")[0] == name for key in live)
        share, wanted = left // (count + 2), int(ask["wanted"])
        share = min(share, wanted) if wanted else share
        share = max(unit, share - share % unit)
        self.check("running", self.fields["stopped"] == "0", "KERNEL_STOPPED")
        self.check("leases", len(live) < LEASES, "LEASES_TOO_MANY", str(len(live)), str(LEASES))
        costs = [[name, str(share)]]
        self.charge(costs, grants=True)
        self.take_steps(share // budget.min_cost if budget.min_cost else 1)
        self.moment("r:" + name, share)
        self.invariants()
        self.check("predicates", self.need("pred") == "[]", "LEASE_UNDER_PREDICATES")
        ask["granted"] = "0" if self.failed else str(share)
        ask["until_ms"] = str(self.now + int(ask["lifetime_ms"]))
        self.changed["live"] = " ".join([*live, ask["key"]])
        self.changed["l:" + ask["key"]] = (
            f"{name} {share} {int(self.fields['seq']) + 1} {ask['until_ms']} {ask.get('child', '')}".rstrip()
        )
        return self.commit("KERNEL_LEASED", "", costs, [], "-")

    def _end_leases(self) -> list[str]:
        """End leases whose time is over, the largest clock error included. What did not come back counts as spent."""
        live = []
        for key in self.need("live").split():
            name, amount, _, ends, *child = self.need("l:" + key).split(" ")
            if self.now > int(ends) + SKEW_MS:
                self.put_resource(name, leased=-int(amount), child="".join(child))
                self.changed["l:" + key] = None
            else:
                live.append(key)
        self.changed["live"] = " ".join(live)
        return live

    def _give_back(self) -> Stepped:
        ask = self.ask
        text = self.get("l:" + ask["lease"])
        if text is None:
            return Stepped("KERNEL_LEASE_UNKNOWN", {})
        name, amount, fence, ends, *child = text.split(" ")
        if fence != ask["fence"]:
            return Stepped("KERNEL_LEASE_FENCED", {})
        if self.now > int(ends) + SKEW_MS:
            return Stepped("KERNEL_LEASE_EXPIRED", {})
        unspent, min_cost = int(ask["unspent"]), self.resource(name).min_cost
        self.check("unspent:" + name, unspent <= int(amount), "UNSPENT_ABOVE_GRANT", ask["unspent"], amount)
        self.put_resource(name, leased=-int(amount), refunded=min(unspent, int(amount)), child="".join(child))
        self.steps -= unspent // min_cost if min_cost else 0
        self.changed["live"] = " ".join(key for key in self.need("live").split() if key != ask["lease"])
        self.changed["l:" + ask["lease"]] = None
        return self.commit("KERNEL_RETURNED", "", [], [], "-")

    def _emergency(self) -> Stepped:
        text = self.get("a:" + self.ask["action"])
        if text is None or json.loads(text)["emergency"] != "1":
            return Stepped("KERNEL_EMERGENCY_UNKNOWN", {})
        child = self.ask.get("child", "")
        if child and self.get("p:" + child) is None:
            return Stepped("KERNEL_CHILD_UNKNOWN", {})
        if (recorded := self.ask.get("recorded")) and (known := self._known_of(recorded)):
            return known
        if self.ask["stop"] == "1":
            self.changed["z:" + child if child else "stopped"] = "1"
        return self.commit("KERNEL_EMERGENCY", self.ask["action"], [], [], "-")

    def _known_of(self, recorded: Mapping[str, str]) -> Stepped | None:
        """Take the next number of a spool. One that was taken is answered, though its key may be remembered no longer; none comes after a later one."""
        field, number = "e:" + recorded["spool"], recorded["number"]
        last, sequence = (self.get(field) or "0 0").split(" ")
        if int(number) < int(last):
            return Stepped("KERNEL_EMERGENCY_PASSED", {})
        if number == last:
            told = self.answer(self.ask["action"], [], [], sequence=int(sequence))
            return self.answered("OK", told | {"replayed": "1"})
        self.changed[field] = f"{number} {int(self.fields['seq']) + 1}"
        return None

    def _child(self) -> Stepped:
        """Add a child, which has a part of the resources of what is above it; one that is there must be the same."""
        ask = self.ask
        child, parent = ask["child"], ask["parent"] or ROOT
        ask["child"] = ""
        if parent != ROOT and self.get("p:" + parent) is None:
            return Stepped("KERNEL_CHILD_UNKNOWN", {}, parent)
        known = self.get("p:" + child)
        if known is not None:
            limits = [[name, self.get(f"q:{child}:{name}")] for name, _ in ask["limits"]]
            same = all(
                text and text.split(" ")[0] == limit
                for (_, text), (_, limit) in zip(limits, ask["limits"], strict=True)
            )
            shares = sum(1 for name in self.fields["res"].split() if self.get(f"q:{child}:{name}") is not None)
            if known != parent or not same or shares != len(limits):
                return Stepped("KERNEL_CHILD_DIFFERS", {}, child)
        kids = int(self.get("kids") or "0") + (known is None)
        above = 1 + (len(self.path(parent)) if parent != ROOT else 0)
        self.check("children", kids <= CHILDREN, "CHILDREN_TOO_MANY", str(kids), str(CHILDREN))
        self.check("depth", above <= DEEPEST, "CHILDREN_TOO_DEEP", str(above), str(DEEPEST))
        self.changed |= {"kids": str(kids), "p:" + child: parent}
        for name, limit in ask["limits"]:
            if self.get("r:" + name) is None:
                return Stepped("KERNEL_RESOURCE_UNKNOWN", {})
            if known is None:
                self.changed[f"q:{child}:{name}"] = f"{limit} 0 0 0 0"
        return self.commit("KERNEL_CHILD_OPENED", "", [], [], "-")

    def _register(self) -> Stepped:
        new: list[str] = []
        for field, value in self.ask["fields"]:
            known, variable = self.get(field), field.startswith("v:")
            if known is not None and variable and known[0] != value[0]:
                return Stepped("KERNEL_VARIABLE_RETYPED", {}, field[2:])
            if known is not None and not variable and known != value:
                return Stepped("KERNEL_ACTION_DIFFERS", {}, field[2:])
            if known is None:
                self.changed[field] = value
                new.append(field)
        if not new:
            return self.answered("OK", {})
        if self.fields["mode"] != "open":
            return Stepped("KERNEL_REGISTRY_CLOSED", {}, new[0][2:])
        named = int(self.fields["named"]) + len(new)
        if named > MOST_NAMED:
            return Stepped("KERNEL_TOO_LARGE", {})
        self.changed["named"] = str(named)
        return self.commit("KERNEL_REGISTERED", "", [], [], "-")
