"""What must hold of kernels (docs/kernel.md): their chain, their store, what clients were told and the world agree.

It adds up what the records say, one after the other, and shares nothing with the rule that decided them. Pure over the facts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.facts import Facts, Kernel, Record

SOUND = frozenset({"VALID", "UNVERIFIED"})
DONE = frozenset({"KERNEL_EXECUTED", "KERNEL_PERMITTED"})
ROOT = ""
Amounts = tuple[int, int, int]
"""Gross, refunded and leased, millionths."""


@dataclass
class Ledger:
    """A kernel as its records leave it, record by record."""

    fields: dict[str, str] = field(default_factory=dict)

    def apply(self, record: Record) -> None:
        """Take one more record."""
        self.fields.update(_mapping(record.data["changes"]))
        for name in record.data["dropped"] or ():
            self.fields.pop(name, None)

    def amounts(self) -> dict[str, Amounts]:
        """Return what was charged to each part: the kernel itself, and its children by name."""
        found = {ROOT: self.fields["r:usd"].split(" ")[2:]}
        found |= {name.split(":")[1]: value.split(" ")[2:] for name, value in self.fields.items() if _of_child(name)}
        return {part: (int(gross), int(refunded), int(leased)) for part, (gross, refunded, leased, *_) in found.items()}

    def limits(self) -> dict[str, int]:
        """Return the limit of each part."""
        found = {ROOT: int(self.fields["r:usd"].split(" ")[0])}
        return found | {
            name.split(":")[1]: int(value.split(" ")[0]) for name, value in self.fields.items() if _of_child(name)
        }

    def path(self, part: str) -> list[str]:
        """Return a part and all that is above it, up to the kernel itself."""
        found = [part]
        while found[-1] != ROOT:
            parent = self.fields[f"p:{found[-1]}"]
            found.append(ROOT if parent == "-" else parent)
        return found

    def step(self, key: str) -> Mapping[str, Any]:
        """Return what is kept of the step under a key."""
        return json.loads(self.fields.get(f"x:{key}", "{}"))  # type: ignore[no-any-return]


def _of_child(name: str) -> bool:
    return name.startswith("q:") and name.endswith(":usd")


def _mapping(value: Any) -> dict[str, str]:
    return dict(value or {})  # an empty table of Lua is an empty list here


def _walked(kernel: Kernel) -> Iterator[tuple[Record, Ledger, Ledger]]:
    """Yield each record with the ledger before it and behind it."""
    ledger = Ledger()
    for record in kernel.records:
        before = Ledger(dict(ledger.fields))
        ledger.apply(record)
        yield record, before, ledger


def _final(kernel: Kernel) -> Ledger:
    ledger = Ledger()
    for record in kernel.records:
        ledger.apply(record)
    return ledger


def kernels_chains_are_whole(facts: Facts) -> Iterator[str]:
    """The records of a kernel have no gap, its chain verifies, and no key did anything twice."""
    for kernel in facts.kernels:
        sequences = [record.sequence for record in kernel.records]
        if sequences != list(range(1, len(sequences) + 1)) or kernel.integrity not in SOUND:
            yield f"{kernel.kernel_id} is {kernel.integrity} with the records {sequences[:20]}"
        keys = Counter(str(record.data["key"]) for record in kernel.records if record.data["key"])
        yield from (f"{kernel.kernel_id}: {key} was done {times} times" for key, times in keys.items() if times > 1)


def kernels_budgets_hold(facts: Facts) -> Iterator[str]:
    """No part of a kernel spends more than its limit, and what was ever charged or given back never falls."""
    for kernel in facts.kernels:
        for record, before, after in _walked(kernel):
            limits, old = after.limits(), before.amounts() if before.fields else {}
            for part, (gross, refunded, leased) in after.amounts().items():
                earlier = old.get(part, (0, 0, 0))
                if not 0 <= gross - refunded <= limits[part] or not 0 <= leased <= gross - refunded:
                    yield f"{kernel.kernel_id} record {record.sequence}: {part or 'it'} spent {gross - refunded} of {limits[part]}"
                if gross < earlier[0] or refunded < earlier[1]:
                    yield f"{kernel.kernel_id} record {record.sequence}: {part or 'it'} was {earlier}, is {gross, refunded}"


def children_are_charged_up_the_tree(facts: Facts) -> Iterator[str]:
    """What is done for a child is charged to it and to all above it, in one record, as registered; to nobody else."""
    for kernel in facts.kernels:
        for record, before, after in _walked(kernel):
            if record.event_type not in DONE:
                continue
            step = after.step(str(record.data["key"]))
            cost = sum(int(amount) for _, amount in _registered(after, str(record.data["action"])))
            path, old = after.path(str(step.get("child", ROOT))), before.amounts()
            for part, (gross, _, _) in after.amounts().items():
                due = cost if part in path else 0
                if gross - old[part][0] != due:
                    yield (
                        f"{kernel.kernel_id} record {record.sequence}: {part or 'it'} was charged {gross - old[part][0]}, not {due}"
                    )


def _registered(ledger: Ledger, action: str) -> Sequence[tuple[str, str]]:
    return json.loads(ledger.fields[f"a:{action}"])["costs"] or ()  # type: ignore[no-any-return]


def refunds_go_up_the_tree(facts: Facts) -> Iterator[str]:
    """What was given back to each part is what its undone steps had cost, and nothing else."""
    for kernel in facts.kernels:
        ledger = _final(kernel)
        due: Counter[str] = Counter()
        for record in kernel.records:
            step = ledger.step(str(record.data["key"])) if record.event_type in DONE else {}
            if step.get("state") == "R":
                cost = sum(int(amount) for _, amount in _registered(ledger, str(record.data["action"])))
                due.update(dict.fromkeys(ledger.path(str(step.get("child", ROOT))), cost))
        for part, (_, refunded, _) in ledger.amounts().items():
            if refunded != due[part]:
                yield f"{kernel.kernel_id}: {part or 'it'} got {refunded} back; its undone steps cost {due[part]}"


def kernels_stores_are_their_chains(facts: Facts) -> Iterator[str]:
    """What the store tells of a kernel, of its children, its state and its compensations is what its records say."""
    for kernel in facts.kernels:
        ledger, shown = _final(kernel), kernel.shown
        parts = {ROOT: shown["resources"], **{one["name"]: one["resources"] for one in shown.get("children", ())}}
        told = {
            part: tuple(int(one[name]) for name in ("gross_micros", "refunded_micros", "leased_micros"))
            for part, (one, *_) in parts.items()
        }
        if told != ledger.amounts():
            yield f"{kernel.kernel_id}: the store has {told}, the chain {ledger.amounts()}"
        booked = int(ledger.fields["v:booked"][2:] or 0), int(shown["state"]["booked"].get("number_micros", 0))
        versions = int(ledger.fields["version"]), int(shown["version"])
        if booked[0] != booked[1] or versions[0] != versions[1]:
            yield f"{kernel.kernel_id}: chain and store have {booked} booked and the versions {versions}"
        jobs = {one["execution"]: one["stuck"] for one in shown.get("compensations", ())}
        if jobs != {key: stuck for key, stuck, _ in _jobs(ledger)}:
            yield f"{kernel.kernel_id}: the store is to make up for {sorted(jobs)}, the chain for {_jobs(ledger)}"


def _jobs(ledger: Ledger) -> list[tuple[str, bool, str]]:
    """Return the steps that are still to be made up for: key, whether that needs a person, saga."""
    found = [(name[2:], value.split(" ")) for name, value in ledger.fields.items() if name.startswith("j:")]
    return [(key, words[-1] == "stuck", words[0]) for key, words in found]


def kernels_answers_are_sealed(facts: Facts) -> Iterator[str]:
    """Every answer that a client got is on record, under its number and its key, as it was told."""
    for kernel in facts.kernels:
        sealed = {str(record.data["key"]): record for record in kernel.records if record.data["key"]}
        for one in kernel.told:
            record = sealed.get(one.key)
            if one.recorded:
                if record is None or record.event_type != "KERNEL_EMERGENCY" or not one.approved:
                    yield f"{kernel.kernel_id}: the emergency action {one.key} was recorded, and is not on record"
                continue
            if record is None or record.sequence != one.sequence or (record.data["approved"] == "1") != one.approved:
                yield f"{kernel.kernel_id}: {one.ask} {one.key} was told {one.approved} as {one.sequence}, and is not so on record"


def stops_stand(facts: Facts) -> Iterator[str]:
    """After a sidecar answered that it stopped a part of a kernel, nothing that is asked there of it or below is permitted.

    Under a key that was answered before, it is told what it was told.
    """
    for kernel in facts.kernels:
        ledger = _final(kernel)
        stops = [one for one in kernel.told if one.ask == "emergency" and one.stop and one.approved]
        acted = [one for one in kernel.told if one.ask in {"execute", "permit"} and one.approved and not one.replayed]
        for stop in stops:
            for one in acted:
                late = one.front == stop.front and one.began > stop.ended
                if late and stop.child in ledger.path(one.child):
                    yield f"{kernel.kernel_id}: {one.ask} {one.key} was permitted behind the stop {stop.key} of {stop.child or 'it'}"


def sagas_end(facts: Facts) -> Iterator[str]:
    """No saga stays open; each step that was made in one that failed is made up for, or a person is told of it."""
    for kernel in facts.kernels:
        ledger = _final(kernel)
        if still := ledger.fields.get("sagas", ""):
            yield f"{kernel.kernel_id}: the sagas {still} are open"
        for key, stuck, saga in _jobs(ledger):
            if not stuck:
                yield f"{kernel.kernel_id}: nobody made up for {key} of {saga}"


def compensations_are_made_in_the_world(facts: Facts) -> Iterator[str]:
    """What is on record as made up for was made up for at least once, under its step's key; nothing else ever was.

    What stays of the world is what the kernel's state says: what was booked, less what was unbooked.
    """
    for kernel in facts.kernels:
        ordered, settled = set[str](), set[str]()
        for record, before, after in _walked(kernel):
            jobs = {key for key, _, _ in _jobs(after)}
            ordered |= jobs
            if record.event_type == "KERNEL_COMPENSATED":
                settled |= {key for key, _, _ in _jobs(before)} - jobs
        for key in sorted(settled - set(kernel.unmade)):
            yield f"{kernel.kernel_id}: {key} is on record as made up for, and nobody did it"
        for key in sorted(set(kernel.unmade) - ordered):
            yield f"{kernel.kernel_id}: {key} was made up for, and its saga had not failed"
        booked = {
            str(one.data["key"]) for one in kernel.records if one.event_type in DONE and one.data["action"] == "book"
        }
        ledger = _final(kernel)
        for key in sorted(kernel.made - booked):
            yield f"{kernel.kernel_id}: {key} was made in the world, and is not on record"
        undone = {key for key in booked if ledger.step(key).get("state") == "R"}
        left = len(booked - settled - undone) * 1_000_000
        if left != int(ledger.fields["v:booked"][2:] or 0):
            yield f"{kernel.kernel_id} has {ledger.fields['v:booked']} booked; {left} were booked and not made up for"


RULES = (
    kernels_chains_are_whole, kernels_budgets_hold, children_are_charged_up_the_tree, refunds_go_up_the_tree,
    kernels_stores_are_their_chains, kernels_answers_are_sealed, stops_stand, sagas_end, compensations_are_made_in_the_world,
)  # fmt: skip
