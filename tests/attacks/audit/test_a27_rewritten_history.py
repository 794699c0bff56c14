"""A-27: tails cut off, chains deleted, suffixes rewritten, heads forked: in what an auditor has, and in the database itself."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.audit.merkle.checkpoint_key import CheckpointKey, load_checkpoint_key
from interlock.audit.merkle.examination import examine_log
from interlock.audit.merkle.folder import LogFolder
from interlock.audit.store.opening import open_reader
from interlock.domain.chain.chain import Integrity, chained, verify_chain
from interlock.domain.errors import Refused
from interlock.domain.merkle.bundle import Examined
from interlock.domain.merkle.entry import decode_entry, encode_entry
from interlock.domain.merkle.tiles import CHECKPOINT, ENTRIES, HISTORY
from interlock.domain.merkle.tree import HASH_BYTES, leaf_hash, merkle_root
from interlock.runtime.keys.derivation import HMAC, load_keyring
from tests.support.audit.audit import Attacker, keys, session_id
from tests.support.audit.auditors import Evidence, audited, build_evidence, settings_of, write_bundle

pytestmark = pytest.mark.req("AUD-6")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A bundle of a real service's log, and its anchor."""
    return build_evidence(tmp_path_factory.mktemp("log"), windows=30, per_checkpoint=4)


@pytest.fixture
def evidence(original: Evidence, tmp_path: Path) -> Evidence:
    """A copy to tamper with."""
    return original.copy(tmp_path)


def reasons(found: Examined) -> set[str]:
    assert found.verdict == "BROKEN"
    return {finding.reason for finding in found.findings}


def indexes(found: Examined) -> set[int]:
    assert found.verdict == "BROKEN"
    return {finding.index for finding in found.findings if finding.what == "entry"}


def reforged(evidence: Evidence, lines: list[bytes], key: CheckpointKey | None = None) -> None:
    """Put other entries into the bundle with hashes that fit, and with checkpoints too where a key is at hand."""
    evidence.rewrite(lines)
    leaves = [leaf_hash(line) for line in lines]
    shutil.rmtree(evidence.bundle / "tile")
    (evidence.bundle / "tile" / "0" / "000.p").mkdir(parents=True)
    (evidence.bundle / "tile" / "0" / "000.p" / str(len(leaves))).write_bytes(b"".join(leaves))
    (evidence.bundle / "bundle.json").write_text(
        f'{{"format": "interlock-audit-bundle/1", "reports": false, "size": {len(leaves)}}}\n'
    )
    for size in LogFolder(evidence.bundle).sizes(1):
        path = evidence.bundle / HISTORY / str(size)
        if size > len(leaves):
            path.unlink()
        elif key is not None:
            path.write_text(key.sign(size, merkle_root(leaves[:size]), generation=1, now_s=1))
    newest = max(LogFolder(evidence.bundle).sizes(1), default=0)
    latest = evidence.bundle / CHECKPOINT
    latest.write_text((evidence.bundle / HISTORY / str(newest)).read_text()) if newest else latest.unlink()


def test_a27_a_tail_cut_off_everywhere_but_in_the_anchor_is_found(evidence):
    """Entries, hashes and checkpoints of the bundle end earlier, and agree: the anchor knows of more."""
    lines = evidence.lines
    reforged(evidence, lines[:50])

    assert evidence.examine(anchored=False).verdict == "VALID"  # that is what a bare log cannot show
    found = evidence.examine()
    assert reasons(found) == {"CHAIN_TRUNCATED"}
    assert indexes(found) == set(range(50, len(lines)))
    assert found.size == 50


def test_a27_a_whole_chain_that_is_deleted_is_found(evidence):
    """Every entry of one session is gone, and the rest moved up: each of them is named, or the first and that more differ."""
    kept = [line for line in evidence.lines if decode_entry(line).session_id != session_id(2)]
    reforged(evidence, kept)

    first = next(
        at for at, line in enumerate(evidence_lines(evidence)) if decode_entry(line).session_id == session_id(2)
    )
    assert min(indexes(evidence.examine())) == first


def evidence_lines(evidence: Evidence) -> list[bytes]:
    """Return the honest entries, from the database."""
    with closing(open_reader(evidence.settings)) as log:
        return [encode_entry(entry.event) for entry in log.entries(0, log.log_size()) if entry.event]


