"""The rule of the kernel: check, charge, change and record in one step (SEED-2, T1 to T5, T7). ``session/lua/kernel_step.lua`` carries it too.

A step works on the fields of the store's hash and answers with what is to be written. It knows no clock: the time is an argument.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.domain.kernel import values
from interlock.domain.kernel.expression import ExpressionView, Program
from interlock.domain.kernel.state import (
    KEYS_KEPT,
    LARGEST_RECORD,
    LEASES,
    MOMENTS,
    MOST_NAMED,
    OUTBOX,
    SKEW_MS,
    Fields,
    KernelRecord,
    Resource,
    Stepped,
    linked,
    moments_since,
    unsealed,
)

Pairs = Sequence[Sequence[str]]
EPOCH = "memory"


def step(fields: Fields, ask: Mapping[str, Any], now_ms: int) -> Stepped:
    """Decide what is asked of a kernel and write the outcome into *fields*; nothing is written for a refusal or a dry run."""
    if "seq" not in fields:
        return Stepped("KERNEL_NOT_FOUND", {})
    return _Step(fields, dict(ask), now_ms).run()


class _Step:
    """One step: what it changes is kept aside until it is committed."""

    def __init__(self, fields: Fields, ask: dict[str, Any], now_ms: int) -> None:
        self._fields, self._ask = fields, ask
        self._now = max(now_ms, int(fields["last"]))
        self._version, self._steps = int(fields["version"]), int(fields["steps"])
        self._changed: dict[str, str | None] = {}
        self._moments: list[list[str]] = []
        self._checks: list[list[str]] = []
        self._failed = False

    def run(self) -> Stepped:
        """Answer what was answered before, or decide."""
        ask, fields = self._ask, self._fields
        if ask.get("dry"):
            return self._execute(permit=False)
        known = fields.get("x:" + ask["key"]) if ask["op"] != "register" else None
        if known:
            entry = json.loads(known)
            if entry["digest"] != ask["digest"]:
                return Stepped("KERNEL_KEY_REUSED", {})
            return self._answered("OK", entry["answer"] | {"replayed": "1"})
        if int(fields["seq"]) - int(fields["sealed"]) >= OUTBOX:
            return self._answered("FULL", {})
        steps: Mapping[str, Callable[[], Stepped]] = {
            "execute": lambda: self._execute(permit=False),
            "permit": lambda: self._execute(permit=True),
            "rollback": lambda: self._rollback("KERNEL_ROLLED_BACK", "EC"),
            "abort": lambda: self._rollback("KERNEL_ABORTED", "P"),
            "confirm": self._confirm,
            "lease": self._lease,
            "give_back": self._give_back,
            "emergency": self._emergency,
            "register": self._register,
        }
        return steps[ask["op"]]()

    def _execute(self, *, permit: bool) -> Stepped:
        ask = self._ask
        text = self._get("a:" + ask["action"])
        if text is None:
            return Stepped("KERNEL_ACTION_UNKNOWN", {})
        action, dry, wanted = json.loads(text), bool(ask.get("dry")), ask.get("version", "0")
        if self._need("pred") != "[]" and not dry and wanted == "0":
            return Stepped("KERNEL_VERSION_NEEDED", {})
        if wanted not in {"0", str(self._version)}:
            return Stepped("KERNEL_VERSION_CHANGED", {}, str(self._version))
        undo, whole = self._try(ask["action"], action)
        if dry:
            return self._shown(ask["action"], action, undo, whole=whole)
        self._predicates()
        ask["irreversible"] = action["irreversible"]
        kind, state = ("KERNEL_PERMITTED", "P") if permit else ("KERNEL_EXECUTED", "E")
        return self._commit(kind, ask["action"], action["costs"], undo, state)

    def _try(self, action_id: str, action: Mapping[str, Any]) -> tuple[list[list[str]], bool]:
        """Run every check of an action and return how to undo its effects, and whether all could be applied."""
        self._check("running", self._fields["stopped"] == "0", "KERNEL_STOPPED")
        for number, program in enumerate(action["preconditions"], 1):
            self._check(f"precondition:{number}", self._holds(program), "PRECONDITION_BROKEN")
        self._charge(action["costs"], grants=False)
        self._take_steps(1)
        self._moment("a:" + action_id, 1)
        for name, amount in action["costs"]:
            self._moment("r:" + name, int(amount))
        undo = self._change(action["effects"])
        whole = len(undo) == len(action["effects"])
        if whole:
            self._invariants()
        return undo, whole

    def _shown(self, action_id: str, action: Mapping[str, Any], undo: list[list[str]], *, whole: bool) -> Stepped:
        held = {field[2:]: value for field, value in self._fields.items() if field.startswith("v:")}
        shown = {name: self._need("v:" + name) if whole else value for name, value in held.items()}
        answer = self._answer(action_id, action["costs"], undo, sequence=0)
        return self._answered(
            "OK", answer | {"granted": "", "until_ms": "", "values": [[*one] for one in shown.items()]}
        )

    def _rollback(self, kind: str, wanted: str) -> Stepped:
        undone: list[list[str]] = []
        for key in reversed(self._ask["executions"]):
            text = self._get("x:" + key)
            entry = json.loads(text) if text else {"state": ""}
            if not entry["state"] or entry["state"] not in wanted:
                return Stepped("KERNEL_EXECUTION_UNKNOWN", {}, key)
            reversible = entry["irreversible"] != "1" or entry["state"] == "P"
            self._check("reversible:" + key, reversible, "ACTION_IRREVERSIBLE")
            for one in reversed(entry["undo"] or ()):
                self._undo(one, undone)
            self._refund(entry["costs"])
            self._changed["x:" + key] = json.dumps(entry | {"state": "R"})
        self._invariants()
        return self._commit(kind, "", [], undone, "-")

    def _undo(self, one: Sequence[str], undone: list[list[str]]) -> None:
        name, now_held = one[0], self._need("v:" + one[0])
        new = values.inverse(one, now_held)
        self._check("undo:" + name, new is not None, "STATE_MOVED_ON")
        if new is not None:
            self._changed["v:" + name] = new
            undone.append([name, "set", new, now_held, new])

    def _confirm(self) -> Stepped:
        ask = self._ask
        text = self._get("x:" + ask["permit"])
        entry = json.loads(text) if text else {"state": ""}
        if entry["state"] != "P":
            return Stepped("KERNEL_PERMIT_UNKNOWN", {}, ask["permit"])
        costs: Any = entry["costs"] or ()
        reserved, actual = {one[0]: one[1] for one in costs}, {one[0]: one[1] for one in ask["actual"]}
        left: list[list[str]] = []
        for name, amount in costs:
            spent = int(actual.get(name, amount))
            self._check("reserved:" + name, spent <= int(amount), "COST_ABOVE_RESERVED", str(spent), amount)
            left.append([name, str(spent)])
        for name, amount in ask["actual"]:
            named = name in reserved or amount == "0"
            self._check("named:" + name, named, "COST_ABOVE_RESERVED", amount, "0")
        self._refund([[name, str(max(0, int(reserved[name]) - int(spent)))] for name, spent in left])
        self._changed["x:" + ask["permit"]] = json.dumps(entry | {"state": "C", "costs": left})
        return self._commit("KERNEL_CONFIRMED", "", left, [], "-")

    def _lease(self) -> Stepped:
        ask = self._ask
        name = ask["resource"]
        if self._get("r:" + name) is None:
            return Stepped("KERNEL_RESOURCE_UNKNOWN", {})
        live, budget = self._end_leases(), self._resource(name)
        unit = max(budget.min_cost, 1)
        count = sum(self._need("l:" + key).split(" ")[0] == name for key in live)
        share, wanted = budget.left // (count + 2), int(ask["wanted"])
        share = min(share, wanted) if wanted else share
        share = max(unit, share - share % unit)
        self._check("running", self._fields["stopped"] == "0", "KERNEL_STOPPED")
        self._check("leases", len(live) < LEASES, "LEASES_TOO_MANY", str(len(live)), str(LEASES))
        costs = [[name, str(share)]]
        self._charge(costs, grants=True)
        self._take_steps(share // budget.min_cost if budget.min_cost else 1)
        self._moment("r:" + name, share)
        self._invariants()
        self._check("predicates", self._need("pred") == "[]", "LEASE_UNDER_PREDICATES")
        ask["granted"] = "0" if self._failed else str(share)
        ask["until_ms"] = str(self._now + int(ask["lifetime_ms"]))
        self._changed["live"] = " ".join([*live, ask["key"]])
        self._changed["l:" + ask["key"]] = f"{name} {share} {int(self._fields['seq']) + 1} {ask['until_ms']}"
        return self._commit("KERNEL_LEASED", "", costs, [], "-")

    def _end_leases(self) -> list[str]:
        """End leases whose time is over, the largest clock error included. What did not come back counts as spent."""
        live = []
        for key in self._need("live").split():
            name, amount, _, ends = self._need("l:" + key).split(" ")
            if self._now > int(ends) + SKEW_MS:
                self._put_resource(name, leased=-int(amount))
                self._changed["l:" + key] = None
            else:
                live.append(key)
        self._changed["live"] = " ".join(live)
        return live

    def _give_back(self) -> Stepped:
        ask = self._ask
        text = self._get("l:" + ask["lease"])
        if text is None:
            return Stepped("KERNEL_LEASE_UNKNOWN", {})
        name, amount, fence, ends = text.split(" ")
        if fence != ask["fence"]:
            return Stepped("KERNEL_LEASE_FENCED", {})
        if self._now > int(ends) + SKEW_MS:
            return Stepped("KERNEL_LEASE_EXPIRED", {})
        unspent, min_cost = int(ask["unspent"]), self._resource(name).min_cost
        self._check("unspent:" + name, unspent <= int(amount), "UNSPENT_ABOVE_GRANT", ask["unspent"], amount)
        self._put_resource(name, leased=-int(amount), refunded=min(unspent, int(amount)))
        self._steps -= unspent // min_cost if min_cost else 0
        self._changed["live"] = " ".join(key for key in self._need("live").split() if key != ask["lease"])
        self._changed["l:" + ask["lease"]] = None
        return self._commit("KERNEL_RETURNED", "", [], [], "-")

    def _emergency(self) -> Stepped:
        text = self._get("a:" + self._ask["action"])
        if text is None or json.loads(text)["emergency"] != "1":
            return Stepped("KERNEL_EMERGENCY_UNKNOWN", {})
        if self._ask["stop"] == "1":
            self._changed["stopped"] = "1"
        return self._commit("KERNEL_EMERGENCY", self._ask["action"], [], [], "-")

    def _register(self) -> Stepped:
        new: list[str] = []
        for field, value in self._ask["fields"]:
            known, variable = self._get(field), field.startswith("v:")
            if known is not None and variable and known[0] != value[0]:
                return Stepped("KERNEL_VARIABLE_RETYPED", {}, field[2:])
            if known is not None and not variable and known != value:
                return Stepped("KERNEL_ACTION_DIFFERS", {}, field[2:])
            if known is None:
                self._changed[field] = value
                new.append(field)
        if not new:
            return self._answered("OK", {})
        if self._fields["mode"] != "open":
            return Stepped("KERNEL_REGISTRY_CLOSED", {}, new[0][2:])
        named = int(self._fields["named"]) + len(new)
        if named > MOST_NAMED:
            return Stepped("KERNEL_TOO_LARGE", {})
        self._changed["named"] = str(named)
        return self._commit("KERNEL_REGISTERED", "", [], [], "-")

    def _charge(self, costs: Pairs, *, grants: bool) -> None:
        named = {one[0]: one[1] for one in costs}
        for name in self._fields["res"].split():
            budget, cost = self._resource(name), int(named.get(name, 0))
            if budget.min_cost and not grants:
                enough = cost >= budget.min_cost
                self._check("min_cost:" + name, enough, "COST_BELOW_MINIMUM", str(cost), str(budget.min_cost))
            if name in named:
                fits = cost <= budget.left and budget.gross + cost <= values.LARGEST
                self._check("budget:" + name, fits, "BUDGET_EXCEEDED", str(cost), str(budget.left))
                self._put_resource(name, gross=cost, leased=cost if grants else 0)

    def _take_steps(self, count: int) -> None:
        most = self._fields["maxsteps"]
        if most:
            taken = self._steps + count
            self._check("steps", taken <= int(most), "STEPS_EXHAUSTED", str(taken), most)
        self._steps += count

    def _change(self, effects: Pairs) -> list[list[str]]:
        """Apply effects and return how to undo each: variable, mode, operand, value before, value after."""
        undo: list[list[str]] = []
        for name, mode, operand in effects:
            old = self._need("v:" + name)
            new, why = values.after(old, mode, operand)
            if new is None:
                self._check("effect:" + name, new is not None, why)
                return undo
            self._changed["v:" + name] = new
            undo.append([name, mode, operand, old, new])
        return undo

    def _invariants(self) -> None:
        for name, enforcement, program in json.loads(self._need("inv")):
            monitoring = enforcement == "monitoring"
            self._check("invariant:" + name, self._holds(program), "INVARIANT_BROKEN", monitoring=monitoring)

    def _predicates(self) -> None:
        held = {one[0]: one for one in self._ask.get("held") or ()}
        for name, enforcement, digest in json.loads(self._need("pred")):
            told = held.get(name)
            known = told is not None and told[1] == digest
            passed = told is not None and known and told[2] == "1"
            code = "PREDICATE_BROKEN" if known else "PREDICATE_MISSING"
            self._check("predicate:" + name, passed, code, monitoring=enforcement == "monitoring" and known)

    def _holds(self, program: Program) -> bool:
        read, left = self._need, lambda name: self._resource(name).left
        return ExpressionView(read, self._fields.__getitem__, self._window, left).holds(program)

    def _window(self, name: str, seconds: int) -> int:
        kept = moments_since(self._get("w:" + name) or "", self._now - seconds * 1000)
        return sum(int(one.split(" ")[1]) for one in kept)

    def _moment(self, name: str, amount: int) -> None:
        spans = json.loads(self._fields["win"])
        if name not in spans:
            return
        kept = moments_since(self._get("w:" + name) or "", self._now - int(spans[name]) * 1000)
        entry = f"{self._now} {amount}"
        self._check("window:" + name, len(kept) < MOMENTS, "WINDOW_FULL", str(len(kept) + 1), str(MOMENTS))
        self._changed["w:" + name] = ",".join([*kept, entry])
        self._moments.append(["w:" + name, entry])

    def _refund(self, costs: Pairs) -> None:
        for name, amount in costs or ():
            self._put_resource(name, refunded=int(amount))

    def _resource(self, name: str) -> Resource:
        return Resource.of(self._need("r:" + name))

    def _put_resource(self, name: str, *, gross: int = 0, refunded: int = 0, leased: int = 0) -> None:
        old = self._resource(name)
        new = Resource(old.limit, old.min_cost, old.gross + gross, old.refunded + refunded, old.leased + leased)
        self._changed["r:" + name] = new.text

    # fmt: off
    def _check(self, name: str, ok: bool, code: str, have: str = "", need: str = "", *, monitoring: bool = False) -> None:  # noqa: FBT001 - reads as a sentence
        self._checks.append([name, "1" if ok else "0", "" if ok else code, have, need, "1" if monitoring else "0"])
        self._failed = self._failed or (not ok and not monitoring)
    # fmt: on

    def _get(self, field: str) -> str | None:
        return self._changed[field] if field in self._changed else self._fields.get(field)

    def _need(self, field: str) -> str:
        value = self._get(field)
        if value is None:
            raise KeyError(field)
        return value

    def _answer(self, action: str, costs: Pairs, undo: Pairs, *, sequence: int) -> dict[str, Any]:
        names = dict.fromkeys(one[0] for one in undo)
        return {
            "approved": "0" if self._failed else "1",
            "checks": self._checks,
            "version": str(self._version),
            "sequence": str(sequence),
            "action": action,
            "costs": [list(one) for one in costs],
            "changed": [[name, self._need("v:" + name)] for name in names],
            "granted": self._ask.get("granted", ""),
            "until_ms": self._ask.get("until_ms", ""),
        }

    def _commit(self, kind: str, action: str, costs: Pairs, undo: Pairs, state: str) -> Stepped:
        """Write what was decided as the next record. A rejection changes nothing but what is remembered of it."""
        fields = self._fields
        self._version = int(fields["version"]) + (0 if self._failed else 1)
        if self._failed:
            self._changed, self._moments, undo, costs = {}, [], [], []
            self._steps, kind, state = int(fields["steps"]), "KERNEL_REJECTED", "J"
        sequence = int(fields["seq"]) + 1
        answer = self._answer(action, costs, undo, sequence=sequence)
        entry = {"digest": self._ask["digest"], "state": state, "answer": answer, "undo": list(undo), "costs": list(costs),
                 "irreversible": self._ask.get("irreversible", "0")}  # fmt: skip
        self._changed |= {
            "version": str(self._version), "steps": str(self._steps), "last": str(self._now),
            "x:" + self._ask["key"]: json.dumps(entry), f"k:{sequence}": self._ask["key"],
        }  # fmt: skip
        old = self._get(f"k:{sequence - KEYS_KEPT}")
        if old is not None:
            self._changed |= {"x:" + old: None, f"k:{sequence - KEYS_KEPT}": None}
        written = {field: value for field, value in self._changed.items() if value is not None}
        dropped = [field for field, value in self._changed.items() if value is None]
        data = json.dumps({
            "sequence": str(sequence), "previous": fields["link"], "at_ms": str(self._now), "action": action,
            "key": self._ask["key"], "approved": answer["approved"], "checks": self._checks, "costs": list(costs),
            "version": str(self._version), "changes": {f: v for f, v in written.items() if not f.startswith("w:")},
            "dropped": dropped, "moments": self._moments,
        })  # fmt: skip
        if len(data) > LARGEST_RECORD and not self._failed:
            self._check("record", len(data) <= LARGEST_RECORD, "RECORD_TOO_LARGE", str(len(data)), str(LARGEST_RECORD))
            return self._commit(kind, action, costs, undo, state)
        record = KernelRecord(
            sequence,
            fields["link"],
            linked(fields["link"], data),
            kind,
            3 if self._failed or kind == "KERNEL_EMERGENCY" else 2,
            data,
        )
        fields.update(written)
        for field in dropped:
            fields.pop(field, None)
        fields.update({"seq": str(sequence), "link": record.link, f"o:{sequence}": record.stored})
        return self._answered("OK", answer)

    def _answered(self, status: str, answer: Mapping[str, Any]) -> Stepped:
        return Stepped(status, answer, unsealed=unsealed(self._fields))
