"""Positions, leaves and stored subtrees of every audit log: what the Merkle log over all sessions is built from (AUD-6)."""

from __future__ import annotations

import pytest

from interlock.audit.sealing.genuine import Genuine
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.tree import StoredTree, complete_root, leaf_hash, merkle_root, tree_root
from tests.support.audit.audit import KEYRING, hash_of, session_id, verify_message
from tests.support.audit.old_log import OldLog, a_note
from tests.support.audit.records import a_window, adding, an_event

pytestmark = pytest.mark.req("AUD-6")


def leaves(log, start=0, end=10**9) -> list[bytes]:
    return log.leaf_hashes(start, end)


def fill(log, events: int) -> None:
    log.commit([adding(*(an_event(n) for n in range(1, events + 1)))])


def test_every_event_has_the_next_position(log):
    """Over all sessions, in the order in which they were committed, without gaps."""
    log.commit([adding(an_event(1), an_event(1, 2)), adding(an_event(2))])
    log.commit([adding(an_event(2, 2))])

    entries = log.entries(0, 9)

    assert [(e.position, e.event.session_id[-1], e.event.sequence) for e in entries] == [
        (0, "1", 1), (1, "2", 1), (2, "1", 2), (3, "2", 2),
    ]  # fmt: skip
    assert log.log_size() == 4
    assert (log.positions(session_id(1)), log.positions(session_id(2))) == ({1: 0, 2: 2}, {1: 1, 2: 3})


def test_a_leaf_is_the_hash_of_its_entry(log):
    """What an auditor computes from the line that is exported."""
    fill(log, 3)

    assert leaves(log) == [leaf_hash(encode_entry(an_event(n))) for n in (1, 2, 3)]
    assert [e.leaf_hash for e in log.entries(1, 3)] == leaves(log, 1, 3)


def test_what_is_undone_takes_no_position(log):
    """A refused request leaves no gap behind it, in the middle of a transaction too."""

    def half(writing):
        writing.add_events([an_event(2)])
        raise ValueError("no")

    log.commit([adding(an_event(1)), half, adding(an_event(1, 2))])

    assert [(e.position, e.event.session_id) for e in log.entries(0, 9)] == [(0, session_id(1)), (1, session_id(2))]


def test_an_empty_log_has_no_entries(log):
    """Nothing is there, and nothing fails."""
    assert (log.log_size(), log.entries(0, 5), leaves(log), log.nodes(8, 0, 5)) == (0, [], [], [])
    assert (log.positions(session_id()), log.checkpoint(), log.checkpoints()) == ({}, None, [])


def test_complete_subtrees_are_stored_with_their_last_leaf(log):
    """The 256th leaf brings its subtree, the 255th none; several at once bring several."""
    fill(log, 255)
    assert log.nodes(8, 0, 9) == []

    log.commit([adding(an_event(256), *(an_event(n, 2) for n in range(1, 400)))])

    stored = log.nodes(8, 0, 9)
    every = leaves(log)
    assert stored == [complete_root(every[:256]), complete_root(every[256:512])]
    assert tree_root(655, StoredTree(read(log)).node) == merkle_root(every)


def read(log):
    return lambda level, start, end: log.leaf_hashes(start, end) if level == 0 else log.nodes(level, start, end)


def test_a_transaction_sees_the_tree_that_it_makes(log):
    """A checkpoint is signed over exactly what is committed with it."""

    def sign(writing):
        writing.add_events([an_event(1)])
        seen = (writing.log_size(), writing.leaf_hashes(0, 9), writing.nodes(8, 0, 1), writing.checkpoint())
        writing.add_checkpoint(1, "note 1")
        return (*seen, writing.checkpoint(), writing.positions(session_id()))

    [outcome] = log.commit([sign])

    leaf = leaf_hash(encode_entry(an_event(1)))
    assert outcome.value == (1, [leaf], [], None, (1, "note 1"), {1: 0})


def test_checkpoints_are_kept_in_order(log):
    """The last one added is the latest, whatever its size."""
    for size, note in ((3, "a"), (7, "b"), (7, "c")):
        log.commit([lambda writing, size=size, note=note: writing.add_checkpoint(size, note)])

    assert log.checkpoints() == [(3, "a"), (7, "b"), (7, "c")]
    assert log.checkpoint() == (7, "c")


def test_key_versions_are_those_of_all_records(log):
    """What must stay in the keyring for as long as the log is to verify."""
    log.commit([adding(an_event(1, key_version=2), a_window(1, key_version=3))])
    log.commit([lambda writing: writing.add_content_key(session_id(), 5, b"k")])

    assert log.key_versions() == {2, 3, 5}


def test_an_event_is_found_by_all_that_it_says(log):
    """What a repeated request asks: is exactly this there already?"""
    log.commit([adding(an_event(1, data_json='{"a":1}', event_type="WINDOW_FAILED"))])
    names = (session_id(), an_event(1).window_id, "WINDOW_FAILED", '{"a":1}')
    others = [(*names[:n], "other", *names[n + 1 :]) for n in range(4)]

    asking = (names, *others, names[:3], others[2][:3])
    [outcome] = log.commit([lambda writing: [writing.has_event(*asked) for asked in asking]])

    assert outcome.value == [True, False, False, False, False, True, False]


# --- what older code wrote, on SQLite: PostgreSQL came with the Merkle log


@pytest.mark.parametrize("schema", [1, 2, 3])
def test_events_of_an_older_schema_get_positions_when_new_code_opens_it(tmp_path, schema):
    """By time, and never an event before an earlier one of its session; the chain verifies with plain reports."""
    path = tmp_path / "audit.db"
    with OldLog(path, schema=schema) as old:
        old.record(session_id(2), a_note())
        old.seal(2, old.seal(1))
        old.record(session_id(2), a_note("SESSION_TERMINATED"))

    log = SqliteLog(path, vouch=Genuine(KEYRING))
    log.commit([])

    assert log.log_size() == 8
    assert log.positions(session_id(1)) == dict(
        zip(range(1, 7), sorted(log.positions(session_id(1)).values()), strict=True)
    )
    assert verify_message(log, session_id(1)) == ("VALID", [])
    log.close()


def test_code_that_knows_no_leaves_goes_on_with_a_migrated_file(tmp_path):
    """Its events are noted in the order in which it wrote them, and get their positions with the next transaction."""
    path = tmp_path / "audit.db"
    log = SqliteLog(path, vouch=Genuine(KEYRING))
    log.commit([adding(an_event(1))])
    with OldLog(path) as old:
        old.record(session_id(3), a_note())
        old.seal(1, session=2)
        old.record(session_id(3), a_note())

        assert log.log_size() == 1
        log.commit([adding(an_event(2, hmac=hash_of(9)))])
        old.record(session_id(3), a_note())
    log.close()

    log.commit([])

    found = [(entry.event.session_id[-1], entry.event.sequence) for entry in log.entries(0, 99)]
    assert found == [("1", 1), ("3", 1), ("2", 1), ("2", 2), ("2", 3), ("3", 2), ("1", 2), ("3", 3)]
    assert verify_message(log, session_id(3)) == ("UNVERIFIED", [])
    assert [entry.leaf_hash for entry in log.entries(0, 99)] == [
        leaf_hash(encode_entry(e.event)) for e in log.entries(0, 99)
    ]
    log.close()
