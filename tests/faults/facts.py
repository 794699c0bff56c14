"""What is known after a run: what clients saw, what the stores hold, what the audit log holds, what the provider was sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FULL, DEPLETED_AT = 1_000_000, 100_000
"""A whole safety budget, and what counts as spent, millionths."""

CHAT, LOOK, DELEGATE, PLAIN, END = "chat", "look", "delegate", "plain", "end"
"""Kinds of calls; a plain one has no token and is bound by a name, an end is a client's end of its session."""

HTTP, STREAM, GRPC = "http", "stream", "grpc"
"""Ways in."""

PARTS, RESPONSES, MESSAGES, RPC_PARTS = "parts", "responses", "messages", "rpc-parts"
"""Ways in by which an answer may leave in parts: chat completions, Responses and Messages over HTTP, DispatchStream over gRPC."""

IN_PARTS = frozenset({PARTS, RESPONSES, MESSAGES, RPC_PARTS})
WRITTEN_ANEW = frozenset({STREAM, PARTS, RESPONSES, MESSAGES})
"""Ways in whose bytes are others than those of the completion that is sealed."""

RELEASED = 200
"""Status of an answer that was given away."""


@dataclass(frozen=True)
class Call:
    """One request of a client and its outcome. Times are of one monotonic clock."""

    number: int
    client: str
    kind: str
    started: float
    ended: float
    limit_s: float
    """By when an answer or a refusal must be here, whatever is broken."""
    status: int
    """HTTP status; 0 when the connection broke or the client left."""
    reason: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body_hash: str = ""
    token: str = ""
    """The session token that was sent; empty for none."""
    pattern: str = "LINEAR"
    left: bool = False
    """Whether the client hung up by itself."""
    front_up: bool = True
    """Whether the sidecar that was asked, and the way to it, was whole all the time."""
    approval: str = ""
    """The oversight token that was presented; empty for none."""
    budget: int | None = None
    """The session's budget as a look showed it, millionths."""
    shown: Mapping[str, object] = field(default_factory=dict)
    entry: str = HTTP
    """Way in: http, stream (http, as server-sent events), grpc, or one of those by which answers leave in parts."""
    heard: str = ""
    """Text that the client received of an answer that was asked for in parts, however that ended."""

    @property
    def session_id(self) -> str:
        """Session that the answer names."""
        return self.headers.get("crp-context-session-id", "")

    @property
    def hmac(self) -> str:
        """HMAC of the window that the answer is, where one was sealed."""
        return self.headers.get("crp-provenance-hmac", "")

    @property
    def budget_told(self) -> int | None:
        """What is left of its session's budget as its client was told, millionths."""
        return self.budget if self.budget is not None else micros_in(self.headers.get("crp-agent-safety-budget"))


@dataclass(frozen=True)
class Window:
    """A window as the session store holds it, settled or failed."""

    window_id: str
    number: int
    parents: tuple[str, ...]
    pattern: str
    charge: int
    path_budget: int
    hmac: str
    response_hash: str
    status: str


@dataclass(frozen=True)
class Seal:
    """A window as the audit log holds it."""

    window_id: str
    number: int
    parents: tuple[str, ...]
    charge: int
    hmac: str
    response_hash: str
    status: str


@dataclass(frozen=True)
class Event:
    """An event as the audit log holds it."""

    sequence: int
    event_type: str
    window_id: str
    hmac: str
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """Bounds on a session's graph."""

    max_windows: int
    max_dag_nodes: int
    max_fan_out: int
    max_loop_depth: int


@dataclass(frozen=True)
class Session:
    """One session at the end of a run; ``budget`` is ``None`` when the session store does not hold it."""

    session_id: str
    parent: str
    depth: int
    budget: int | None
    active: bool
    policy: str
    windows: tuple[Window, ...]
    seals: tuple[Seal, ...]
    events: tuple[Event, ...]
    integrity: str
    """Verdict of the audit service: VALID, UNVERIFIED, BROKEN, …"""
    faults: tuple[str, ...] = ()
    continues: str = ""
    """The full session that it goes on from, without a token; empty for one that began anew."""
    began: int = 1_000_000
    """Its budget at its start by the log, millionths."""
    summing: bool = False
    """Whether the costs of its tree add up."""
    holds: frozenset[str] = frozenset()
    """Windows for which the session store holds something."""


