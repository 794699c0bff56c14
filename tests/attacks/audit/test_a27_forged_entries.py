"""A-27: rows that somebody without a key inserts into the database: they get no leaf, no signature and no place in the anchor."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.examination import examine_bundle, examine_log
from interlock.audit.store.opening import open_reader
from interlock.cli.audit.commands import app
from interlock.cli.audit.offline import own_keys
from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.note import checkpoint_in
from interlock.domain.merkle.tree import leaf_hash
from interlock.runtime.settings.model import Settings
from tests.support.audit.audit import session_id
from tests.support.audit.auditors import SEALED, Audited, audited, settings_of, write_bundle
from tests.support.servers.postgres import OWNER, SERVICE, Postgres

pytestmark = pytest.mark.req("AUD-6")

EVENT = "INSERT INTO events (session_id, sequence, window_id, event_type, severity, timestamp, data_json, key_version, hmac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
LEAF = "INSERT INTO leaves (position, session_id, sequence, leaf_hash) VALUES (?, ?, ?, ?)"
INVENTED = session_id(666)
Insert = Callable[..., None]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Settings, Insert]]:
    """Settings of a service on each database, and what may INSERT there and has no key: on PostgreSQL the service's own role."""
    if request.param == "sqlite":
        settings = settings_of(tmp_path)
        yield settings, lambda statement, *row: _sqlite(tmp_path / "state" / "audit.db", statement, row)
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    name = postgres.database()
    url = postgres.url(name, SERVICE)
    done = CliRunner().invoke(
        app, ["migrate", "--owner-url", postgres.url(name, OWNER)], env={"INTERLOCK_AUDIT_URL": url}
    )
    assert done.exit_code == 0, done.output
    yield settings_of(tmp_path, audit_url=url), lambda statement, *row: _postgres(url, statement, row)


def _sqlite(database: Path, statement: str, row: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(database, timeout=5)) as connection, connection:
        connection.execute(statement, row)


def _postgres(url: str, statement: str, row: tuple[Any, ...]) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("SET search_path = interlock_audit")
        connection.execute(statement.replace("?", "%s").encode(), row)


def forged(session: str = INVENTED, sequence: int = 1, event_type: str = "SESSION_CREATED") -> EventRecord:
    """Return an event as somebody without a key writes it."""
    return EventRecord(
        session, sequence, "", event_type, 2, "2026-05-25T10:00:00.000000Z", "{}", 1, "sha256:" + "0" * 64
    )


def inserted(insert: Insert, statement: str, *row: Any) -> bool:
    """Return whether the database took a row."""
    try:
        insert(statement, *row)
    except psycopg.IntegrityError:
        return False
    return True


def row_of(event: EventRecord) -> tuple[Any, ...]:
    return (
        event.session_id, event.sequence, event.window_id, event.event_type, event.severity, event.timestamp,
        event.data_json, event.key_version, event.hmac,
    )  # fmt: skip


def leaves(settings: Settings) -> list[tuple[str, int]]:
    """Return the session and the sequence of every entry of the log."""
    with closing(open_reader(settings)) as log:
        return [(one.event.session_id, one.event.sequence) for one in log.entries(0, log.log_size()) if one.event]


def signed(settings: Settings) -> int:
    """Return how far the log is signed."""
    with closing(open_reader(settings)) as log:
        return max((checkpoint_in(note).size for _, note in log.checkpoints()), default=0)


def fsck(settings: Settings, *, keys: bool = True) -> dict[str, set[str]]:
    """Return what fsck finds, kind to reasons."""
    with closing(open_reader(settings)) as log:
        key = load_checkpoint_key(settings).verifier()
        found = (
            examine_log(log, key, settings.audit_anchor, key_of=own_keys(settings))
            if keys
            else examine_log(log, key, settings.audit_anchor)
        )
    told: dict[str, set[str]] = {}
    for one in found.findings:
        told.setdefault(one.what, set()).add(one.reason)
    return told


async def used(audit: Audited) -> None:
    """Use the service after the attack: another window, another round of signing."""
    await audit.seal()
    await audit.notary.round()


