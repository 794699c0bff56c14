"""Sessions in Redis or Valkey: one hash per session, changed by one Lua script per step.

``il:{<root>}:s:<session>`` carries the root's id as hash tag, so that one agent tree is in one slot. A session is one key:
eviction, expiry or loss takes all of it at once, and what is lost is refused as SESSION_STATE_LOST, never refilled. Each
holds the server that it was last verified under; on another one it is refused as SESSION_STATE_UNVERIFIED. Either way it is
rebuilt from the audit log (docs/adr/0012).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.ids import ContinuationId, SessionId, WindowId, check
from interlock.domain.session.caller import Begun, CallerAsk, CallerState
from interlock.domain.session.delegating import Delegated, ParentView
from interlock.domain.session.hold import HoldWindow
from interlock.domain.session.renewing import RenewLease
from interlock.domain.session.restore import merged
from interlock.domain.session.session_refusals import REASONS, refusal
from interlock.domain.session.spending import SpendingLimits, SpendWindow
from interlock.domain.session.standing import Standing
from interlock.domain.session.state import (
    Committed,
    CommitWindow,
    FailWindow,
    OpenedWindow,
    OpenWindow,
    SessionState,
    Terms,
)
from interlock.session.store import caller_records, records, spending_records
from interlock.session.store.batcher import Batcher, LuaScript, readable
from interlock.session.store.bindings import BindingIndex
from interlock.session.store.census import RedisCensus, SessionCensus
from interlock.session.store.cluster import beside
from interlock.session.store.connection import store_unavailable
from interlock.session.store.dag_text import LETTERS
from interlock.session.store.kernels.redis import RedisKernels
from interlock.session.store.kernels.store import KernelStore
from interlock.session.store.lineages import Lineages
from interlock.session.store.readiness import unready_dependencies
from interlock.session.store.redis_bindings import RedisBindings
from interlock.session.store.standing import standing_from
from interlock.session.terms import hash_fields

ROOTS_KEPT_S = 120
BEYOND_TOKEN_S = 24 * 3600
"""How long a session outlives its last token, so that a token never meets a state that has merely expired."""


RESTORE_ATTEMPTS = 8

_SEEN = ("status", "budget", "cap", "top", "nodes", "dag", "lease", "unsettled", "policy_hash", "kids", "facts", "untold",
         "late", "epoch", "holds", "limits", "paid", "asked")  # fmt: skip
"""What ``restore.lua`` compares: no change of a session leaves all of them as they were."""


@lru_cache(maxsize=65_536)
def key_of(root: SessionId, session: SessionId) -> str:
    """Return the key of a session. Only ids get into a key (reliability.md A-36)."""
    return f"il:{{{check('crp_sess_', root)}}}:s:{check('crp_sess_', session)}"


def pointer_of(session: SessionId) -> str:
    """Return the key that names the root of a child session, for operators who know its id alone (ADR 0010)."""
    return f"il:{{{check('crp_sess_', session)}}}:root"


def caller_key_of(caller: SessionId) -> str:
    """Return the key of a caller's budget. Its sessions lie in the same slot of a Cluster: see ``placed``."""
    return f"il:{{{check('crp_sess_', caller)}}}:caller"


def roots_of(digest: str, minute: int) -> str:
    """Return the key of a count of root sessions; *digest* stands for the caller's key, which is in no key of ours."""
    return f"il:{{roots:{digest}}}:{minute}"


