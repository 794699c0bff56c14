"""Probe of ``interlock check`` for the last signed checkpoint: that it verifies, and that it keeps up with the log (AUD-6)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import grpc

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.domain.errors import Refused
from interlock.domain.merkle.note import MalformedNoteError, open_note, verifier_key
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.rpc.places import address_to_call
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.mutual import channel_to

ANSWER_LIMIT_S = 1.5
LATE_S, LATE_TIMES = 60, 6
"""Entries without a checkpoint are late after so many seconds, or so many times ``checkpoint_s``."""


async def checkpoint(settings: Settings, clock: Clock = system_clock) -> AsyncIterator[ProbeFinding]:
    """Check what the audit service signed last. While it does not run there is nothing to check."""
    line = partial(ProbeFinding, "audit store", "checkpoint")
    try:
        async with channel_to(
            "audit", settings, address_to_call(settings, "audit"), [("grpc.enable_http_proxy", 0)]
        ) as channel:
            request = audit_pb2.GetCheckpointRequest()
            answer = await AuditServiceStub(channel).GetCheckpoint(request, timeout=ANSWER_LIMIT_S)
    except (grpc.RpcError, Refused):
        yield line(ProbeStatus.SKIP, "the audit service does not answer: what it signed last is not known")
        return
    if answer.HasField("refusal"):
        none = answer.refusal.reason == "NO_CHECKPOINT"
        yield line(
            ProbeStatus.OK if none else ProbeStatus.FAIL, "none is signed yet" if none else answer.refusal.message
        )
        return
    yield _signed(line, answer, clock() // 1_000_000, max(LATE_S, LATE_TIMES * settings.checkpoint_s))


def _signed(
    line: partial[ProbeFinding], answer: audit_pb2.GetCheckpointResponse, now_s: int, late_s: float
) -> ProbeFinding:
    from interlock.audit.merkle.checkpoint_key import holds

    try:
        signed_at = open_note(answer.note, verifier_key(answer.verifier_key), holds).signed_at
    except MalformedNoteError as error:
        hint = "`interlock audit fsck` tells more; the key may have been replaced without a new log"
        return line(ProbeStatus.FAIL, f"the last one does not verify under the service's own key: {error}", hint)
    age, left = max(0, now_s - signed_at), answer.log_size - answer.size
    if left > 0 and age > late_s:
        hint = "see the log of the audit service: its key, the anchor or the disk keeps it from signing"
        return line(ProbeStatus.WARN, f"{left} entries are in none; the last was signed {age} s ago", hint)
    covers = f"{answer.size} of {answer.log_size} entries" if left > 0 else f"all {answer.size} entries"
    return line(ProbeStatus.OK, f"it covers {covers}, signed {age} s ago")
