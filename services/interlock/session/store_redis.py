"""Sessions in Redis or Valkey: one hash per session, changed by one Lua script per step.

``il:{<root>}:s:<session>`` carries the root's id as hash tag, so that one agent tree is in one slot. A session is one key:
eviction, expiry or loss takes all of it at once, and what is lost is refused as SESSION_STATE_LOST, never refilled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId, WindowId, check
from interlock.domain.session import Committed, CommitWindow, Opened, OpenWindow, SessionState
from interlock.domain.session_refusals import REASONS, refusal
from interlock.session import records
from interlock.session.batcher import Batcher, Script, state_corrupt
from interlock.session.readiness import missing

BEYOND_TOKEN_S = 24 * 3600
"""How long a session outlives its last token, so that a token never meets a state that has merely expired."""


def key_of(root: SessionId, session: SessionId) -> str:
    """Return the key of a session. Only ids get into a key (reliability.md A-36)."""
    return f"il:{{{check('crp_sess_', root)}}}:s:{check('crp_sess_', session)}"


@contextmanager
def _readable() -> Iterator[None]:
    """Refuse what is stored and not as our scripts write it. Nothing is guessed from it."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise state_corrupt() from None


class RedisStore:
    """The store that enforcement rests on; any number of processes share it."""

    def __init__(self, batcher: Batcher, *, token_lifetime_s: int) -> None:
        self._batcher = batcher
        self._ttl_s = token_lifetime_s + BEYOND_TOKEN_S
        names = ("start", "open", "commit", "abandon", "terminate")
        self._start, self._open, self._commit, self._abandon, self._terminate = map(Script.load, names)

    async def start(self, state: SessionState) -> None:
        """Keep a new session."""
        terms, policy = state.terms, state.policy
        await self._run(
            self._start,
            key_of(terms.root_session_id, terms.session_id),
            records.terms_to_json(terms),
            terms.limits.max_windows,
            terms.limits.max_dag_nodes,
            state.budget,
            policy.text,
            policy.hash,
            self._ttl_s,
        )

    async def open(self, ask: OpenWindow) -> Opened:
        """Take the lease of the next window.

        Repeated once when the connection was lost: the script may have run, and nobody would know of its lease.
        """
        try:
            return await self._open_once(ask)
        except Refused as refused:
            if refused.metadata.get("error") != "CONNECTION_LOST":
                raise
        return await self._open_once(ask)

    async def _open_once(self, ask: OpenWindow) -> Opened:
        reply = await self._run(
            self._open,
            key_of(ask.root_session_id, ask.session_id),
            ask.window_id,
            ask.now_ms,
            ask.lease_ms,
            ask.token_window,
            ask.token_tip,
            ask.token_continuation_id or "",
            ask.continuation_id or "",
            ask.token_budget,
            ask.token_policy_hash,
            self._ttl_s,
        )
        with _readable():
            return records.opened_from(reply)

    async def commit(self, ask: CommitWindow) -> Committed:
        """Charge a sealed window and advance the session."""
        reply = await self._run(
            self._commit,
            key_of(ask.root_session_id, ask.session_id),
            ask.window_id,
            ask.parent_ids[0] if ask.parent_ids else "",
            ask.window_number,
            ask.charge,
            ask.ceiling,
            ask.continuation_id,
            ask.seal.quality_tier,
            ask.seal.hmac,
            records.record_to_json(ask),
            ask.policy.text if ask.policy else "",
            ask.policy.hash if ask.policy else "",
            self._ttl_s,
        )
        with _readable():
            return records.committed_from(reply)

    async def abandon(self, root: SessionId, session: SessionId, window: WindowId) -> bool:
        """Give a lease back."""
        (held,) = await self._run(self._abandon, key_of(root, session), window, self._ttl_s)
        return bool(held)

    async def terminate(self, root: SessionId, session: SessionId) -> bool:
        """End a session."""
        (changed,) = await self._run(self._terminate, key_of(root, session), self._ttl_s)
        return bool(changed)

    async def read(self, root: SessionId, session: SessionId) -> SessionState | None:
        """Return a session's state, read in one step."""
        flat: list[bytes] = await self._batcher.command("HGETALL", key_of(root, session))
        if not flat:
            return None
        with _readable():
            names = (name.decode() for name in flat[::2])
            return records.state_from(dict(zip(names, flat[1::2], strict=True)))

    async def missing(self) -> Mapping[str, str]:
        """Return what is wrong with the server, as dependency → hint."""
        return await missing(self._batcher)

    async def close(self) -> None:
        """Close the connection."""
        await self._batcher.close()

    async def _run(self, script: Script, key: str, *arguments: str | int) -> list[Any]:
        """Return what follows the script's OK; its reason is raised as the refusal of that name."""
        reply: list[Any] = await self._batcher.run(script, key, *arguments)
        reason, rest = reply[0].decode(), reply[1:]
        if reason in REASONS:
            raise refusal(reason, *rest)
        return rest
