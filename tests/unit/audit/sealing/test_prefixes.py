"""A chain is verified from where this process verified it last, and what was tampered with behind that is found within a bound."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from interlock.audit import requests
from interlock.audit.requests import Note
from interlock.audit.sealing.prefixes import SESSION_WEIGHT, Prefixes
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import ChainBroken
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.chain_state import CASCADED
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.keys.masters import Masters
from tests.support.audit.audit import (
    KEYRING,
    MASTER,
    Attacker,
    Ticking,
    build,
    copies,
    event,
    session_id,
    window,
    window_id,
)

LONG, WITHIN = 40, 16
SEALER = Sealer(KEYRING, Ticking(), os.urandom)


class Rotating(Keyring):
    """Keys that a test rotates."""

    def rotate(self) -> None:
        self._fixed = Masters({1: MASTER, 2: bytes(32)})


@dataclass
class Process:
    """What one audit process knows, and how it appends."""

    log: SqliteLog
    tip: str
    windows: int = LONG
    keyring: Keyring = field(default_factory=lambda: Rotating({1: MASTER}))
    now: float = 0.0
    generation: int = 1
    prefixes: Prefixes = field(init=False)

    def __post_init__(self) -> None:
        self.prefixes = Prefixes(self.keyring, within=WITHIN, clock=lambda: self.now, rests_on=lambda: self.generation)

    def verified(self):
        return self.prefixes.verified(self.log, session_id())

    def append(self) -> None:
        """Seal one more window as the service does."""
        number = self.windows + 1
        draft = requests.draft(window(number, self.tip))
        found = self.prefixes.verified(self.log, session_id(), excluding=draft.window_id, again="once")
        recheck = partial(self.prefixes.recheck, session_id=session_id())
        [outcome] = self.log.commit([partial(SEALER.seal, draft=draft, verified=found, recheck=recheck)])
        if outcome.error is not None:
            raise outcome.error
        sealed = outcome.value
        self.prefixes.extend(session_id(), sealed.before, [sealed.window], sealed.events)
        self.tip, self.windows = sealed.window.hmac, number

    def windows_until_found(self) -> int:
        """Return how many windows are sealed before the tampering is found."""
        for count in range(WITHIN + 1):
            try:
                self.append()
            except ChainBroken:
                return count
        raise AssertionError(f"not found within {WITHIN} windows")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A log with one long session, at rest, and the session's tip."""
    log = SqliteLog(tmp_path_factory.mktemp("made") / "audit.db", clock=Ticking())
    tips = build(log, LONG)
    log.close()
    with Attacker(log.path) as attack:
        attack("SELECT 1")
    return log.path, tips[-1]


@pytest.fixture
def process(made: tuple[Path, str], tmp_path: Path) -> Iterator[Process]:
    """A process that knows the session: it has sealed a window behind the others."""
    path, tip = made
    found = Process(SqliteLog(next(copies(path, tmp_path))), tip)
    found.append()
    yield found
    found.log.close()


def wholes() -> float:
    return REGISTRY.get_sample_value("interlock_audit_chain_verifications_total", {"extent": "whole"}) or 0.0


TAMPERINGS = {
    "an event's severity": ("UPDATE events SET severity = 1 WHERE sequence = ?", 3),
    "an event's data": ("UPDATE events SET data_json = '{}' WHERE sequence = ?", 4),
    "an event's HMAC": ("UPDATE events SET hmac = 'sha256:00' WHERE sequence = ?", 50),
    "an event that is gone": ("DELETE FROM events WHERE sequence = ?", 61),
    "a window's charge": ("UPDATE windows SET charge_micros = 0 WHERE window_number = ?", 1),
    "a window's HMAC": ("UPDATE windows SET hmac = 'sha256:00' WHERE window_number = ?", 20),
    "a window's settlement": ("UPDATE windows SET settle_json = '{}' WHERE window_number = ?", 39),
    "a report": ("UPDATE reports SET body = x'00' WHERE window_id = ?", window_id(17)),
    "a report that is gone": ("DELETE FROM reports WHERE window_id = ?", window_id(2)),
}


@pytest.mark.req("ATT-4")
@pytest.mark.req("PRV-2")
@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_tampered_old_entry_is_found_within_the_bound(process, what):
    """Wherever it is, the session goes on for at most so many windows."""
    statement, where = TAMPERINGS[what]
    with Attacker(process.log.path) as attack:
        attack("PRAGMA foreign_keys = OFF")
        attack(statement, where)

    assert process.windows_until_found() <= WITHIN


@pytest.mark.req("ATT-4")
@pytest.mark.parametrize("what", TAMPERINGS)
def test_another_process_finds_it_at_once(process, what):
    """What one process verified binds no other."""
    statement, where = TAMPERINGS[what]
    with Attacker(process.log.path) as attack:
        attack(statement, where)

    with pytest.raises(ChainBroken):
        Process(process.log, process.tip).verified()


