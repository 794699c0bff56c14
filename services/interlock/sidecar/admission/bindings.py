"""To which session a call without a token belongs, and what its caller is told about it (requirements.md, ATT-1, ATT-3).

The session service decides, in the caller's scope alone. Here is what follows from its answer: which refusals mean that a session
begins, which one it goes on from, and what is counted, written down and said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from prometheus_client import Counter

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.binding.rank import Rank
from interlock.domain.budget import FULL, OPEN_AT
from interlock.domain.errors import Kind, Refused, not_found, unauthenticated
from interlock.domain.headers.awareness import aware
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.session.session_refusals import refusal as session_refusal
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import SessionPeer
from interlock.sidecar.call.binding import CallBinding
from interlock.sidecar.settlement.recovery import Recovery
from interlock.sidecar.trail.events import INFO, WARN, event

BOUND = Counter("interlock_session_bindings", "Admitted calls, by what bound them to their session.", ["rank"])
EVIDENCE = Counter(
    "interlock_binding_evidence", "Evidence that decided nothing: disagreeing, stale or unusable.", ["rank", "outcome"]
)

TRIES = 3
"""How often a call asks for its session while others start one under the same name."""

NOT_BOUND, TAKEN = "SESSION_NOT_BOUND", "BINDING_TAKEN"
ASK_AGAIN = frozenset({"WINDOW_ALREADY_SETTLED", "WINDOW_SETTLED_LATE"})
"""Refusals after which the same evidence finds its window: an earlier one was settled meanwhile. A caller without a token cannot
do what their text says."""
SPENT = "BUDGET_DEPLETED"
USED_UP = frozenset({"MAX_WINDOWS_EXCEEDED", "MAX_DAG_NODES_EXCEEDED", "SESSION_TERMINATED"})
"""Refusals of a session that has no window left, and that its client did not end."""

APART = frozenset({Rank.COOKIE, Rank.TRACE, Rank.BODY})
"""Ranks whose sessions may hold several conversations: they name a program, a request or a person, not a conversation."""


@dataclass(frozen=True)
class Bound:
    """What bound a call, and what spoke against it."""

    rank: Rank = Rank.TOKEN
    disagreeing: tuple[Rank, ...] = ()
    unusable: tuple[Rank, ...] = ()
    begins_conversation: bool = False
    apart: frozenset[str] = frozenset()
    """Earlier windows of the session that are not of this conversation."""
    continues: str = ""
    """Session that the call's own one goes on from; empty: none."""

    @property
    def worth_telling(self) -> bool:
        """Whether the trail says it: a session that just begins says so itself."""
        found = self.rank not in {Rank.TOKEN, Rank.CALLER} or self.continues
        return bool(found or self.disagreeing or self.unusable)


BY_TOKEN = Bound()


@dataclass(frozen=True)
class Beginning:
    """Why a session begins for a call, as far as its binding knows."""

    earlier: session_pb2.Session | None = None
    """The session that it goes on from: its windows are used up."""
    disagreeing: tuple[Rank, ...] = ()
    """What spoke for a session although a stronger name, which is new, decided."""