async def test_a27_an_invented_session_gets_no_leaf_and_no_signature(place, tmp_path):
    """A plain INSERT of a session, and of an approval in a real one: neither is in the log, and fsck names both."""
    settings, insert = place
    async with audited(settings) as audit:
        await audit.seal()
        await audit.notary.round()
        there = [
            inserted(insert, EVENT, *row_of(forged())),
            inserted(insert, EVENT, *row_of(forged(session_id(1), SEALED + 1, "OVERSIGHT_APPROVED"))),
        ]
        await audit.seal(session=2)
        await audit.notary.round()
    async with audited(settings) as audit:  # another start looks again, and finds the same
        await audit.seal(session=3)
        await audit.notary.round()
    entries = leaves(settings)
    found, keyless = fsck(settings), fsck(settings, keys=False)
    await asyncio.to_thread(write_bundle, settings, tmp_path / "bundle")
    auditor = examine_bundle(tmp_path / "bundle", load_checkpoint_key(settings).verifier(), settings.audit_anchor)

    assert (INVENTED, 1) not in entries
    assert (session_id(1), SEALED + 1) not in entries
    assert (signed(settings), len(entries)) == (3 * SEALED, 3 * SEALED)
    assert there == [not settings.audit_url] * 2, "PostgreSQL refuses the service's own role"
    assert ("HMAC_MISMATCH" in found.get("session", ())) == there[0]
    assert ("NO_LEAF" in keyless.get("session", ())) == there[0]
    assert (auditor.verdict, auditor.size, auditor.signed) == ("VALID", 3 * SEALED, 3 * SEALED)


async def test_a27_an_entry_with_its_leaf_stops_the_signing(place):
    """Whoever writes event and leaf: nothing from there on is signed or published, the service says so and seals no more."""
    settings, insert = place
    async with audited(settings) as audit:
        await audit.seal()
        await audit.notary.round()
        event = forged()
        insert(LEAF, SEALED, event.session_id, event.sequence, leaf_hash(encode_entry(event)))
        insert(EVENT, *row_of(event))
        answer = await audit.seal(session=2)  # not known yet: sealed, and not signed
        with pytest.raises(Exception, match="LOG_FORGED") as raised:
            await audit.notary.round()
        refused = (await audit.seal(session=3)).refusal
        unready = await audit.service.unready_dependencies()

    assert not answer.HasField("refusal")
    assert raised.value.metadata == {"cause": "LOG_FORGED", "position": str(SEALED), "fault": "HMAC_MISMATCH"}
    assert refused.reason == "LOG_FORGED"
    assert f"entry {SEALED}" in unready["audit_log"]
    assert signed(settings) == SEALED
    assert settings.audit_anchor
    assert sorted(int(one.name) for one in (settings.audit_anchor / "checkpoints").glob("*")) == [SEALED]
    assert fsck(settings)["entry"] == {"HMAC_MISMATCH"}


async def test_a27_a_leaf_without_its_event_stops_the_signing(place):
    """A leaf that hashes nothing: no mark declares its bytes removed."""
    settings, insert = place
    async with audited(settings) as audit:
        await audit.seal()
        insert(LEAF, SEALED, INVENTED, 1, bytes(32))
        with pytest.raises(Exception, match="LOG_FORGED"):
            await audit.notary.round()

    assert signed(settings) == 0


async def test_a27_a_genuine_event_of_another_session_is_no_entry_of_this_one(place):
    """A copied row, with a right HMAC of another place, is as forged as an invented one."""
    settings, insert = place
    async with audited(settings) as audit:
        await audit.seal()
        await audit.notary.round()
        with closing(open_reader(settings)) as log:
            first = log.events(session_id(1), after=0, limit=1)[0]
        copied = (INVENTED, *row_of(first)[1:])
        inserted(insert, EVENT, *copied)
        await used(audit)

    assert (INVENTED, 1) not in leaves(settings)
    assert signed(settings) == 2 * SEALED