@pytest.mark.req("ATT-4")
def test_two_old_entries_that_changed_places_are_found_within_the_bound(process):
    """Order counts: each row is unchanged but for its place."""
    with Attacker(process.log.path) as attack:
        for was, becomes in ((10, 9_999), (11, 10), (9_999, 11)):
            attack("UPDATE events SET sequence = ? WHERE sequence = ?", becomes, was)

    assert process.windows_until_found() <= WITHIN


@pytest.mark.req("ATT-4")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM windows WHERE window_number = 5",
        "UPDATE events SET hmac = 'sha256:00' WHERE sequence = (SELECT MAX(sequence) FROM events)",
        "DELETE FROM events WHERE sequence = (SELECT MAX(sequence) FROM events)",
        ("INSERT INTO windows SELECT 'crp_win_9', session_id, 3, '[]', response_hash, report_hash, risk_level, 0, status,"
        " settle_json, 'crp_trail_9', request_hash, timestamp, key_version, hmac, content_hash, sealed_report_hash"
        " FROM windows WHERE window_number = 3"),
    ],
    ids=["a window is gone", "the last event is another", "the last event is gone", "a window without a seal"],
)  # fmt: skip
def test_what_concerns_the_end_or_the_count_is_found_at_once(process, statement):
    """The prefix is continued only from the event it ends with, and only by windows with seals."""
    process.verified()
    with Attacker(process.log.path) as attack:
        attack(statement)

    with pytest.raises(ChainBroken):
        process.verified()


@pytest.mark.req("ATT-4")
def test_a_short_chain_is_read_again_whole(tmp_path):
    """Where everything can be looked at for little, every tampering is found by the next call."""
    log = SqliteLog(tmp_path / "audit.db")
    [*_, tip] = build(log, 7)
    process = Process(log, tip, windows=7)
    process.append()
    with Attacker(log.path) as attack:
        attack("UPDATE events SET severity = 1 WHERE sequence = 2")

    with pytest.raises(ChainBroken):
        process.append()


@pytest.mark.req("ATT-4")
@pytest.mark.parametrize("changed", ["nothing", "file", "keys", "generation", "idle"])
def test_a_change_of_what_it_rests_on_has_the_chain_verified_whole(process, changed):
    """Another file of the same name, another set of keys, a log that lost its end, or a long silence."""
    process.verified()
    if changed == "file":
        process.log.close()
        taken = process.log.path.with_name("taken.db")
        taken.write_bytes(process.log.path.read_bytes())
        taken.rename(process.log.path)
        for left in ("-wal", "-shm"):
            process.log.path.with_name(process.log.path.name + left).unlink(missing_ok=True)
    elif changed == "keys":
        process.keyring.rotate()
    elif changed == "generation":
        process.generation = 2
    elif changed == "idle":
        process.now = 601.0
    before = wholes()

    process.verified()

    assert wholes() - before == (0 if changed == "nothing" else 1)


class Watched:
    """The records of a log, and what was asked of them."""

    def __init__(self, log: SqliteLog) -> None:
        self.log, self.asked = log, []

    def chain(self, session):
        return self.log.chain(session)

    def since(self, session, sequence, *, again=None):
        found = self.log.since(session, sequence, again=again)
        self.asked.append((len(found.events), again is not None))
        return found


@pytest.mark.req("ATT-4")
def test_what_is_due_is_read_again_once_for_a_window(process):
    """Before a provider is asked where an earlier answer is read for the window, otherwise before it is sealed."""
    process.verified()
    records = Watched(process.log)

    for again in ("due", "once", "once", "due", "due"):
        process.prefixes.verified(records, session_id(), again=again)

    assert [was for _, was in records.asked] == [True, False, True, True, True]


@pytest.mark.req("ATT-4")
def test_what_a_process_sealed_itself_is_not_verified_anew(process):
    """Only the last event is read, and compared."""
    process.append()
    process.append()
    records = Watched(process.log)

    found = process.prefixes.verified(records, session_id())

    assert records.asked == [(1, False)]
    assert found == Process(process.log, "").prefixes.verified(process.log, session_id())


@pytest.mark.req("ATT-4")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET severity = 1 WHERE sequence = (SELECT MIN(sequence) FROM events WHERE window_id = ?)",
        "UPDATE windows SET charge_micros = 7 WHERE window_id = ?",
    ],
)
def test_a_window_that_was_just_sealed_here_is_read_again_too(process, statement):
    """What is in memory never stands for what is stored."""
    process.append()
    with Attacker(process.log.path) as attack:
        attack("PRAGMA foreign_keys = OFF")
        attack(statement, window_id(process.windows))

    assert process.windows_until_found() <= WITHIN


