"""One step of a kernel while it is decided: what it reads, what it changes, and the record that it becomes.

``session/lua/kernel_decision.lua`` carries it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from interlock.domain.kernel import values
from interlock.domain.kernel.cel import names as cel
from interlock.domain.kernel.cel.evaluation import CODES, HOLDS
from interlock.domain.kernel.expression import ExpressionView, Program
from interlock.domain.kernel.state import (
    KEYS_KEPT,
    LARGEST_RECORD,
    LOOK,
    MOMENTS,
    Fields,
    KernelRecord,
    Resource,
    Stepped,
    linked,
    moments_since,
    unsealed,
)

Pairs = Sequence[Sequence[str]]
ROOT = "-"
WARNED = frozenset({"KERNEL_EMERGENCY", "KERNEL_COMPENSATION_STUCK"})
OF_THE_LINE = frozenset({"KERNEL_TICKET_TAKEN", "KERNEL_TICKET_RETURNED"})
"""Records that change nothing of the state: versions stay as they are."""


class KernelStep:
    """One step: what it changes is kept aside until it is committed."""

    def __init__(self, fields: Fields, ask: dict[str, Any], now_ms: int) -> None:
        self.fields, self.ask = fields, ask
        self.now = max(now_ms, int(fields["last"]))
        self.version, self.steps = int(fields["version"]), int(fields["steps"])
        self.changed: dict[str, str | None] = {}
        self.moments: list[list[str]] = []
        self.checks: list[list[str]] = []
        self.failed = False
        self.charged: dict[str, str] = {}
        self.look: str | None = None
        """What is to be looked at before it can be decided: a view of conditions in CEL that nobody told the verdicts of."""
        self.turn: dict[str, str] = {}
        """What becomes of the line of tickets, whether the action is rejected or not."""

    def undo(self, one: Sequence[str], undone: list[list[str]]) -> None:
        """Undo one effect; ``undone`` gets what was written."""
        name, now_held = one[0], self.need("v:" + one[0])
        new = values.inverse(one, now_held)
        self.check("undo:" + name, new is not None, "STATE_MOVED_ON")
        if new is not None:
            self.changed["v:" + name] = new
            undone.append([name, "set", new, now_held, new])

    def charge(self, costs: Pairs, *, grants: bool) -> None:
        """Charge costs, and check every least cost and limit. *grants* are leases."""
        named = self.charged = {one[0]: one[1] for one in costs}
        for name in self.fields["res"].split():
            budget, cost = self.resource(name), int(named.get(name, 0))
            if budget.min_cost and not grants:
                enough = cost >= budget.min_cost
                self.check("min_cost:" + name, enough, "COST_BELOW_MINIMUM", str(cost), str(budget.min_cost))
            if name in named:
                fits = cost <= budget.left and budget.gross + cost <= values.LARGEST
                self.check("budget:" + name, fits, "BUDGET_EXCEEDED", str(cost), str(budget.left))
        child = self.ask.get("child", "")
        for one in self.path(child):
            for name, amount in named.items():
                if (text := self.get(f"q:{one}:{name}")) is not None:
                    left = Resource.of(text).left
                    self.check(f"budget:{one}/{name}", int(amount) <= left, "BUDGET_EXCEEDED", amount, str(left))
        for name, amount in named.items():
            self.put_resource(name, gross=int(amount), leased=int(amount) if grants else 0, child=child)

    def path(self, child: str) -> list[str]:
        """Return the children from one up to the kernel itself, which is not among them."""
        found: list[str] = []
        while child and child != ROOT:
            found.append(child)
            child = self.need("p:" + child)
        return found

    def entered(self) -> str:
        """Check that nothing above the child of this step was stopped; the reason of a refusal where there is no such child."""
        child = self.ask.get("child", "")
        if child and self.get("p:" + child) is None:
            return "KERNEL_CHILD_UNKNOWN"
        for one in self.path(child):
            self.check("running:" + one, self.get("z:" + one) is None, "KERNEL_STOPPED")
        return ""

    def take_steps(self, count: int) -> None:
        """Count steps, and check their limit."""
        most = self.fields["maxsteps"]
        if most:
            taken = self.steps + count
            self.check("steps", taken <= int(most), "STEPS_EXHAUSTED", str(taken), most)
        self.steps += count

    def change(self, effects: Pairs) -> list[list[str]]:
        """Apply effects and return how to undo each: variable, mode, operand, value before, value after."""
        undo: list[list[str]] = []
        for name, mode, operand in effects:
            old = self.need("v:" + name)
            new, why = values.after(old, mode, operand)
            if new is None:
                self.check("effect:" + name, new is not None, why)
                return undo
            self.changed["v:" + name] = new
            undo.append([name, mode, operand, old, new])
        return undo

    def invariants(self) -> None:
        """Check every invariant on the state after."""
        for name, enforcement, program in json.loads(self.need("inv")):
            monitoring = enforcement == "monitoring"
            self.check("invariant:" + name, self.holds(program), "INVARIANT_BROKEN", monitoring=monitoring)
        for name, enforcement, said in self._conditions():
            monitoring = enforcement == "monitoring"
            self.check("invariant:" + name, said == HOLDS, CODES.get(said, ""), monitoring=monitoring)

    def unbroken(self) -> bool:
        """Tell whether every blocking invariant holds on what is changed so far."""
        told = json.loads(self.need("inv"))
        held = all(enforcement == "monitoring" or self.holds(program) for _, enforcement, program in told)
        return held and all(how == "monitoring" or said == HOLDS for _, how, said in self._conditions())

    def _conditions(self) -> list[tuple[str, str, str]]:
        """Return name, enforcement and verdict of each condition in CEL on what is changed so far.

        They are told with what is asked, by the view that they were made on: a verdict about anything else is none. Without it there
        are none to return, and the step becomes the view that is to be looked at.
        """
        text = self.fields.get("cel")
        if text is None:
            return []
        conditions = json.loads(text)
        view = cel.view_of(text, cel.shown_of(conditions["names"], {
            cel.AFTER: lambda name: self.need("v:" + name),
            cel.BEFORE: lambda name: self.fields["v:" + name],
            cel.LEFT: lambda name: f"n:{self.resource(name).left}",
            cel.COST: lambda name: f"n:{self.charged.get(name, 0)}",
            cel.ACTION: lambda _name: f"s:{self.ask.get('action', '')}",
        }))  # fmt: skip
        said = (self.ask.get("told") or {}).get(cel.digest(view))
        if said is None:
            self.look = self.look or view
            return []
        return [(name, how, one) for (name, how, _), one in zip(conditions["programs"], said, strict=True)]

    def predicates(self) -> None:
        """Check what the caller told of its predicates."""
        held = {one[0]: one for one in self.ask.get("held") or ()}
        for name, enforcement, digest in json.loads(self.need("pred")):
            told = held.get(name)
            known = told is not None and told[1] == digest
            passed = told is not None and known and told[2] == "1"
            code = "PREDICATE_BROKEN" if known else "PREDICATE_MISSING"
            self.check("predicate:" + name, passed, code, monitoring=enforcement == "monitoring" and known)

    def holds(self, program: Program) -> bool:
        """Tell whether a compiled expression holds."""
        read, left = self.need, lambda name: self.resource(name).left
        return ExpressionView(read, self.fields.__getitem__, self.window, left).holds(program)

    def window(self, name: str, seconds: int) -> int:
        """Return what happened in the last seconds."""
        kept = moments_since(self.get("w:" + name) or "", self.now - seconds * 1000)
        return sum(int(one.split(" ")[1]) for one in kept)

    def moment(self, name: str, amount: int) -> None:
        """Note a moment where an expression looks back at it."""
        spans = json.loads(self.fields["win"])
        if name not in spans:
            return
        kept = moments_since(self.get("w:" + name) or "", self.now - int(spans[name]) * 1000)
        entry = f"{self.now} {amount}"
        self.check("window:" + name, len(kept) < MOMENTS, "WINDOW_FULL", str(len(kept) + 1), str(MOMENTS))
        self.changed["w:" + name] = ",".join([*kept, entry])
        self.moments.append(["w:" + name, entry])

    def refund(self, costs: Pairs, child: str = "") -> None:
        """Give costs back, up the tree."""
        for name, amount in costs or ():
            self.put_resource(name, refunded=int(amount), child=child)

    def resource(self, name: str) -> Resource:
        """Return a resource."""
        return Resource.of(self.need("r:" + name))

    def put_resource(self, name: str, *, gross: int = 0, refunded: int = 0, leased: int = 0, child: str = "") -> None:
        """Add to the figures of a resource, and of every child's share of it up the tree."""
        shares = [f"q:{one}:{name}" for one in self.path(child)]
        for field in ["r:" + name, *(one for one in shares if self.get(one) is not None)]:
            old = Resource.of(self.need(field))
            new = Resource(old.limit, old.min_cost, old.gross + gross, old.refunded + refunded, old.leased + leased)
            self.changed[field] = new.text

    # fmt: off
    def check(self, name: str, ok: bool, code: str, have: str = "", need: str = "", *, monitoring: bool = False) -> None:  # noqa: FBT001 - reads as a sentence
        """Note a check; one that fails rejects the action unless it only monitors."""
        self.checks.append([name, "1" if ok else "0", "" if ok else code, have, need, "1" if monitoring else "0"])
        self.failed = self.failed or (not ok and not monitoring)
    # fmt: on

    def get(self, field: str) -> str | None:
        """Return a field as it is after what was changed so far."""
        return self.changed[field] if field in self.changed else self.fields.get(field)

    def need(self, field: str) -> str:
        """Return a field that must be there."""
        value = self.get(field)
        if value is None:
            raise KeyError(field)
        return value

    def answer(self, action: str, costs: Pairs, undo: Pairs, *, sequence: int) -> dict[str, Any]:
        """Return what the caller is told, and is told again under the same key."""
        names = dict.fromkeys(one[0] for one in undo)
        answer = {
            "approved": "0" if self.failed else "1",
            "checks": self.checks,
            "version": str(self.version),
            "sequence": str(sequence),
            "action": action,
            "costs": [list(one) for one in costs],
            "changed": [[name, self.need("v:" + name)] for name in names],
            "granted": self.ask.get("granted", ""),
            "until_ms": self.ask.get("until_ms", ""),
        }
        return answer | ({"claim": self.ask["claim"]} if "claim" in self.ask else {})

    def remembered(self) -> str:
        """Return the keys that this step is remembered by: its own, and the one that it voids."""
        return "\n".join(key for key in (self.ask["key"], self.ask.get("voids")) if key)

    def commit(self, kind: str, action: str, costs: Pairs, undo: Pairs, state: str) -> Stepped:
        """Write what was decided as the next record. A rejection changes nothing but what is remembered of it.

        Nothing is written where it depends on conditions in CEL that have to be looked at first (``LOOK``).
        """
        if self.look is not None and not self.failed:
            return self.looked()
        fields = self.fields
        self.version = int(fields["version"]) + (0 if self.failed or kind in OF_THE_LINE else 1)
        if self.failed:
            self.changed, self.moments, undo, costs = {}, [], [], []
            self.steps, kind, state = int(fields["steps"]), "KERNEL_REJECTED", "J"
        sequence = int(fields["seq"]) + 1
        answer = self.answer(action, costs, undo, sequence=sequence)
        entry = {"digest": self.ask["digest"], "state": state, "answer": answer, "undo": list(undo), "costs": list(costs),
                 "irreversible": self.ask.get("irreversible", "0")}  # fmt: skip
        if self.ask.get("compensation"):
            entry["compensation"] = self.ask["compensation"]
        if self.ask.get("child"):
            entry["child"] = self.ask["child"]
        self.changed |= {
            "version": str(self.version), "steps": str(self.steps), "last": str(self.now),
            "x:" + self.ask["key"]: json.dumps(entry), f"k:{sequence}": self.remembered(),
            **self.turn,
        }  # fmt: skip
        old = self.get(f"k:{sequence - KEYS_KEPT}")
        if old is not None:
            self.changed |= {**{"x:" + key: None for key in old.split("\n")}, f"k:{sequence - KEYS_KEPT}": None}
        written = {field: value for field, value in self.changed.items() if value is not None}
        dropped = [field for field, value in self.changed.items() if value is None]
        decided = {name: self.ask[name] for name in ("decided", "recorded") if name in self.ask}
        data = json.dumps({
            "sequence": str(sequence), "previous": fields["link"], "at_ms": str(self.now), "action": action,
            "key": self.ask["key"], "approved": answer["approved"], "checks": self.checks, "costs": list(costs),
            "version": str(self.version), "changes": {f: v for f, v in written.items() if not f.startswith("w:")},
            "dropped": dropped, "moments": self.moments, **decided,
        })  # fmt: skip
        if len(data) > LARGEST_RECORD and not self.failed:
            self.check("record", len(data) <= LARGEST_RECORD, "RECORD_TOO_LARGE", str(len(data)), str(LARGEST_RECORD))
            return self.commit(kind, action, costs, undo, state)
        record = KernelRecord(
            sequence,
            fields["link"],
            linked(fields["link"], data),
            kind,
            3 if self.failed or kind in WARNED else 2,
            data,
        )
        fields.update(written)
        for field in dropped:
            fields.pop(field, None)
        fields.update({"seq": str(sequence), "link": record.link, f"o:{sequence}": record.stored})
        return self.answered("OK", answer)

    def looked(self) -> Stepped:
        """Return what is to be looked at."""
        return Stepped(LOOK, {}, self.look or "")

    def answered(self, status: str, answer: Mapping[str, Any]) -> Stepped:
        """Return an answer with all that is to be sealed."""
        have, link = int(self.ask.get("have", "0")), self.ask.get("have_link", "")
        return Stepped(status, answer, unsealed=unsealed(self.fields, have, link))
