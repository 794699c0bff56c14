"""One governed call: what was asked for, and what its steps have come to so far."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.headers import Asked
from interlock.sidecar import events
from interlock.sidecar.completion import Answer
from interlock.sidecar.envelope import Envelope
from interlock.sidecar.propagation import Known
from interlock.sidecar.waiting import Deadline

Model = Callable[[Mapping[str, Any], float], Awaitable[Answer]]
"""Gets the answer to a request body, within the seconds given."""


@dataclass(frozen=True)
class Call:
    """One call to govern, however it came."""

    entry: str
    """http, grpc or check: for the access line, never for a decision."""
    scope: str
    asked: Asked
    envelope: Envelope
    dispatch: events.Dispatch
    body: Mapping[str, Any]
    """What the provider gets; empty when the caller brought the answer, which then cannot be asked for again."""
    model: Model
    known: Known


@dataclass
class Run:
    """One call while it runs."""

    call: Call
    deadline: Deadline
    started: float
    model_s: float = 0.0
    """Time of all provider calls."""
    slowest_s: float = 0.0
    """Time of the slowest provider call."""
    usages: list[Mapping[str, Any]] = field(default_factory=list)
    """What each provider call was counted as: the answer's usage is their sum."""
    noted: list[audit_pb2.NewEvent] = field(default_factory=list)
    """What happened so far, in order; it is sealed with the window."""
    asking: asyncio.Future[Answer] | None = None
    """The provider call that may be cut short."""
    caller_left: bool = False

    def leave(self) -> None:
        """Note that nobody waits any more. Only a provider's work is cut short: what was answered is charged."""
        self.caller_left = True
        if self.asking:
            self.asking.cancel()
