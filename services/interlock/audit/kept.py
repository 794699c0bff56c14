"""Answers that a later request may go on from, with what they answered: kept for their caller alone (docs/adr/0033; API-1).

They are encrypted under their session's data key, as its contents are, and go with it when the session is erased. They are no part
of a chain: their caller may delete them, and each goes when its time is over.
"""

from __future__ import annotations

import re
from functools import partial

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.sealing.appender import Appender
from interlock.audit.sealing.readers import Readers
from interlock.audit.sealing.seal import Sealer
from interlock.audit.store.contents import erased
from interlock.audit.store.kept import KeptRow
from interlock.audit.store.log import AuditLog, Writing
from interlock.domain import ids
from interlock.domain.chain.marks import CONTENT_ERASED, TRUNCATED
from interlock.domain.errors import Refused, conflict, exhausted, invalid, not_found
from interlock.domain.held import MAX_HELD_BYTES
from interlock.runtime.clock import iso8601

MAX_KEPT_BYTES = MAX_HELD_BYTES
"""Largest kept answer with what it answered, and largest row of answers that is read at once."""
MAX_TURNS = 1_000
"""Most answers that one request goes on from."""

_DAY = 86_400_000_000
_SCOPE = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


class KeptAnswers:
    """Keeps answers, finds them with all that they go on from, deletes them."""

    def __init__(self, audit_log: AuditLog, readers: Readers, appender: Appender, sealer: Sealer, *, days: int) -> None:
        """*days*: how long an answer is kept."""
        self._log, self._readers, self._appender, self._sealer = audit_log, readers, appender, sealer
        self._days = days

    async def keep(self, request: audit_pb2.KeepAnswerRequest) -> audit_pb2.KeepAnswerResponse:
        """Keep the answer of a sealed window. A repeated request changes nothing; one of another scope is refused."""
        if not 0 < len(request.kept) <= MAX_KEPT_BYTES:
            raise exhausted("CONTENT_TOO_LARGE", f"an answer is kept with at most {MAX_KEPT_BYTES} bytes")
        if request.previous_id:
            ids.check("crp_win_", request.previous_id)
        ids.check("crp_win_", request.window_id)
        _check_scope(request.scope)
        expires_at: str = await self._appender.submit(partial(self._keep, request), size=request.ByteSize())
        return audit_pb2.KeepAnswerResponse(expires_at=expires_at)

    async def get(self, request: audit_pb2.GetKeptAnswersRequest) -> audit_pb2.GetKeptAnswersResponse:
        """Return an answer after everything that it goes on from, the oldest first.

        Refused with KEPT_ANSWER_NOT_FOUND, the same for one that is not there and for one of another caller.
        """
        _check_scope(request.scope)
        window_id = ids.check("crp_win_", request.window_id)
        answers = await self._readers.run(partial(self._row_of, window_id, request.scope, alone=request.alone))
        return audit_pb2.GetKeptAnswersResponse(answers=answers)

    async def drop(self, request: audit_pb2.DropKeptAnswerRequest) -> audit_pb2.DropKeptAnswerResponse:
        """Delete an answer of the caller. Refused with KEPT_ANSWER_NOT_FOUND where it has none."""
        _check_scope(request.scope)
        window_id = ids.check("crp_win_", request.window_id)

        def work(writing: Writing) -> None:
            self._own(writing.kept(window_id), request.scope)
            writing.drop_kept(window_id)

        await self._appender.submit(work)
        return audit_pb2.DropKeptAnswerResponse(dropped=True)

    def _keep(self, request: audit_pb2.KeepAnswerRequest, writing: Writing) -> str:
        window = writing.window(request.window_id)
        if window is None:
            raise conflict("WINDOW_NOT_SEALED", "there is no sealed window of that id")
        known = writing.kept(window.window_id)
        if known is not None:
            return self._own(known, request.scope).expires_at
        if writing.holds(window.session_id, CONTENT_ERASED) or writing.holds(window.session_id, TRUNCATED):
            raise erased()
        name = _name(window.window_id, request.scope, request.previous_id)
        sealed = self._sealer.vault.lock_kept(writing, window.session_id, name, request.kept)
        expires_at = iso8601(self._sealer.clock() + self._days * _DAY)
        writing.add_kept(
            KeptRow(window.window_id, window.session_id, request.scope, request.previous_id, sealed, expires_at)
        )
        return expires_at

    def _row_of(self, window_id: str, scope: str, *, alone: bool) -> list[audit_pb2.KeptAnswer]:
        found: list[audit_pb2.KeptAnswer] = []
        size, wanted = 0, window_id
        while wanted:
            row = self._own(self._log.kept(wanted), scope)
            size += len(row.sealed)
            if size > MAX_KEPT_BYTES or len(found) >= MAX_TURNS:
                raise exhausted(
                    "CONTENT_TOO_LARGE", f"what it goes on from exceeds {MAX_KEPT_BYTES} bytes or {MAX_TURNS} answers"
                )
            found.append(audit_pb2.KeptAnswer(window_id=row.window_id, kept=self._opened(row)))
            wanted = "" if alone else row.previous_id
        return found[::-1]

    def _own(self, row: KeptRow | None, scope: str) -> KeptRow:
        if row is None or row.scope != scope or row.expires_at <= iso8601(self._sealer.clock()):
            raise _unknown()
        return row

    def _opened(self, row: KeptRow) -> bytes:
        key = self._log.contents(row.session_id, ()).key
        if key is None:  # erased meanwhile
            raise _unknown()
        name = _name(row.window_id, row.scope, row.previous_id)
        return self._sealer.vault.open_kept(row.session_id, name, row.sealed, key)


def _name(window_id: str, scope: str, previous_id: str) -> str:
    return f"{window_id}|{scope}|{previous_id}"


def _check_scope(scope: str) -> None:
    if not _SCOPE.fullmatch(scope):
        raise invalid("INVALID_FIELD", "scope is the name of a caller", field="scope")


def _unknown() -> Refused:
    return not_found("KEPT_ANSWER_NOT_FOUND", "no such answer is kept for this caller")