def rechained(evidence: Evidence, session: int, at: int) -> list[bytes]:
    """Return the log with one event's data rewritten by the holder of the master key, and every HMAC made anew."""
    keyring = load_keyring(evidence.settings)
    key = keyring.derive(1, session_id(session), HMAC)
    assert key is not None
    events = [decode_entry(line) for line in evidence.lines]
    mine = [event for event in events if event.session_id == session_id(session)]
    changed = [replace(event, data_json='{"a":2}') if event.sequence == at else event for event in mine]
    anew = {event.sequence: event for event in chained(key, changed, "")}
    found = verify_chain((), tuple(anew.values()), keys(session_id(session), keyring))
    assert not [fault for fault in found.faults if fault.what == "event"], "the HMAC chain alone sees nothing"
    return [
        encode_entry(anew[event.sequence] if event.session_id == session_id(session) else event) for event in events
    ]


def test_a27_a_suffix_rewritten_at_equal_length_by_the_master_key_is_found(evidence):
    """Every HMAC is right and no entry is missing: the hashes that were published are others, from the edited entry on."""
    lines = rechained(evidence, 1, 20)
    first = next(at for at, (new, old) in enumerate(zip(lines, evidence.lines, strict=True)) if new != old)
    reforged(evidence, lines)

    assert min(indexes(evidence.examine())) == first
    assert "ROOT_MISMATCH" in reasons(evidence.examine(anchored=False))


def test_a27_a_chain_made_anew_by_the_holder_of_every_key_is_found_by_the_anchor(evidence):
    """The operator signs other checkpoints with the right key: two heads that do not extend each other are named as such."""
    lines = rechained(evidence, 1, 20)
    first = next(at for at, (new, old) in enumerate(zip(lines, evidence.lines, strict=True)) if new != old)
    reforged(evidence, lines, load_checkpoint_key(evidence.settings))

    assert evidence.examine(anchored=False).verdict == "VALID"
    found = evidence.examine()
    assert "LOG_FORKED" in reasons(found)
    assert min(one.index for one in found.findings) == first


def test_a27_a_checkpoint_of_another_key_is_found(evidence):
    """A fork that is signed by somebody else is nobody's checkpoint."""
    other = CheckpointKey(evidence.key.name, Ed25519PrivateKey.generate())
    size = LogFolder(evidence.anchor).sizes(1)[2]
    (evidence.anchor / HISTORY / str(size)).write_text(other.sign(size, bytes(32), generation=1, now_s=1))

    found = evidence.examine()
    assert [(one.what, one.index, one.reason) for one in found.findings] == [("checkpoint", size, "SIGNATURE_INVALID")]


@pytest.mark.parametrize("where", ["anchor", "bundle"])
def test_a27_a_newest_checkpoint_that_was_rolled_back_is_found(evidence, where):
    """The file that names the newest one holds an older one."""
    folder = getattr(evidence, where)
    oldest = LogFolder(folder).sizes(1)[0]
    (folder / CHECKPOINT).write_text((folder / HISTORY / str(oldest)).read_text())

    found = evidence.examine()
    assert [(one.index, one.reason) for one in found.findings] == [(oldest, "ROLLED_BACK")]


def test_a27_a_checkpoint_under_another_size_is_found(evidence):
    """Each checkpoint of the history lies under its own size."""
    first, second = LogFolder(evidence.anchor).sizes(1)[:2]
    shutil.copy(evidence.anchor / HISTORY / str(first), evidence.anchor / HISTORY / str(second))

    assert reasons(evidence.examine()) == {"CHECKPOINT_MISPLACED"}


@pytest.mark.parametrize("where", ["anchor", "bundle"])
def test_a27_every_changed_hash_of_a_tile_is_found_by_its_index(evidence, where):
    """The entries are whole; the hash beside one of them is not, and it is not the entry that is blamed."""
    size = len(evidence.lines)
    path = getattr(evidence, where) / "tile" / "0" / "000.p" / str(size)
    tile = path.read_bytes()
    for at in range(0, size, 7):
        start = at * HASH_BYTES
        path.write_bytes(tile[:start] + bytes([tile[start] ^ 1]) + tile[start + 1 :])
        found = evidence.examine()
        assert found.verdict == "BROKEN"
        assert {(one.what, one.index) for one in found.findings} == {("tile", at)}


def test_a27_tiles_and_checkpoints_that_are_gone_are_found(evidence):
    """A bundle without hashes is compared with the signed roots, and says that they are missing."""
    shutil.rmtree(evidence.bundle / "tile")
    lines = evidence.lines
    assert reasons(evidence.examine()) == {"TILE_MISSING"}

    evidence.rewrite([*lines[:9], lines[9].replace(b'"severity":2', b'"severity":1'), *lines[10:]])
    assert 9 in indexes(evidence.examine())