@dataclass(frozen=True)
class Bindings:
    """Finds the session that a call goes on from where the one that it is bound to takes no more windows."""

    session: SessionPeer
    recovery: Recovery
    ranks: frozenset[Rank]
    watches: bool = False
    """Whether callers that know nothing of CRP are only watched: a spent session stops none of them."""

    async def require_own(self, binding: CallBinding, scope: str, deadline: Deadline) -> None:
        """Refuse a session that the call names by its id and that is not this caller's, with SESSION_NOT_FOUND.

        It never becomes the name of a new session: its owner would not know what is done under it.
        """
        if not binding.said.session_id:
            return
        request = session_pb2.GetSessionRequest(session_id=binding.said.session_id, scope=scope)
        try:
            await self.session.get(request, deadline)
        except Refused as refused:
            if refused.kind not in {Kind.NOT_FOUND, Kind.UNAUTHENTICATED, Kind.FORBIDDEN}:
                raise
            raise foreign() from None

    def check_may_begin(self, binding: CallBinding, beginning: Beginning) -> None:
        """Refuse a call that nothing names a session for, where this deployment wants one named, and one that names another's."""
        if binding.said.session_id and beginning.earlier is None:
            raise foreign()
        if binding.digests is None or Rank.CALLER in self.ranks or beginning.earlier:
            return
        if not any(name.begins for name in binding.said.names):
            raise unauthenticated(
                "SESSION_BINDING_REQUIRED",
                "nothing says which session this call is of; send CRP-Session-Token or x-session-id",
            )

    async def beginning(self, refused: Refused, asked: RequestHeaders, scope: str, deadline: Deadline) -> Beginning:
        """Return how a session begins after *refused*.

        Raises *refused* where none may begin: a halt is not to be escaped by beginning anew. A caller that is only watched goes on
        in a new session, which has a budget of its own to be watched by.
        """
        if refused.reason == NOT_BOUND:
            words = refused.metadata.get("disagreeing", "").split(",")
            return Beginning(disagreeing=tuple(Rank[word] for word in words if word in Rank.__members__))
        session_id = refused.metadata.get("session_id", "")
        watched = self.watches and not aware(asked)
        if refused.reason not in ({*USED_UP, SPENT} if watched else USED_UP) or not session_id:
            raise refused
        root = refused.metadata.get("root_session_id", "")
        request = session_pb2.GetSessionRequest(session_id=session_id, root_session_id=root, scope=scope)
        look = partial(self.session.get, request, deadline)
        # What is left of it becomes another session's budget: a store that was set back must not tell it.
        earlier = await self.recovery.verified_against_chain(await look(), look, deadline)
        if earlier.parent_session_id:
            raise refused  # a sub-agent's session is started by its parent alone
        if earlier.safety_budget_micros > OPEN_AT:
            return Beginning(earlier)
        if not watched or earlier.aware:
            raise session_refusal(SPENT, earlier.safety_budget_micros)
        earlier.safety_budget_micros = FULL
        return Beginning(earlier)


def bound_by(
    opened: session_pb2.OpenedWindow, binding: CallBinding, *, token: bool, beginning: Beginning | None = None
) -> Bound:
    """Return what bound the window that was opened, and count it. *beginning*: a session began for it."""
    if token:
        # What else the call says is not asked for: the token is proof, and the rest are names.
        against = binding.said.session_id not in {"", opened.session_id}
        made = Bound(disagreeing=(Rank.HINT,) if against else ())
    elif opened.HasField("binding"):
        made = _continuing(opened, binding)
    else:
        begun = beginning or Beginning()
        rank = next((name.rank for name in binding.said.names if name.begins), Rank.CALLER)
        continues = begun.earlier.session_id if begun.earlier else ""
        made = Bound(rank, begun.disagreeing, binding.said.unusable, continues=continues)
        if binding.said.cookie is not None and Rank.COOKIE not in begun.disagreeing and not continues:
            EVIDENCE.labels(Rank.COOKIE.word, "stale").inc()
    _count(made)
    return made


def _continuing(opened: session_pb2.OpenedWindow, binding: CallBinding) -> Bound:
    told = opened.binding
    rank, known = Rank(told.rank or Rank.CALLER), set(told.known_window_ids)
    return Bound(
        rank,
        disagreeing=tuple(map(Rank, told.disagreeing)),
        unusable=binding.said.unusable,
        begins_conversation=told.begins_conversation,
        apart=frozenset(one for one in opened.lineage if one not in known) if rank in APART else frozenset(),
    )


def events(bound: Bound) -> Iterator[audit_pb2.NewEvent]:
    """Yield what the trail says about a binding: ranks, never a name."""
    if bound.worth_telling:
        yield event(
            "SESSION_BOUND", WARN if bound.disagreeing or bound.unusable else INFO, rank=bound.rank.word,
            disagreeing=[one.word for one in bound.disagreeing] or None,
            unusable=[one.word for one in bound.unusable] or None,
            begins_conversation=bound.begins_conversation or None, continues_session_id=bound.continues or None,
        )  # fmt: skip


def _count(bound: Bound) -> None:
    BOUND.labels(bound.rank.word).inc()
    for outcome, ranks in (("disagreeing", bound.disagreeing), ("unusable", bound.unusable)):
        for rank in ranks:
            EVIDENCE.labels(rank.word, outcome).inc()


def foreign() -> Refused:
    """Return the refusal of a session id that names no session of this caller."""
    return not_found("SESSION_NOT_FOUND", "CRP-Context-Session-Id names no session of this caller")