@pytest.mark.req("ATT-4")
@pytest.mark.parametrize("before", [(0, ""), (1, "sha256:00")])
def test_what_does_not_follow_is_not_taken_over(process, before):
    """Another process sealed in between: the chain is verified as it is stored."""
    process.verified()
    window = process.log.chain(session_id()).windows[-1]
    events = process.log.events(session_id(), after=0, limit=2)

    process.prefixes.extend(session_id(), before, [window], events)

    verified_whole = wholes()
    found = process.verified()
    assert wholes() == verified_whole
    assert found == Process(process.log, "").verified()


@pytest.mark.req("ATT-4")
def test_what_is_undone_is_not_kept(process):
    """A transaction sees records that may never become durable: they are verified, and forgotten."""
    process.verified()
    seen = []

    def work(writing):
        SEALER.record(writing, session_id(), "", requests.notes([event()]))
        seen.append(process.prefixes.recheck(writing, session_id()).head)
        raise RuntimeError

    process.log.commit([work])

    assert seen[0][0] == process.verified().head[0] + 1
    process.append()


@pytest.mark.req("ATT-4")
def test_the_state_of_the_chain_is_the_one_that_all_events_show(process):
    """Charges from below and started sessions count once, whenever they came."""
    process.verified()
    notes = [
        Note(CASCADED, 2, '{"after":"0.300000"}', ""),
        Note("SUB_AGENT_STARTED", 2, '{"session_id":"crp_sess_a"}', ""),
        Note("SUB_AGENT_STARTED", 2, '{"session_id":"crp_sess_a"}', ""),
    ]
    process.log.commit([partial(SEALER.record, session_id=session_id(), window_id="", notes=notes)])

    state = process.verified().state

    assert (state.budget, state.sealed, state.started) == (300_000, LONG + 1, 1)
    assert state == Process(process.log, "").verified().state


@pytest.mark.req("ATT-4")
def test_the_memory_of_many_sessions_is_bounded(tmp_path):
    """Those not used for longest are forgotten, and verified whole when they come back."""
    log = SqliteLog(tmp_path / "audit.db")
    for session in range(1, 8):
        build(log, 3, session=session)
    most = 3 * (3 + SESSION_WEIGHT)
    prefixes = Prefixes(KEYRING, windows_kept=most)
    for session in range(1, 8):
        prefixes.verified(log, session_id(session))
        assert prefixes.weight <= most
    before = wholes()

    prefixes.verified(log, session_id(7))
    assert wholes() == before
    prefixes.verified(log, session_id(1))

    assert wholes() == before + 1
    assert prefixes.weight == most


class TestSealedInOneHop:
    """A window whose chain was read for it is sealed without reading it once more, if the chain still ends as it did."""

    @staticmethod
    def due(process: Process) -> None:
        process.prefixes.verified(process.log, session_id(), again="due")

    @staticmethod
    def unchanged(process: Process):
        """What a transaction is told."""
        [outcome] = process.log.commit([lambda writing: process.prefixes.unchanged(writing, session_id())])
        return outcome.value

    @pytest.mark.req("ATT-4")
    def test_it_says_what_a_reading_says(self, process):
        """The same head, state and failures."""
        self.due(process)

        assert process.prefixes.read_lately(session_id())
        assert self.unchanged(process) == process.verified()

    @pytest.mark.req("ATT-4")
    def test_one_reading_is_for_one_window(self, process):
        """The next window's chain is read again, so that the bound counts windows."""
        self.due(process)
        self.unchanged(process)

        assert not process.prefixes.read_lately(session_id())
        assert self.unchanged(process) is None

    @pytest.mark.req("ATT-4")
    def test_a_chain_that_was_not_read_again_is_not_enough(self, process):
        """A reading that left out what was due does not count."""
        process.verified()

        assert self.unchanged(process) is None

    @pytest.mark.req("ATT-4")
    def test_a_chain_that_has_grown_is_read(self, process):
        """What came since is in no state that was verified."""
        self.due(process)
        notes = requests.notes([event()])
        process.log.commit([partial(SEALER.record, session_id=session_id(), window_id="", notes=notes)])

        assert self.unchanged(process) is None

    @pytest.mark.req("PRV-2")
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE events SET data_json = '{\"a\":1}' WHERE sequence = (SELECT MAX(sequence) FROM events)",
            "UPDATE events SET severity = 1 WHERE sequence = (SELECT MAX(sequence) FROM events)",
            "DELETE FROM windows WHERE window_number = 3",
        ],
    )
    def test_what_was_tampered_with_since_the_reading_is_not_sealed_on(self, process, statement):
        """The last entry and the number of windows are compared inside the transaction that seals."""
        self.due(process)
        with Attacker(process.log.path) as attack:
            attack(statement)

        assert self.unchanged(process) is None
        with pytest.raises(ChainBroken):
            process.verified()
