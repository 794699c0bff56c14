"""Sagas: steps that are undone together, those in the world by their compensations (SEED-2, question 3).

``session/lua/kernel_saga.lua`` carries it too. A saga is ``g:<key>``: until_ms and the keys of its steps. A compensation that is to run
is ``j:<key of its step>``: saga, its action, the action of the step, attempts, due_ms, fence, and due or stuck. ``sagas`` are the open
ones, ``due`` the steps whose compensation is to run, in order. The fence of one that is stuck is the number of the record that says so: a
person decides about that one, and not about what became of it since.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from interlock.domain.kernel import values
from interlock.domain.kernel.decision import KernelStep
from interlock.domain.kernel.state import Stepped

SAGAS, SAGA_STEPS, ATTEMPTS, BACKOFF_MS = 64, 16, 5, 1_000
NOBODY = "-"


@dataclass(frozen=True)
class CompensationDue:
    """A compensation that is to run. *action* is NOBODY where a person has to do it."""

    saga: str
    action: str
    of: str
    attempts: int
    due_ms: int
    fence: str
    state: str

    @property
    def text(self) -> str:
        """The stored form."""
        return f"{self.saga} {self.action} {self.of} {self.attempts} {self.due_ms} {self.fence} {self.state}"

    @classmethod
    def of_text(cls, text: str) -> CompensationDue:
        """Read the stored form."""
        saga, action, of, attempts, due_ms, fence, state = text.split(" ")
        return cls(saga, action, of, int(attempts), int(due_ms), fence, state)


def begin(step: KernelStep) -> Stepped:
    """Open a saga until its time is over; what is not ended by then is rolled back by whoever asks for compensations."""
    ask, live = step.ask, (step.get("sagas") or "").split()
    if ask["key"] in live:
        return Stepped("KERNEL_KEY_REUSED", {})
    step.check("running", step.fields["stopped"] == "0", "KERNEL_STOPPED")
    step.check("sagas", len(live) < SAGAS, "SAGAS_TOO_MANY", str(len(live)), str(SAGAS))
    ask["until_ms"] = str(step.now + int(ask["lifetime_ms"]))
    step.changed["sagas"] = " ".join([*live, ask["key"]])
    step.changed["g:" + ask["key"]] = ask["until_ms"]
    return step.commit("KERNEL_SAGA_BEGUN", "", [], [], "-")


def joined(step: KernelStep) -> str:
    """Count an action as a step of its saga; the reason of a refusal where that is not open."""
    saga = step.ask.get("saga")
    if not saga:
        return ""
    text = step.get("g:" + saga)
    if text is None:
        return "KERNEL_SAGA_UNKNOWN"
    until, *steps = text.split(" ")
    if step.now > int(until):
        return "KERNEL_SAGA_EXPIRED"
    step.check("saga", len(steps) < SAGA_STEPS, "SAGA_TOO_LONG", str(len(steps) + 1), str(SAGA_STEPS))
    step.changed["g:" + saga] = f"{text} {step.ask['key']}"
    return ""


def end(step: KernelStep) -> Stepped:
    """End a saga: its steps stay done."""
    if step.get("g:" + step.ask["saga"]) is None:
        return Stepped("KERNEL_SAGA_UNKNOWN", {})
    _close(step, step.ask["saga"])
    return step.commit("KERNEL_SAGA_ENDED", "", [], [], "-")


def rollback(step: KernelStep) -> Stepped:
    """Undo a saga: what the kernel can undo at once, the rest by compensations or by a person. It is never refused."""
    if step.get("g:" + step.ask["saga"]) is None:
        return Stepped("KERNEL_SAGA_UNKNOWN", {})
    return _rolled_back(step, step.ask["saga"])


def _rolled_back(step: KernelStep, saga: str) -> Stepped:
    keys = step.need("g:" + saga).split(" ")[1:]
    before = dict(step.changed)
    jobs, undone = _undone(step, saga, keys, inverses=True)
    if not step.unbroken():
        step.changed = before
        jobs, undone = _undone(step, saga, keys, inverses=False)
    _close(step, saga)
    stuck = [key for key, job in jobs.items() if job.state == "stuck"]
    due = [key for key in jobs if key not in stuck]
    step.changed |= {"j:" + key: job.text for key, job in jobs.items()}
    step.changed["due"] = " ".join([*(step.get("due") or "").split(), *due])
    for key in stuck:
        step.check("compensated:" + key, key not in jobs, "COMPENSATION_STUCK", monitoring=True)
    return step.commit("KERNEL_COMPENSATION_STUCK" if stuck else "KERNEL_SAGA_ROLLED_BACK", "", [], undone, "-")


def _undone(
    step: KernelStep, saga: str, keys: Iterable[str], *, inverses: bool
) -> tuple[Mapping[str, CompensationDue], list[list[str]]]:
    """Undo steps, the last first; return what is to be compensated, in order, and what was written.

    A permit that nobody settled may have been used: one that cannot be undone stays charged, and is a person's.
    """
    jobs: dict[str, CompensationDue] = {}
    undone: list[list[str]] = []
    for key in reversed([*keys]):
        text = step.get("x:" + key)
        entry: dict[str, Any] = (
            json.loads(text) if text else {"state": "E", "irreversible": "1", "answer": {"action": ""}}
        )
        if entry["state"] not in {"E", "C", "P"}:
            continue
        compensation, of = entry.get("compensation") or "", entry["answer"]["action"] or NOBODY
        if compensation:
            jobs[key] = CompensationDue(saga, compensation, of, 0, step.now, "0", "due")
        elif entry["irreversible"] == "1" or not inverses or not _inverted(step, entry["undo"] or [], undone):
            jobs[key] = CompensationDue(saga, NOBODY, of, 0, step.now, _next(step), "stuck")
        else:
            step.refund(entry["costs"], entry.get("child") or "")
        if text:
            step.changed["x:" + key] = json.dumps(
                entry | {"state": "S" if key in jobs else "R", "undo": [], "costs": []}
            )
    return jobs, undone


def _inverted(step: KernelStep, undo: list[list[str]], undone: list[list[str]]) -> bool:
    """Undo the effects of one step, all of them or none."""
    before, written = dict(step.changed), []
    for one in reversed([*undo]):
        now_held = step.need("v:" + one[0])
        new = values.inverse(one, now_held)
        if new is None:
            step.changed = before
            return False
        step.changed["v:" + one[0]] = new
        written.append([one[0], "set", new, now_held, new])
    undone += written
    return True


def claim(step: KernelStep) -> Stepped:
    """Hand out the next compensation; before that, roll back a saga whose time is over, or give up one that failed too often."""
    ask = step.ask
    for saga in (step.get("sagas") or "").split():
        if step.now > int(step.need("g:" + saga).split(" ")[0]):
            return _rolled_back(step, saga)
    begun: set[str] = set()
    for key in (step.get("due") or "").split():
        job = CompensationDue.of_text(step.need("j:" + key))
        first = job.saga not in begun
        begun.add(job.saga)
        if not first or step.now < job.due_ms:
            continue
        if job.attempts >= ATTEMPTS:
            return _give_up(step, key, job)
        until = step.now + int(ask["lifetime_ms"])
        fence = _next(step)
        out = replace(job, attempts=job.attempts + 1, due_ms=until, fence=fence)
        step.changed["j:" + key] = out.text
        ask["claim"] = [key, job.saga, job.action, job.of, str(out.attempts), fence, str(until)]
        return step.commit("KERNEL_COMPENSATION_CLAIMED", job.action, [], [], "-")
    return step.answered("OK", {})


def settle(step: KernelStep) -> Stepped:
    """Note how a compensation ended."""
    key, text = step.ask["execution"], step.get("j:" + step.ask["execution"])
    if text is None:
        return Stepped("KERNEL_COMPENSATION_UNKNOWN", {})
    job = CompensationDue.of_text(text)
    if job.state == "stuck" and "of_reviewers" in step.ask:
        return Stepped("KERNEL_REVIEWER_NEEDED", {})
    if job.state == "due" and not job.attempts and step.ask["outcome"] == "done":
        return Stepped("KERNEL_COMPENSATION_FENCED", {})  # nobody was given it to do
    outcomes: Mapping[str, Callable[[KernelStep, str, CompensationDue], Stepped]] = {
        "done": _done,
        "failed": _failed,
        "retry": _again,
    }
    return outcomes[step.ask["outcome"]](step, key, job)


def decide(step: KernelStep) -> Stepped:
    """Note what a person decided about a compensation that is stuck: made up for, to be tried again, or left as it is."""
    key, text = step.ask["execution"], step.get("j:" + step.ask["execution"])
    if text is None:
        return Stepped("KERNEL_COMPENSATION_UNKNOWN", {})
    job = CompensationDue.of_text(text)
    if job.state != "stuck":
        return Stepped("KERNEL_COMPENSATION_NOT_STUCK", {})
    if job.fence != step.ask["fence"]:
        return Stepped("KERNEL_COMPENSATION_MOVED_ON", {})
    outcomes: Mapping[str, Callable[[KernelStep, str, CompensationDue], Stepped]] = {
        "done": _done,
        "retry": _again,
        "leave": _left,
    }
    return outcomes[step.ask["outcome"]](step, key, job)


def _done(step: KernelStep, key: str, job: CompensationDue) -> Stepped:
    undo: list[list[str]] = []
    if job.action != NOBODY:
        effects = json.loads(step.need("a:" + job.action))["effects"]
        step.moment("a:" + job.action, 1)
        undo = step.change(effects)
        if len(undo) == len(effects):
            step.invariants()
    step.changed["j:" + key] = None
    _not_due(step, key)
    return step.commit("KERNEL_COMPENSATED", "" if job.action == NOBODY else job.action, [], undo, "-")


def _failed(step: KernelStep, key: str, job: CompensationDue) -> Stepped:
    if job.fence != step.ask["fence"] or job.state == "stuck":
        return Stepped("KERNEL_COMPENSATION_FENCED", {})
    if job.attempts >= ATTEMPTS:
        return _give_up(step, key, job)
    later = step.now + BACKOFF_MS * 2 ** (job.attempts - 1)
    step.changed["j:" + key] = replace(job, due_ms=later, fence="0").text
    return step.commit("KERNEL_COMPENSATION_FAILED", job.action, [], [], "-")


def _again(step: KernelStep, key: str, job: CompensationDue) -> Stepped:
    if job.action == NOBODY:
        return Stepped("KERNEL_COMPENSATION_FENCED", {})
    _not_due(step, key)
    step.changed["j:" + key] = replace(job, attempts=0, due_ms=step.now, fence="0", state="due").text
    step.changed["due"] = " ".join([*(step.get("due") or "").split(), key])
    return step.commit("KERNEL_COMPENSATION_RETRIED", job.action, [], [], "-")


def _left(step: KernelStep, key: str, job: CompensationDue) -> Stepped:
    step.changed["j:" + key] = replace(job, fence=_next(step)).text
    return step.commit("KERNEL_COMPENSATION_LEFT", job.action, [], [], "-")


def _give_up(step: KernelStep, key: str, job: CompensationDue) -> Stepped:
    step.changed["j:" + key] = replace(job, fence=_next(step), state="stuck").text
    _not_due(step, key)
    step.check("compensated:" + key, job.attempts < ATTEMPTS, "COMPENSATION_STUCK", monitoring=True)
    return step.commit("KERNEL_COMPENSATION_STUCK", job.action, [], [], "-")


def _next(step: KernelStep) -> str:
    """Return the number of the record that this step becomes."""
    return str(int(step.fields["seq"]) + 1)


def _not_due(step: KernelStep, key: str) -> None:
    step.changed["due"] = " ".join(one for one in (step.get("due") or "").split() if one != key)


def _close(step: KernelStep, saga: str) -> None:
    step.changed["g:" + saga] = None
    step.changed["sagas"] = " ".join(one for one in (step.get("sagas") or "").split() if one != saga)
