"""Sealing inside the transaction, when something happened between the check of the chain and the commit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from interlock.audit import requests
from interlock.audit.sealing.prefixes import Prefixes, VerifiedChain
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import ChainBroken
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.chain import EventRecord, Integrity
from tests.support.audit.audit import (
    KEYRING,
    Attacker,
    Ticking,
    build,
    event,
    hash_of,
    session_id,
    temporary_log,
    window,
    window_id,
)

SEALER = Sealer(KEYRING, Ticking(), os.urandom)


@pytest.fixture
def log() -> Iterator[SqliteLog]:
    with temporary_log() as made:
        yield made


def seal(log: SqliteLog, number: int, parent: str, *, prefixes: Prefixes, verified: VerifiedChain):
    draft = requests.draft(window(number, parent))
    recheck = partial(prefixes.recheck, session_id=draft.session_id)
    [outcome] = log.commit([partial(SEALER.seal, draft=draft, verified=verified, recheck=recheck)])
    return outcome


@pytest.mark.req("PRV-2")
def test_records_that_came_between_check_and_commit_are_checked_too(log):
    """The head moved by honest records: the window is sealed behind them, and the verdict holds for all."""
    [tip] = build(log, 1)
    prefixes = Prefixes(KEYRING)
    verified = prefixes.verified(log, session_id())
    log.commit([partial(SEALER.record, session_id=session_id(), window_id="", notes=requests.notes([event()]))])

    outcome = seal(log, 2, tip, prefixes=prefixes, verified=verified)

    assert outcome.value.integrity is Integrity.VALID
    assert len(log.chain(session_id()).events) == 3 + 1 + 3


@pytest.mark.req("PRV-2")
def test_a_forged_record_between_check_and_commit_is_found(log):
    """The verdict of the check does not carry over to records that it has not seen."""
    [tip] = build(log, 1)
    prefixes = Prefixes(KEYRING)
    verified = prefixes.verified(log, session_id())
    forged = EventRecord(session_id(), 4, "", "SAFETY_HALT", 5, "2026-05-25T10:00:00Z", "{}", 1, hash_of(4))
    log.commit([lambda writing: writing.add_events([forged])])

    outcome = seal(log, 2, tip, prefixes=prefixes, verified=verified)

    assert isinstance(outcome.error, ChainBroken)
    assert outcome.error.fault.index == 4
    assert len(log.chain(session_id()).windows) == 1


def test_a_duplicate_whose_key_is_gone_is_refused(log):
    """Its unchained HMAC cannot be told any more, so nothing is said."""
    build(log, 1)
    stored = log.chain(session_id()).windows[0]
    draft = replace(requests.draft(window(1, events=[])), request_hash=stored.request_hash)
    prefixes = Prefixes(KEYRING)
    verified = prefixes.verified(log, session_id())

    with Attacker(log.path) as attack:
        attack("UPDATE windows SET key_version = 9 WHERE window_id = ?", window_id(1))

    recheck = partial(prefixes.recheck, session_id=session_id())
    [outcome] = log.commit([partial(SEALER.seal, draft=draft, verified=verified, recheck=recheck)])

    assert isinstance(outcome.error, ChainBroken)
    assert outcome.error.fault.reason == "KEY_UNKNOWN"
