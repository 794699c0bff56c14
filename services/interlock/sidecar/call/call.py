"""One governed call: the request, and the results of its steps so far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import Refused
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.held import CHAT
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.sidecar.call.ahead import Reading
from interlock.sidecar.call.binding import UNBOUND, CallBinding
from interlock.sidecar.call.envelope import CallEvidence
from interlock.sidecar.call.live import Live
from interlock.sidecar.call.spending import WindowSpending
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.media import NO_MEDIA, Media
from interlock.sidecar.trail import events
from interlock.sidecar.trail.response_headers import ResponseHeaders
from interlock.sidecar.trail.would import WouldHave

Model = Callable[[Mapping[str, Any], float], Awaitable[Completion]]
"""Gets the answer to a request body, within the seconds given."""


@dataclass(frozen=True)
class Call:
    """One call to govern, however it came."""

    entry: str
    """http, grpc or check: for the access line, never for a decision."""
    caller: Caller
    asked: RequestHeaders
    envelope: CallEvidence
    dispatch: events.Dispatch
    body: Mapping[str, Any]
    """What the provider gets; empty when the caller brought the answer, which then cannot be asked for again."""
    model: Model
    reply: ResponseHeaders
    form: str = CHAT
    """In which form the answer leaves; one that is held is released in the same."""
    include_usage: bool = False
    """Whether a stream ends with its usage."""
    shape: str = ""
    """The whole that this window is a part of: batch or hierarchical; empty: none but what its headers say."""
    phases: tuple[str, ...] = ()
    """Phases of the agentic loop that this window goes through; the last one is where it ends (SPEC-008 §6.2)."""
    iteration: int = 0
    """Number of the window in its loop, from 1."""
    windows: int = 1
    """Windows in a row that the whole takes, this one among them: fewer left is refused before anything is dispatched."""
    apart: frozenset[str] = frozenset()
    """Windows that this one's answer is not compared with: items of a batch share no context (SPEC-008 §8.1)."""
    sub_query_of: Mapping[str, str] = field(default_factory=dict)
    """Sub-query that each merged window was to answer, by its id, where that is known."""
    spent: tuple[Mapping[str, Any], ...] = ()
    """What provider calls of earlier windows of the whole were counted as; the answer's usage holds them too."""

    media: Media = NO_MEDIA
    """Images, sound and files of its request, which nobody judges."""
    binding: CallBinding = UNBOUND
    """What the call says about its session."""
    live: Live | None = None
    """Where parts of the answer leave as soon as they may; ``None``: it leaves as a whole."""

    @property
    def scope(self) -> str:
        """The caller's key id."""
        return self.caller.scope


@dataclass
class Run:
    """One call while it runs."""

    call: Call
    deadline: Deadline
    started: float
    place_id: str = ""
    """Its place in the dpe; empty where the dpe knows no places."""
    ahead: Reading | None = None
    """Earlier answers that are read while its window is opened."""
    model_s: float = 0.0
    """Time in which at least one provider call was under way."""
    slowest_s: float = 0.0
    """Time of the slowest provider call."""
    usages: list[Mapping[str, Any]] = field(default_factory=list)
    """What each provider call was counted as: the answer's usage is their sum."""
    noted: list[audit_pb2.NewEvent] = field(default_factory=list)
    """What happened so far, in order; it is sealed with the window."""
    would: list[WouldHave] = field(default_factory=list)
    """What would have been done to the answer, where it is only watched."""
    asking: set[asyncio.Future[Any]] = field(default_factory=set)
    """Provider calls that may be cut short."""
    dispatched: bool = False
    """Whether the answer itself was asked for."""
    caller_left: bool = False
    begun: bool = False
    """Whether a part of the answer may have left: from then on the window is sealed and charged, whatever becomes of it."""
    spending: WindowSpending = field(init=False)
    """What its model calls cost, from its admission on."""
    action_refused: Refused | None = None
    """Why its answer is not released where the caller's kernel would reject a tool call of it."""
    since: float = 0.0
    under_way: int = 0
    """Provider calls under way; several summaries are made at once."""

    @property
    def place_for(self) -> str | None:
        """Whom the analysis takes a place for by itself: that of an answer that the call brings, for which no provider is asked."""
        return None if self.call.body or self.place_id else self.call.caller.sharing

    def leave(self) -> None:
        """Note that the caller has left. Only a provider's work is cut short: an answer that exists is charged."""
        self.caller_left = True
        for asking in self.asking:
            asking.cancel()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the time of a provider call."""
        begun = time.perf_counter()
        self.since = begun if not self.under_way else self.since
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1
            now = time.perf_counter()
            self.slowest_s = max(self.slowest_s, now - begun)
            if not self.under_way:
                self.model_s += now - self.since
