"""The port to the state of sessions, and its in-memory twin."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from interlock.domain.budget import Micros
from interlock.domain.ids import ContinuationId, SessionId, WindowId
from interlock.domain.session.caller import Begun, CallerAsk, CallerState, CallerView, count, enter, look, merge
from interlock.domain.session.delegating import Delegated, ParentView
from interlock.domain.session.hold import HoldWindow
from interlock.domain.session.holding import caller_freed, caller_rebuilt, hold_window
from interlock.domain.session.opening import holding_text, open_window
from interlock.domain.session.renewing import RenewLease, renew_lease
from interlock.domain.session.restore import merged
from interlock.domain.session.rule import (
    States,
    abandon_window,
    acknowledge,
    commit_window,
    fail_window,
    terminate,
)
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.session_tree import start_child, view_of
from interlock.domain.session.spending import SpendingLimits, SpendWindow
from interlock.domain.session.spending_rule import spend_window
from interlock.domain.session.standing import Standing, standing_of
from interlock.domain.session.state import Committed, CommitWindow, FailWindow, OpenedWindow, OpenWindow, SessionState
from interlock.session.store.bindings import BindingIndex, MemoryBindings
from interlock.session.store.census import MemoryCensus, SessionCensus
from interlock.session.store.kernels.store import KernelStore, MemoryKernels


class Store(Protocol):
    """Each method is one atomic step. All raise ``Refused`` as the rules of the domain do, or when unavailable."""

    bindings: BindingIndex
    """What names and turns stand for which sessions."""
    kernels: KernelStore
    """What agents may do."""
    census: SessionCensus
    """How many sessions there are."""

    async def start(self, state: SessionState, caller: CallerAsk | None = None) -> Begun:
        """Keep a new root session, with no more than its caller has left. Refused with SESSION_EXISTS, CALLER_BUDGET_DEPLETED
        or CALLER_BUDGET_UNVERIFIED.
        """
        ...

    async def start_child(self, state: SessionState, ask: Delegated) -> Micros:
        """Keep a new child session, use up its grant and return its budget: the session's own is the ceiling."""
        ...

    async def view(
        self,
        root: SessionId,
        session: SessionId,
        *,
        pointer: ContinuationId | None = None,
        grant_id: str = "",
        approval_id: str = "",
    ) -> ParentView | None:
        """Return what is looked at of a session before it delegates; the atomic step looks again."""
        ...

    async def open(self, ask: OpenWindow) -> OpenedWindow:
        """Take the lease of the next window. Repeated with the same window id, it takes the same lease."""
        ...

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window, advance the session and lower its ancestors, once per window id."""
        ...

    async def fail(self, ask: FailWindow) -> bool:
        """Give up a window and keep it as FAILED; return whether this call wrote it."""
        ...

    async def hold(self, ask: HoldWindow) -> Micros:
        """Set aside what a window may cost of which a part is to be released, and return it."""
        ...

    async def renew(self, ask: RenewLease) -> int:
        """Prolong the lease of a window, and return until when."""
        ...

    async def spend(self, ask: SpendWindow) -> SpendingLimits:
        """Reserve or charge what the model calls of a window cost, up the tree, and return what is left."""
        ...

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId, caller_id: str = "") -> bool:
        """Give a lease back, and its hold, with its caller too; return whether the lease was there."""
        ...

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session; return whether this call ended it."""
        ...

    async def acknowledge(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> int:
        """IndexNote that what windows moved is on record; return how many were waiting for it."""
        ...

    async def restore(self, rebuilt: SessionState, *, ended: bool = False) -> bool:
        """Merge a session as its audit chain has it with what is stored, and mark it as verified.

        *ended*: its client ended it. Return whether anything but that mark was written. It never raises a budget.
        """
        ...

    async def placed(self, session: SessionId, caller_id: SessionId) -> SessionId:
        """Return the id for a new root session below a caller's budget: *session*, or one beside that in a Cluster."""
        ...

    async def restore_caller(self, caller_id: SessionId, rebuilt: CallerState) -> CallerState:
        """Merge the budget of a caller as the audit log has it with what is stored, and return it. It never raises it."""
        ...

    async def caller(self, caller_id: SessionId) -> CallerState | None:
        """Return the budget of a caller as it is stored, for operators; ``None`` for one that is not there."""
        ...

    async def read(self, root: SessionId, session: SessionId, *, verified: bool = True) -> SessionState | None:
        """Return all of a session's state. No budget is ever enforced on it.

        Refused with SESSION_STATE_UNVERIFIED for one that was not verified under this server, unless *verified* is false.
        """
        ...

    async def root_of(self, session: SessionId) -> SessionId | None:
        """Return the root of a child session whose root the caller does not know, for operators."""
        ...

    async def count_root(self, digest: str, minute: int) -> int:
        """Count one more root session of a caller, by the digest of its key, in a minute, and return how many there are."""
        ...

    async def standing(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> Standing | None:
        """Return how a session stands, with *windows* as points, before a call is bound to it; the opening looks again."""
        ...

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Return dependency → hint for what cannot be used now; empty means ready. Never raises."""
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


class MemoryStore:
    """Sessions of this one process: ``memory://``. They are lost when it ends, and rebuilt from the audit log when asked for.

    It runs the domain's rule as it is.
    """

    def __init__(self) -> None:
        self._trees: dict[SessionId, dict[SessionId, SessionState]] = {}
        self._roots: dict[tuple[str, int], int] = {}
        self._callers: dict[SessionId, CallerState] = {}
        self.bindings: BindingIndex = MemoryBindings()
        self.kernels: KernelStore = MemoryKernels()
        self.census: SessionCensus = MemoryCensus(
            lambda: [state.status for tree in self._trees.values() for state in tree.values()], time.time
        )

    async def start(self, state: SessionState, caller: CallerAsk | None = None) -> Begun:
        """Keep a new session."""
        tree = self._tree(state.terms.root_session_id)
        if state.terms.session_id in tree:
            raise refusal("SESSION_EXISTS")
        view = self._enter(caller)
        budget = Micros(min(state.budget, view.left)) if view else state.budget
        self._keep(replace(state, budget=budget))
        return Begun(budget, view)

    async def start_child(self, state: SessionState, ask: Delegated) -> Micros:
        """Keep a new child session."""
        changed, budget = start_child(self._tree(state.terms.root_session_id), state, ask)
        self._keep(*changed.values())
        return budget

    async def view(
        self,
        root: SessionId,
        session: SessionId,
        *,
        pointer: ContinuationId | None = None,
        grant_id: str = "",
        approval_id: str = "",
    ) -> ParentView | None:
        """Return what is looked at of a session before it delegates."""
        state = self._tree(root).get(session)
        if state is None:
            return None
        return view_of(state, pointer=pointer or "", grant_id=grant_id, approval_id=approval_id)

    async def open(self, ask: OpenWindow) -> OpenedWindow:
        """Take the lease of the next window."""
        state, opened = open_window(self._tree(ask.root_session_id), ask)
        view = self._enter(ask.caller, holding_text(state, state.expired))
        self._keep(state)
        return replace(opened, caller=view)

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window, advance the session and lower its ancestors."""
        if not ask.caller_id:
            changed, committed = commit_window(self._tree(ask.root_session_id), ask)
            self._keep(*changed.values())
            return committed
        caller_id = SessionId(ask.caller_id)
        caller, _ = look(self._callers.get(caller_id), caller_id, ask.caller_period)
        changed, committed = commit_window(self._tree(ask.root_session_id), ask)
        self._keep(*changed.values())
        if state := changed.get(ask.session_id):
            counted = count(caller, ask.session_id, state.spent)
            caller = self._callers[caller_id] = caller_freed(counted, ask.window_id)
        return replace(committed, caller=look(caller, caller_id, ask.caller_period)[1])

    async def fail(self, ask: FailWindow) -> bool:
        """Give up a window."""
        state, failed = fail_window(self._tree(ask.root_session_id).get(ask.session_id), ask)
        self._keep(state)
        return failed

    async def hold(self, ask: HoldWindow) -> Micros:
        """Set aside what a window may cost."""
        caller_id = SessionId(ask.caller_id)
        state = self._tree(ask.root_session_id).get(ask.session_id)
        state, caller = hold_window(state, self._callers.get(caller_id) if caller_id else None, ask)
        self._keep(state)
        if caller is not None:
            self._callers[caller_id] = caller
        return ask.amount

    async def renew(self, ask: RenewLease) -> int:
        """Prolong the lease of a window."""
        state, until = renew_lease(self._tree(ask.root_session_id).get(ask.session_id), ask)
        self._keep(state)
        return until

    async def spend(self, ask: SpendWindow) -> SpendingLimits:
        """Reserve or charge what the model calls of a window cost."""
        changed, left = spend_window(self._tree(ask.root_session_id), ask)
        self._keep(*changed.values())
        return left

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId, caller_id: str = "") -> bool:
        """Give a lease back, and its hold."""
        state, held = abandon_window(self._tree(root).get(session), window)
        self._keep(state)
        if caller := self._callers.get(SessionId(caller_id)):
            self._callers[SessionId(caller_id)] = caller_freed(caller, window)
        return held

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session."""
        state, changed = terminate(self._tree(root).get(session))
        self._keep(state)
        return changed

    async def acknowledge(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> int:
        """IndexNote that what windows moved is on record."""
        state, count = acknowledge(self._tree(root).get(session), windows)
        self._keep(state)
        return count

    async def restore(self, rebuilt: SessionState, *, ended: bool = False) -> bool:
        """Merge the audit chain's state with what is there."""
        stored = self._tree(rebuilt.terms.root_session_id).get(rebuilt.terms.session_id)
        state = merged(stored, rebuilt, ended=ended)
        self._keep(state)
        caller_id = SessionId(state.terms.caller_id)
        if caller := self._callers.get(caller_id):
            counted = count(caller, state.terms.session_id, state.spent)
            self._callers[caller_id] = caller_rebuilt(counted, state)
        return state != stored

    async def placed(self, session: SessionId, caller_id: SessionId) -> SessionId:
        """Return the id as it is."""
        del caller_id
        return session

    async def restore_caller(self, caller_id: SessionId, rebuilt: CallerState) -> CallerState:
        """Merge the budget of a caller with what is there."""
        self._callers[caller_id] = merge(self._callers.get(caller_id), rebuilt)
        return self._callers[caller_id]

    async def caller(self, caller_id: SessionId) -> CallerState | None:
        """Return the budget of a caller."""
        return self._callers.get(caller_id)

    async def read(self, root: SessionId, session: SessionId, *, verified: bool = True) -> SessionState | None:
        """Return a session's state; this server never changes."""
        del verified
        return self._tree(root).get(session)

    async def root_of(self, session: SessionId) -> SessionId | None:
        """Return the root of a child session."""
        return next((root for root, tree in self._trees.items() if session in tree), None)

    async def count_root(self, digest: str, minute: int) -> int:
        """Count one more root session of a caller; what belongs to earlier minutes is forgotten."""
        self._roots = {key: count for key, count in self._roots.items() if key[1] >= minute}
        self._roots[digest, minute] = self._roots.get((digest, minute), 0) + 1
        return self._roots[digest, minute]

    async def standing(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> Standing | None:
        """Return how a session stands."""
        state = self._tree(root).get(session)
        return standing_of(state, windows) if state else None

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Miss nothing."""
        return {}

    async def close(self) -> None:
        """BudgetHold nothing."""

    def _enter(self, ask: CallerAsk | None, left_open: str = "") -> CallerView | None:
        if ask is None:
            return None
        self._callers[ask.caller_id], view = enter(self._callers.get(ask.caller_id), ask, left_open)
        return view

    def _tree(self, root: SessionId) -> States:
        return self._trees.get(root, {})

    def _keep(self, *states: SessionState) -> None:
        for state in states:
            self._trees.setdefault(state.terms.root_session_id, {})[state.terms.session_id] = state
