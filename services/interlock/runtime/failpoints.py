"""Failpoints: named points at which a process can be killed, fail or wait, to test a crash there (design.md).

``INTERLOCK_FAILPOINTS="guard.before_seal:kill; audit.after_commit:error@3; session.before_settle:delay=500"``: the
point, the action, and the pass (from 1; every pass when absent). Failpoints are off unless the variable is set. A name that is
not in ``POINTS``, or another mistake, refuses to start. The variable is read from the environment only, never from a file.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from interlock.domain.errors import Refused, invalid, unavailable

log = structlog.get_logger()

VARIABLE = "INTERLOCK_FAILPOINTS"

POINTS: Mapping[str, str] = {
    "sidecar.before_open": "before the lease of a window is asked for",
    "sidecar.after_open": "after the lease was taken, before the dispatch",
    "sidecar.after_reserve": "after what a model call can cost is reserved and on record, before the provider is asked",
    "sidecar.after_part": "after a part of a streamed answer is on record, before it leaves",
    "sidecar.after_dispatch": "after the provider answered, before the analysis",
    "sidecar.before_seal": "before the window's record is sent to the audit log",
    "sidecar.after_seal": "after the seal was acknowledged, before the settlement",
    "sidecar.after_settle": "after the settlement, before what it moved is recorded",
    "sidecar.before_release": "after everything is recorded, before the answer leaves",
    "sidecar.before_created": "after a session was made, before its creation is recorded",
    "sidecar.after_created": "after a session's creation was recorded",
    "sidecar.before_restore": "after a tree's record was read, before it is restored",
    "audit.before_commit": "inside a transaction, before its commit",
    "audit.after_commit": "after the commit is durable, before anybody is told",
    "audit.before_checkpoint": "before a checkpoint is signed",
    "audit.before_anchor": "after a checkpoint was signed, before it is published",
    "audit.after_anchor": "after a checkpoint was published, before that is noted",
    "audit.before_erase": "before a data key is destroyed",
    "audit.after_erase": "after a data key was destroyed, before anybody is told",
    "audit.before_decision": "before a reviewer's decision is written",
    "audit.after_decision": "after a reviewer's decision is durable",
    "audit.before_handout": "before a held response is marked as handed out",
    "audit.after_handout": "after a held response was marked as handed out, before it leaves",
    "stream.before_send": "before a batch of events is posted",
    "stream.after_send": "after a batch was accepted, before that is noted",
    "session.before_start": "before a session is written",
    "session.after_start": "after a session was written, before the caller is told",
    "session.before_open": "before a lease is taken",
    "session.after_open": "after a lease was taken",
    "session.before_hold": "before the most that a window may cost is set aside",
    "session.after_hold": "after it was set aside, before the sidecar is told",
    "session.before_settle": "before a window is settled",
    "session.after_settle": "after a window was settled, before the caller is told",
    "session.before_restore": "before a session is written again",
    "kernel.before_step": "before a kernel decides",
    "kernel.after_step": "after a kernel decided, before the sidecar is told",
    "kernel.before_seal": "after a kernel decided, before its records are sealed",
    "kernel.after_seal": "after the records of a kernel were sealed, before its store is told",
    "kernel.after_record": "after an emergency action was recorded in a sidecar's spool, before the caller is told",
    "kernel.after_append": "after a recorded emergency action was sealed, before it is taken out of the spool",
    "decision.after_ask": "after the agents of a cycle answered, before the engine decides",
    "decision.before_seal": "after a cycle was decided, before it is sealed",
    "decision.after_seal": "after a cycle was sealed, before the store is told",
    "session.after_restore": "after a session was written again",
}
"""The points before and after every durable step: name → description."""

_RULE = re.compile(r"(?P<name>[a-z_.]+):(?P<action>kill|error|delay=(?P<ms>\d{1,6}))(?:@(?P<at>\d{1,6}))?", re.ASCII)


@dataclass
class _Rule:
    action: str
    delay_s: float
    at: int | None
    passes: int = 0


class Failpoints:
    """The rules of one process. Without rules, a pass costs one lookup in an empty mapping."""

    def __init__(self, text: str = "") -> None:
        self.rules: dict[str, list[_Rule]] = {}
        self._lock = threading.Lock()
        for part in filter(None, map(str.strip, text.split(";"))):
            found = _RULE.fullmatch(part)
            if found is None or found["name"] not in POINTS:
                raise invalid(
                    "FAILPOINTS_INVALID", f"{VARIABLE}: each entry is NAME:kill, NAME:error or NAME:delay=MS, with an optional @PASS",
                    hint="names: " + ", ".join(POINTS),
                )  # fmt: skip
            rule = _Rule(
                found["action"].partition("=")[0],
                int(found["ms"] or 0) / 1000,
                int(found["at"]) if found["at"] else None,
            )
            self.rules.setdefault(found["name"], []).append(rule)

    @property
    def active(self) -> bool:
        """Whether there is any rule."""
        return bool(self.rules)

    def due(self, name: str) -> list[_Rule]:
        """Return the rules that this pass of *name* triggers."""
        if name not in self.rules:
            return []
        with self._lock:
            for rule in self.rules[name]:
                rule.passes += 1
            return [rule for rule in self.rules[name] if rule.at in {None, rule.passes}]


_points = Failpoints()


def configure(text: str | None = None) -> None:
    """Set the rules from *text*, or else from the environment. Refused with FAILPOINTS_INVALID."""
    global _points
    _points = Failpoints(os.environ.get(VARIABLE, "") if text is None else text)
    if _points.active:
        log.warning("failpoints.active", hint=f"{VARIABLE} is set: this process fails on purpose")


async def reached(name: str) -> None:
    """Pass the point *name* on an event loop. An ``error`` rule refuses with UNAVAILABLE and FAILPOINT."""
    if not _points.rules:  # every call passes a dozen of them
        return
    for rule in _points.due(name):
        if rule.action == "delay":
            await asyncio.sleep(rule.delay_s)
        else:
            _fail(rule, name)


def reached_sync(name: str) -> None:
    """Pass the point *name* in a thread that may block."""
    for rule in _points.due(name):
        if rule.action == "delay":
            time.sleep(rule.delay_s)
        else:
            _fail(rule, name)


def _fail(rule: _Rule, name: str) -> None:
    if rule.action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise _injected(name)


def _injected(name: str) -> Refused:
    return unavailable("FAILPOINT", "this failure was requested", failpoint=name)