@dataclass(frozen=True)
class Caller:
    """A caller at the end of a run: what the store counted in its period, what the audit log did, and what its known windows cost."""

    scope: str
    spent: int
    """By the session store."""
    logged: int
    """By the audit log, windows that nobody settled included."""
    settled: int
    """The charges of all windows that the store holds as settled, of the sessions that a client was told of."""
    holds: frozenset[str] = frozenset()
    """Windows for which its budget holds something."""
    caller_id: str = ""
    """Its id in the store."""


@dataclass(frozen=True)
class Record:
    """A record of a kernel as the audit log holds it."""

    sequence: int
    event_type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Told:
    """An answer that a client of a kernel got."""

    ask: str
    key: str
    approved: bool
    sequence: int
    action: str = ""
    child: str = ""
    stop: bool = False
    recorded: bool = False
    """Whether its sidecar had recorded it, and it was not sealed yet."""
    replayed: bool = False
    front: int = -1
    """The way in by which it was asked."""
    began: float = 0.0
    ended: float = 0.0
    """When the call that was answered began and ended, by the clock of the calls."""


@dataclass(frozen=True)
class Kernel:
    """A kernel at the end of a run."""

    kernel_id: str
    records: tuple[Record, ...]
    integrity: str
    shown: Mapping[str, Any]
    """As its store describes it."""
    told: tuple[Told, ...]
    made: frozenset[str]
    """Keys of steps that were made in the world."""
    unmade: tuple[str, ...]
    """Keys of steps that were made up for in the world, each time that it was done."""


@dataclass(frozen=True)
class ToldCycle:
    """What the owner of an experiment was told when it asked for a decision. Times are of the clock of the calls."""

    started: float
    ended: float
    raised: str
    """What the client raised into the experiment; must be nothing."""
    fault: str
    """Why there was no decision; empty where there was one."""
    cycle: int
    decision_id: str
    outcome: str
    chosen: str
    unheard: int = 0
    """A cycle that was decided and whose answer was lost; 0 for none."""


@dataclass(frozen=True)
class Experiment:
    """An experiment at the end of a run."""

    experiment_id: str
    records: tuple[Record, ...]
    integrity: str
    told: tuple[ToldCycle, ...]
    done: Mapping[int, int]
    """Cycle → micros that its action cost in the world; -1: it was not done."""
    owed: tuple[int, ...]
    """Cycles that could not be settled."""
    refused: tuple[str, ...]
    """Settlements that were refused for good."""
    ended: tuple[str, ...]
    """Agents that ended by themselves, and why."""
    kernel: Kernel | None
    cycle: int
    """The last cycle, as the store has it."""
    statuses: Mapping[str, str]
    """How the agents stand, as the store has it."""


@dataclass(frozen=True)
class Received:
    """One request as the provider got it."""

    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass(frozen=True)
class Checkpoint:
    """A signed checkpoint that was seen during the run, and whether the final log extends it."""

    size: int
    root: str
    extended: bool


@dataclass(frozen=True)
class Facts:
    """Everything that one run left behind."""

    calls: tuple[Call, ...] = ()
    sessions: tuple[Session, ...] = ()
    unfinished: tuple[Session, ...] = ()
    """Sessions of which a client heard a part, and which it left before it was told that they are there."""
    received: tuple[Received, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    callers: tuple[Caller, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    experiments: tuple[Experiment, ...] = ()
    limits: Limits = Limits(50, 100, 10, 5)
    charges: frozenset[int] = frozenset({0, 50_000, 150_000, 350_000})
    """What one answer may cost."""
    log_entries: tuple[str, ...] = ()
    """Reports of defects in the logs of the parts; must be none."""
    stores_kept: bool = True
    """Whether everything that was lost must be there again at the end."""
    set_back_at: float = 0.0
    """When the session store was set back in place: a look shows what the store tells until the session is used (docs/limits.md)."""
    stuck: frozenset[str] = frozenset()
    """Sessions that no client can go on with: their tokens were signed under a clock that was wrong."""
    secrets: frozenset[str] = frozenset()
    """Session tokens and the like that no provider may be sent."""


def micros_in(text: str | None) -> int | None:
    """Return a budget as a header writes it, millionths; ``None`` where there is none."""
    if text is None or not re.fullmatch(r"[01]\.\d{1,6}", text):
        return None
    whole, part = text.split(".")
    return int(whole) * FULL + int(part.ljust(6, "0"))