def damaged(evidence: Evidence, *statements: str) -> Examined:
    """Edit a copy of the database, without its triggers, and examine it as `interlock audit fsck` does."""
    state = evidence.bundle.parent / "state"
    shutil.copytree(evidence.settings.state_dir, state)
    attack = Attacker(state / "audit.db")
    attack.connection.create_function("sha", 1, leaf_hash)
    attack.connection.execute("PRAGMA ignore_check_constraints = ON")
    with attack:
        for statement in statements:
            attack(statement)
    with closing(open_reader(evidence.settings.model_copy(update={"state_dir": state}))) as log:
        return examine_log(log, evidence.key, evidence.anchor)


WHERE = "(session_id, sequence) = (SELECT session_id, sequence FROM leaves WHERE position = 41)"


@pytest.mark.parametrize(
    "edit",
    [
        f"UPDATE events SET {column} WHERE {WHERE}"
        for column in (
            "window_id = 'x'", "event_type = 'DPE_FAILED'", "severity = 1", "timestamp = '2020'", "data_json = '{}'",
            "key_version = 9", "hmac = 'sha256:00'",
        )
    ]
    + [f"DELETE FROM events WHERE {WHERE}"],
)  # fmt: skip
def test_a27_an_edit_of_the_live_database_is_found_by_its_index(evidence, edit):
    """Each column of a stored event, and the event itself, with the triggers dropped."""
    assert indexes(damaged(evidence, edit)) == {41}


def test_a27_events_that_changed_places_in_the_database_are_found(evidence):
    """Two leaves name each other's events."""
    swap = (
        "UPDATE leaves SET sequence = -1 WHERE position = 41",
        "UPDATE leaves SET session_id = (SELECT session_id FROM leaves WHERE position = 41), sequence = 1000 WHERE position = 44",
    )
    assert {41, 44} <= indexes(damaged(evidence, *swap))


def test_a27_an_edit_with_its_hash_is_found_by_the_anchor(evidence):
    """The leaf hash was made to fit the edited event: what was published does not fit."""
    found = damaged(
        evidence,
        f"UPDATE events SET data_json = '{{}}' WHERE {WHERE}",
        "UPDATE leaves SET leaf_hash = zeroblob(32) WHERE position = 41",
    )
    assert indexes(found) == {41}


def test_a27_a_deleted_tail_of_the_database_is_found_by_the_anchor(evidence):
    """Events, leaves and checkpoints end earlier; the anchor had more."""
    found = damaged(
        evidence,
        "DELETE FROM events WHERE (session_id, sequence) IN (SELECT session_id, sequence FROM leaves WHERE position >= 60)",
        "DELETE FROM leaves WHERE position >= 60",
        "DELETE FROM checkpoints WHERE size > 60",
    )
    assert "CHAIN_TRUNCATED" in reasons(found)
    assert min(indexes(found)) == 60


def test_a27_a_removed_leaf_is_found_by_its_index(evidence):
    """An entry that was taken out of the log's order."""
    assert indexes(damaged(evidence, "DELETE FROM leaves WHERE position = 41")) >= {41}


async def test_a27_a_service_on_a_truncated_database_writes_nothing(tmp_path):
    """A database from yesterday's backup: refused with what is missing, until a reviewer's approval is in the log."""
    settings = settings_of(tmp_path)
    database = tmp_path / "state" / "audit.db"
    async with audited(settings) as audit:
        await audit.seal()
    shutil.copy(database, tmp_path / "backup.db")
    async with audited(settings) as audit:
        await audit.seal(session=2)
    for file in database.parent.glob("audit.db*"):
        file.unlink()
    shutil.copy(tmp_path / "backup.db", database)

    async with audited(settings) as audit:
        refused = (await audit.seal(session=3)).refusal
        assert refused.reason == "CHAIN_TRUNCATED"
        assert (refused.metadata["anchored_size"], refused.metadata["kept"]) == ("6", "3")
        assert "CHAIN_TRUNCATED" in (await audit.service.unready_dependencies())["audit_anchor"]
    assert LogFolder(tmp_path / "anchor").sizes(1) == [3, 6], "nothing that does not extend was published"


async def test_a27_a_database_that_was_restored_is_written_again(tmp_path):
    """What was missing is back: the next round sees that, and nobody has to acknowledge anything."""
    settings = settings_of(tmp_path, audit_anchor=None)
    database = tmp_path / "state" / "audit.db"
    async with audited(settings) as audit:
        await audit.seal()
        whole = sqlite3.connect(":memory:")
        with closing(sqlite3.connect(database)) as other:
            other.backup(whole)
            _lose(other, session_id(1))
        assert (await audit.seal(session=2)).refusal.reason == "CHAIN_TRUNCATED"
        with closing(sqlite3.connect(database)) as other:
            whole.backup(other)
        whole.close()
        await audit.notary.round()
        assert not (await audit.seal(session=2)).HasField("refusal")


