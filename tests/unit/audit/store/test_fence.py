"""The fence before the audit log, where the transaction that accepts a loss does not get through."""

from __future__ import annotations

import json
import os

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.sealing.seal import Note, Sealer
from interlock.audit.store.fence import CHAIN_TRUNCATED, Acknowledging, Fence, Fenced, Lost
from interlock.audit.store.log import StoreFailed
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.marks import TRUNCATED
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.runtime import failpoints
from interlock.runtime.clock import system_clock
from tests.support.audit.audit import KEYRING

LOST = Lost(CHAIN_TRUNCATED, size=9, kept=3)


@pytest.fixture(autouse=True)
def without_failpoints():
    yield
    failpoints.configure("")


def acknowledge(writing) -> None:
    """Write down that the loss is accepted."""
    data = {
        "generation": 2, "kept": 3, "anchored_size": 9, "anchored_root": "", "cause": CHAIN_TRUNCATED, "size": 3,
        "approval_id": "a", "reviewer_id": "r",
    }  # fmt: skip
    note = Note(TRUNCATED, audit_pb2.SEVERITY_CRITICAL, json.dumps(data), "")
    Sealer(KEYRING, system_clock, os.urandom).record(writing, LOG_SESSION, "", (note,))


def touch(writing) -> None:
    """Write something else."""
    writing.touch()


@pytest.mark.req("AUD-6")
def test_an_acknowledgement_that_is_not_durable_opens_nothing(tmp_path):
    """The works behind it in the same transaction passed; it failed, and the loss still stands, to be accepted again."""
    fence = Fence()
    fence.lose(LOST)
    fenced = Fenced(SqliteLog(tmp_path / "audit.db"), fence)
    failpoints.configure("audit.before_commit:error@1")

    with pytest.raises(Exception, match="FAILPOINT"):
        fenced.commit([Acknowledging(acknowledge), touch])
    refused = fenced.commit([touch])[0].error
    accepted = fenced.commit([Acknowledging(acknowledge), touch])

    assert isinstance(refused, StoreFailed)
    assert refused.reason == CHAIN_TRUNCATED
    assert [outcome.error for outcome in accepted] == [None, None]
    assert (fence.lost, fence.generation, fence.size) == (None, 2, 1)
