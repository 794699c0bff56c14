"""Conditional calls: one that was made already, with the same context, is not made again (SPEC-002 §4.9; SPEC-003 §11).

A caller names the ETag of an answer that it has. Where the same request was answered, and nothing has come after it in its session,
the answer still stands: 304, nothing is dispatched, judged, charged or sealed, and the headers are those of that answer. Everything
else is a plain call, and CRP-Context-Cache-Status says why. What answered is kept in this process only: another one makes the call.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.domain.headers.headers import ANY, RequestHeaders
from interlock.runtime.keys.api_keys import Caller
from interlock.sidecar.fronts.sessions import Sessions
from interlock.sidecar.openai import strictjson
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

LOOKUPS = Counter("interlock_conditional_calls", "Calls with CRP-Context-If-Match, by what was found.", ["found"])

MOST_KEPT = 1024
"""Answers whose headers are kept; the one that was used longest ago goes first."""

STATUS = "CRP-Context-Cache-Status"

_CREDENTIALS = ("CRP-Set-Session", "CRP-Context-Continuation-Id", "CRP-Safety-Nonce")
"""Headers that a session goes on with: only who shows its token gets them again."""

_PLACE = frozenset({
    "session_token", "continuation_id", "continuation_ids", "nonce", "if_match", "no_cache", "no_store", "max_age_s", "ceiling",
})  # fmt: skip
"""Values that say where a call belongs, not what it asks for."""
_ASKED = tuple(one.name for one in fields(RequestHeaders) if one.name not in _PLACE)


@dataclass(frozen=True)
class _Kept:
    """The headers of a delivered answer, and what they are of."""

    headers: Mapping[str, str]
    session_id: str
    window_id: str
    token: str
    at: float

    @property
    def etag(self) -> str:
        return self.headers.get("CRP-Context-ETag", "")


class ConditionalCalls:
    """Keeps the headers of delivered answers and finds those that a conditional call is about."""

    def __init__(self, sessions: Sessions, now: Callable[[], float] = time.monotonic) -> None:
        self._sessions, self._now = sessions, now
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    def keep(self, caller: Caller, asked: RequestHeaders, request: str, reply: ResponseHeaders) -> None:
        """Keep the headers of an answer that was delivered; nothing under no-store."""
        name = (caller.scope, _digest(asked, request))
        self._kept.pop(name, None)
        if asked.no_store:
            return
        token = reply.headers.get("CRP-Set-Session", "").partition(";")[0].removeprefix("token=")
        self._kept[name] = _Kept(dict(reply.headers), reply.session_id, reply.window_id, token, self._now())
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)

    async def holds(self, caller: Caller, asked: RequestHeaders, request: str, reply: ResponseHeaders) -> bool:
        """Tell whether the answer that a conditional call names still stands. *reply* learns its headers, or why it does not."""
        if asked.if_match is None:
            return False
        name = (caller.scope, _digest(asked, request))
        kept = self._kept.get(name)
        why = _unfit(asked, kept, self._now()) if kept else "no-cache" if asked.no_cache else "not-known"
        if kept and not why:
            why = await self._outdated(caller, asked, kept)
        LOOKUPS.labels(why or "hit").inc()
        if why or not kept:
            reply.set({STATUS: f"MISS; reason={why}"})
            return False
        self._kept.move_to_end(name)
        left_out = () if asked.session_token else _CREDENTIALS
        reply.session_id, reply.window_id = kept.session_id, kept.window_id
        reply.set({name: value for name, value in kept.headers.items() if name not in left_out})
        reply.set({STATUS: "HIT"})
        log.info("call.not_modified", scope=caller.scope, session_id=kept.session_id, window_id=kept.window_id)
        return True

    async def _outdated(self, caller: Caller, asked: RequestHeaders, kept: _Kept) -> str:
        """Return why a kept answer no longer stands; empty when it does. The session and its chain are asked."""
        try:
            session = await self._sessions.of_token(asked.session_token or kept.token, caller.scope)
            found = await self._sessions.report(caller.scope, window_id=kept.window_id)
        except Refused:
            return "session-gone"
        if found.integrity not in {common_pb2.CHAIN_INTEGRITY_VALID, common_pb2.CHAIN_INTEGRITY_UNVERIFIED}:
            return "chain-not-valid"
        return _moved(session, kept)


def request_text(body: Mapping[str, Any], interlock: Mapping[str, Any], beside: Sequence[bytes]) -> str:
    """Return a digest of what a chat request asks; *beside* are the messages that a gRPC call adds to it."""
    told = strictjson.dumps({"body": body, "interlock": interlock})
    return hashlib.sha256(b"\x00".join([told, *(hashlib.sha256(one).digest() for one in beside)])).hexdigest()


def _digest(asked: RequestHeaders, request: str) -> str:
    """Return the name of a request: what it asks, under which policy, strategy and mode."""
    wanted = [[name, str(getattr(asked, name))] for name in _ASKED]
    return hashlib.sha256(strictjson.dumps({"asked": wanted, "request": request})).hexdigest()


def _unfit(asked: RequestHeaders, kept: _Kept, now: float) -> str:
    """Return why a kept answer is not the one that is named; empty when it is."""
    if asked.no_cache:
        return "no-cache"
    if asked.branch:
        return "branch"
    if asked.if_match == ANY and asked.session_token is None:
        return "token-needed"
    if asked.if_match not in {ANY, kept.etag}:
        return "other-context"
    return "expired" if asked.max_age_s is not None and now - kept.at > asked.max_age_s else ""


def _moved(session: session_pb2.Session, kept: _Kept) -> str:
    """Return what became of the session since the answer; empty when it is as the answer left it."""
    if session.session_id != kept.session_id:
        return "other-session"
    if session.parent_session_id:
        return "delegated"  # what its ancestors may have come to is only looked up where a window is opened
    if session.status != session_pb2.SESSION_STATUS_ACTIVE or session.breaker == common_pb2.BREAKER_STATE_OPEN:
        return "session-ended"
    return "" if session.chain_tip == kept.headers.get("CRP-Provenance-HMAC") else "session-moved-on"