def _lose(database: sqlite3.Connection, session: str) -> None:
    """Take a session out of the log, as a failover to a standby that never had it does."""
    for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        database.execute(f"DROP TRIGGER {name}")
    database.execute("DELETE FROM events WHERE session_id = ?", (session,))
    database.execute("DELETE FROM leaves WHERE session_id = ?", (session,))
    database.commit()


async def test_a27_a_service_whose_history_was_rewritten_publishes_nothing(tmp_path):
    """Equal length, other content, hashes made to fit: the root that was published is another (I6)."""
    settings = settings_of(tmp_path)
    async with audited(settings) as audit:
        await audit.seal()
        await audit.notary.round()
        await audit.seal(session=2)
    with Attacker(tmp_path / "state" / "audit.db") as attack:
        attack("UPDATE leaves SET leaf_hash = zeroblob(32) WHERE position = 1")
        attack("DELETE FROM checkpoints")
    before = (tmp_path / "anchor" / CHECKPOINT).read_text()

    async with audited(settings) as audit:
        assert (await audit.record(3)).refusal.reason == "LOG_FORKED"
    assert (tmp_path / "anchor" / CHECKPOINT).read_text() == before


async def test_a27_nothing_is_signed_that_does_not_extend_what_was_signed(tmp_path):
    """A stored hash was changed behind the last checkpoint's back: there is no next one, even without an anchor (I6)."""
    settings = settings_of(tmp_path, audit_anchor=None)
    async with audited(settings) as audit:
        await audit.seal()
        await audit.notary.round()
        with Attacker(tmp_path / "state" / "audit.db") as attack:
            attack("UPDATE leaves SET leaf_hash = zeroblob(32) WHERE position = 1")
        await audit.seal()
        with pytest.raises(Refused, match="LOG_FORKED"):
            await audit.notary.round()
    with closing(open_reader(settings)) as log:
        assert [size for size, _ in log.checkpoints()] == [3]


async def test_a27_of_two_heads_under_one_key_only_one_is_published(tmp_path):
    """Two services with the same key and anchor on two databases: the second does not extend what is there (I6)."""
    first = settings_of(tmp_path)
    async with audited(first) as one:
        second = settings_of(
            tmp_path, state_dir=tmp_path / "other", checkpoint_key_file=tmp_path / "state" / "checkpoint.key"
        )
        async with audited(second) as other:
            await one.seal()
            await one.notary.round()
            await other.seal()
            await other.seal()
            before = (tmp_path / "anchor" / CHECKPOINT).read_text()
            await other.notary.round()
            assert (await other.seal()).refusal.reason == "LOG_FORKED"
            assert not (await one.seal()).HasField("refusal")
        assert (tmp_path / "anchor" / CHECKPOINT).read_text() == before
    assert LogFolder(tmp_path / "anchor").sizes(1) == [3, 6]


async def test_a27_a_log_that_shrinks_under_a_running_service_is_noticed_at_once(tmp_path):
    """A standby without the newest records takes over while the process runs: its next write is refused, without any anchor."""
    settings = settings_of(tmp_path, audit_anchor=None)
    database = tmp_path / "state" / "audit.db"
    async with audited(settings) as audit:
        await audit.seal()
        await audit.seal(session=2)
        with closing(sqlite3.connect(database)) as other:
            _lose(other, session_id(2))

        assert (await audit.seal(session=3)).refusal.reason == "CHAIN_TRUNCATED"
        assert audit.servicer.notary.fence.lost.kept == 3


def test_a27_the_hmac_chain_goes_on_verifying_beside_it(original):
    """The two do not depend on each other: a session's own chain is VALID by the master key."""
    with closing(open_reader(original.settings)) as log:
        chain = log.chain(session_id(1))
    found = verify_chain(chain.windows, chain.events, keys(session_id(1), load_keyring(original.settings)))

    assert found.integrity is Integrity.VALID


def test_a27_a_bundle_cannot_be_continued_with_another_log(evidence, tmp_path):
    """An export that goes on where an earlier one ended looks whether that was of this log."""
    other = settings_of(tmp_path / "other")

    async def work() -> None:
        async with audited(other) as audit:
            for _ in range(40):
                await audit.seal(session=9)

    asyncio.run(work())
    with pytest.raises(Exception, match="BUNDLE_OF_ANOTHER_LOG"):
        write_bundle(other, evidence.bundle)
    assert (evidence.bundle / ENTRIES).is_file()