class RedisStore:
    """The store that enforcement rests on; any number of processes share it."""

    def __init__(self, batcher: Batcher, *, token_lifetime_s: int) -> None:
        self._batcher = batcher
        self._token_lifetime_s = token_lifetime_s
        self._ttl_s = token_lifetime_s + BEYOND_TOKEN_S
        self._clustered: bool | None = None
        names = ("start", "open", "commit", "fail", "abandon", "terminate")
        self._start, self._open, self._commit, self._fail, self._abandon, self._terminate = map(LuaScript.load, names)
        self._acknowledge, self._restore, self._caller = map(LuaScript.load, ("acknowledge", "restore", "caller"))
        self._standing, self._hold, self._renew = map(LuaScript.load, ("standing", "hold", "renew"))
        self._spend = LuaScript.load("spend")
        self.bindings: BindingIndex = RedisBindings(batcher)
        self.kernels: KernelStore = RedisKernels(batcher)
        self.census: SessionCensus = RedisCensus(batcher)
        self._lineages = Lineages()

    async def now_us(self) -> int:
        """Return the server's time, microseconds since the epoch."""
        seconds, micros = await self._batcher.command("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    async def start(self, state: SessionState, caller: CallerAsk | None = None) -> Begun:
        """Keep a new session."""
        terms = state.terms
        keys = (key_of(terms.root_session_id, terms.session_id), *_caller_keys(caller))
        budget, *told = await self._run(self._start, keys, *self._first(state, caller=caller))
        return Begun(Micros(budget), caller_records.view_from(caller.caller_id, told) if caller else None)

    async def start_child(self, state: SessionState, ask: Delegated) -> Micros:
        """Keep a new child session.

        The pointer to its root is written first: a crash in between leaves one that leads nowhere and expires.
        """
        terms = state.terms
        await self._point(terms)
        keys = _keys(terms.root_session_id, terms.session_id, terms.ancestors)
        (budget,) = await self._run(self._start, keys, *self._first(state, grant=ask))
        self._lineages.keep(terms.session_id, terms.ancestors)
        return Micros(budget)

    def _first(
        self, state: SessionState, grant: Delegated | None = None, caller: CallerAsk | None = None
    ) -> tuple[str, ...]:
        """Return what ``start.lua`` is asked."""
        fields = (each for field in hash_fields(state.terms).items() for each in field)
        return records.start_to_json(state, ttl_s=self._ttl_s, grant=grant, caller=caller), *fields

    async def _point(self, terms: Terms) -> None:
        # No session lives longer than its windows one after the other, each at the very end of a token.
        longest_s = (terms.limits.max_dag_nodes + 1) * self._token_lifetime_s + BEYOND_TOKEN_S
        await self._batcher.command("SET", pointer_of(terms.session_id), terms.root_session_id, "EX", longest_s)

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
        key, pointed = key_of(root, session), None
        if pointer:
            window: bytes | None = await self._batcher.command("HGET", key, f"c:{pointer}")
            pointed = window.decode() if window else None
        fields = (*records.VIEWED, f"g:{grant_id}", f"a:{approval_id}", f"r:{pointed or ''}")
        values, epoch = await self._batcher.read("HMGET", key, "epoch", *fields)
        if _unverified(values.pop(0), epoch, there=values[0] is not None):
            raise refusal("SESSION_STATE_UNVERIFIED")
        with readable():
            return records.view_from(values)

    async def open(self, ask: OpenWindow) -> OpenedWindow:
        """Take the lease of the next window.

        Repeated once when the connection was lost: the script may have run, and its lease would stay unused.
        """
        try:
            return await self._open_once(ask)
        except Refused as refused:
            if refused.metadata.get("error") != "CONNECTION_LOST":
                raise
        return await self._open_once(ask)

    async def _open_once(self, ask: OpenWindow) -> OpenedWindow:
        pointers = ask.continuation_ids or ((ask.continuation_id,) if ask.continuation_id else ())
        ancestors = await self._ancestors(ask.root_session_id, ask.session_id)
        reply = await self._run(
            self._open,
            (*_keys(ask.root_session_id, ask.session_id, ancestors), *_caller_keys(ask.caller)),
            ask.window_id,
            ask.now_ms,
            ask.lease_ms,
            ask.token_window,
            ask.token_tip,
            ask.token_continuation_id or "",
            LETTERS[ask.pattern],
            ask.token_budget,
            ask.token_policy_hash,
            self._ttl_s,
            int(ask.partial),
            ask.path_ceiling,
            *((ask.caller.number, ask.caller.cap) if ask.caller else (0, 0)),
            *pointers,
        )
        with readable():
            return records.opened_from(reply, ask)

    async def _ancestors(self, root: SessionId, session: SessionId) -> tuple[SessionId, ...]:
        """Return the sessions above one, which never change: looked up once per process, and compared again by the script."""
        if root == session:
            return ()
        if (known := self._lineages.get(session)) is not None:
            return known
        found: bytes | None = await self._batcher.command("HGET", key_of(root, session), "ancestors")
        if not found:
            return ()
        return self._lineages.keep(
            session, tuple(SessionId(each) for each in found.decode(errors="replace").split(","))
        )

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window, advance the session and lower its ancestors."""
        reply = await self._run(
            self._commit,
            (
                *_keys(ask.root_session_id, ask.session_id, ask.ancestors),
                *_of_caller(ask.caller_id),
            ),
            records.settlement_to_json(ask),
            records.record_to_json(ask),
            self._ttl_s,
        )
        with readable():
            return records.committed_from(reply, ask)

    async def fail(self, ask: FailWindow) -> bool:
        """Give up a window."""
        key = key_of(ask.root_session_id, ask.session_id)
        place = (LETTERS[ask.pattern], *ask.parent_ids) if ask.parent_ids else ()
        (failed,) = await self._run(self._fail, (key,), ask.window_id, ask.reason, self._ttl_s, *place)
        return bool(failed)

    async def hold(self, ask: HoldWindow) -> Micros:
        """Set aside what a window may cost."""
        keys = (key_of(ask.root_session_id, ask.session_id), *_of_caller(ask.caller_id))
        (held,) = await self._run(
            self._hold, keys, ask.window_id, ask.amount, ask.ceiling, self._ttl_s, ask.caller_period
        )
        return Micros(held)

    async def renew(self, ask: RenewLease) -> int:
        """Prolong the lease of a window."""
        key = key_of(ask.root_session_id, ask.session_id)
        (until,) = await self._run(self._renew, (key,), ask.window_id, ask.until_ms, self._ttl_s)
        return int(until)

    async def spend(self, ask: SpendWindow) -> SpendingLimits:
        """Reserve or charge what the model calls of a window cost."""
        keys = _keys(ask.root_session_id, ask.session_id, ask.ancestors)
        return spending_records.left_from(
            *await self._run(self._spend, keys, spending_records.to_json(ask), self._ttl_s)
        )

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId, caller_id: str = "") -> bool:
        """Give a lease back, and its hold."""
        (held,) = await self._run(self._abandon, (key_of(root, session), *_of_caller(caller_id)), window, self._ttl_s)
        return bool(held)

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session."""
        (changed,) = await self._run(self._terminate, (key_of(root, session),), self._ttl_s)
        return bool(changed)

    async def acknowledge(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> int:
        """IndexNote that what windows moved is on record."""
        (count,) = await self._run(self._acknowledge, (key_of(root, session),), *windows)
        return int(count)

    async def restore(self, rebuilt: SessionState, *, ended: bool = False) -> bool:
        """Merge the audit chain's state with the stored one; read and merge again when that changes in between."""
        terms = rebuilt.terms
        key = key_of(terms.root_session_id, terms.session_id)
        if terms.ancestors:
            await self._point(terms)
        for _ in range(RESTORE_ATTEMPTS):
            fields, _ = await self._fields(key)
            stored = _state(fields)
            state = merged(stored, rebuilt, ended=ended)
            same = state == stored and "late" in fields  # an older layout lacks fields
            written = () if same else (each for field in records.fields_of(state).items() for each in field)
            keys = (key, *_of_caller(terms.caller_id))
            spent = f"{caller_records.spent_to_text(state.spent)};{records.holds_text(state.holds)}"
            settled = ",".join(node.window_id for node in state.nodes)
            (done,) = await self._run(self._restore, keys, _digest(fields), self._ttl_s, f"{spent};{settled}", *written)
            if done:
                return state != stored
        raise store_unavailable("RESTORE_RACE")

    async def placed(self, session: SessionId, caller_id: SessionId) -> SessionId:
        """Return the id, on a Cluster with other last digits: one script changes a session and its caller's budget, so both
        lie in one slot. 108 of its bits stay random throughout, and 6 more within the slot.
        """
        if self._clustered is None:
            self._clustered = (await self._batcher.server()).cluster
        return SessionId(beside(session, caller_id)) if self._clustered else session

    async def restore_caller(self, caller_id: SessionId, rebuilt: CallerState) -> CallerState:
        """Merge the budget of a caller as the audit log has it with what is stored."""
        (fields,) = await self._run(
            self._caller, (caller_key_of(caller_id),), caller_records.to_json(rebuilt, ttl_s=self._ttl_s)
        )
        with readable():
            return caller_records.state_from(fields)

    async def caller(self, caller_id: SessionId) -> CallerState | None:
        """Return the budget of a caller, as it is stored."""
        fields: list[bytes] = await self._batcher.command("HGETALL", caller_key_of(caller_id))
        with readable():
            return caller_records.state_from(fields) if fields else None

    async def read(self, root: SessionId, session: SessionId, *, verified: bool = True) -> SessionState | None:
        """Return a session's state, read in one step."""
        fields, epoch = await self._fields(key_of(root, session))
        if verified and _unverified(fields.get("epoch"), epoch, there=bool(fields)):
            raise refusal("SESSION_STATE_UNVERIFIED")
        return _state(fields)

    async def _fields(self, key: str) -> tuple[dict[str, bytes], str]:
        flat, epoch = await self._batcher.read("HGETALL", key)
        return {name.decode(errors="replace"): value for name, value in zip(flat[::2], flat[1::2], strict=True)}, epoch

    async def root_of(self, session: SessionId) -> SessionId | None:
        """Return the root of a child session."""
        found: bytes | None = await self._batcher.command("GET", pointer_of(session))
        return SessionId(check("crp_sess_", found.decode(errors="replace"))) if found else None

    async def count_root(self, digest: str, minute: int) -> int:
        """Count one more root session of a caller; the count is there before it is raised, so that it always runs out."""
        key = roots_of(digest, minute)
        await self._batcher.command("SET", key, 0, "EX", ROOTS_KEPT_S, "NX")
        return int(await self._batcher.command("INCR", key))

    async def standing(self, root: SessionId, session: SessionId, windows: Collection[WindowId]) -> Standing | None:
        """Return how a session stands, read in one step."""
        wanted = tuple(windows)
        reply = await self._run(self._standing, (key_of(root, session),), *wanted)
        with readable():
            return standing_from(reply, wanted)

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Return what is wrong with the server, as dependency → hint."""
        return await unready_dependencies(self._batcher)

    async def close(self) -> None:
        """Close the connection."""
        await self._batcher.close()

    async def _run(self, script: LuaScript, keys: Sequence[str], *arguments: str | int | bytes) -> list[Any]:
        """Return what follows the script's OK; its reason is raised as the refusal of that name."""
        reply: list[Any] = await self._batcher.run(script, keys, *arguments)
        reason, rest = reply[0].decode(), reply[1:]
        if reason in REASONS:
            raise refusal(reason, *(value.decode() if isinstance(value, bytes) else value for value in rest))
        return rest


def _keys(root: SessionId, session: SessionId, ancestors: Sequence[SessionId]) -> tuple[str, ...]:
    """Return the keys of a session and of its ancestors; one hash tag, so one slot and one node of a Cluster."""
    return (key_of(root, session), *(key_of(root, ancestor) for ancestor in ancestors))


def _of_caller(caller_id: str) -> tuple[str, ...]:
    return (caller_key_of(SessionId(caller_id)),) if caller_id else ()


def _caller_keys(ask: CallerAsk | None) -> tuple[str, ...]:
    return (caller_key_of(ask.caller_id),) if ask else ()


def _unverified(stored: bytes | None, epoch: str, *, there: bool) -> bool:
    """Tell whether a session that is there was last verified under another server, or under none: an older layout."""
    return there and (stored or b"").decode(errors="replace") != epoch


def _state(fields: Mapping[str, bytes]) -> SessionState | None:
    if not fields:
        return None
    with readable():
        return records.state_from(fields)


def _digest(fields: Mapping[str, bytes]) -> str:
    if not fields:
        return ""
    return hashlib.sha1(b"\n".join(fields.get(name, b"") for name in _SEEN), usedforsecurity=False).hexdigest()
