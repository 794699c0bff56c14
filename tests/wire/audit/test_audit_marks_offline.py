"""What is gone lawfully is told, and what is gone otherwise is found: erasure, retention, acknowledged losses (AUD-5, A-44)."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.erasure import erasure
from interlock.audit.merkle.checkpoint_key import load_checkpoint_key
from interlock.audit.merkle.examination import _reports
from interlock.audit.merkle.folder import LogFolder
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.alignment import aligned
from interlock.domain.merkle.bundle import Examined, Examiner, Head
from interlock.domain.merkle.entries import LOG_SESSION
from interlock.domain.merkle.entry import decode_entry, encode_entry
from interlock.domain.merkle.tiles import Line, beyond, format_line, parse_line, runs, tile_path, tiles_between
from interlock.domain.merkle.tree import merkle_root
from tests.support.audit.audit import session_id
from tests.support.audit.auditors import Audited, Evidence, audited, settings_of, write_bundle

pytestmark = pytest.mark.req("AUD-5", "AUD-6")

APPROVAL = "crp_appr_" + "7" * 32


async def fill(audit: Audited) -> None:
    for number in range(9):
        await audit.seal(session=1 + number % 3)


def exported(folder: Path, work) -> Evidence:
    """Run *work* on a filled service, sign and publish, and export the log."""
    settings = settings_of(folder)

    async def run() -> None:
        async with audited(settings) as audit:
            await fill(audit)
            await work(audit)

    asyncio.run(run())
    write_bundle(settings, folder / "bundle")
    return Evidence(settings, folder / "bundle", folder / "anchor", load_checkpoint_key(settings).verifier())


async def truncate(audit: Audited) -> None:
    """Do what retention does with session 2."""
    work = partial(erasure.truncate, sealer=audit.servicer._eraser._sealer, session_id=session_id(2))
    assert await audit.servicer._appender.submit(work)


async def erase(audit: Audited) -> None:
    """Erase session 2, as a reviewer approved."""
    request = audit_pb2.EraseSessionRequest(
        session_id=session_id(2), approval_id=APPROVAL, reviewer_id="r@example.com", reason="ERASURE_REQUEST"
    )
    answer = await audit.stub.EraseSession(request)
    assert answer.erased, answer.refusal


def named(found: Examined) -> list[tuple[int, str]]:
    return [(finding.index, finding.reason) for finding in found.findings]


def test_what_retention_took_is_told_and_the_rest_verifies(tmp_path):
    """Nine entries have no bytes any more; their hashes still lead to every root that was published."""
    found = exported(tmp_path, truncate).examine()

    assert (found.verdict, found.found, found.size) == ("TRUNCATED", 0, 28)
    assert found.truncated == ((3, 6), (12, 15), (21, 24))
    assert found.anchored == 28


def test_an_erased_session_is_told(tmp_path):
    """Its entries are whole, its contents are gone."""
    found = exported(tmp_path, erase).examine()

    assert (found.verdict, found.found) == ("TRUNCATED", 0)
    assert found.erased == (session_id(2),)


def test_bytes_that_are_gone_beyond_the_mark_are_found(tmp_path):
    """Somebody hides an entry of another session behind its own hash, as retention does: no mark names it."""
    evidence = exported(tmp_path, truncate)
    lines, leaves, _ = evidence.parts()
    evidence.rewrite([format_line(b"" if at == 7 else text, leaves[at]) for at, (text, _) in enumerate(lines)])

    assert named(evidence.examine()) == [(7, "MISSING_BYTES")]


@pytest.mark.parametrize("anchored", [True, False])
def test_a_mark_that_no_checkpoint_signs_excuses_nothing(tmp_path, anchored):
    """Whoever holds a bundle hides a session, and appends a mark of their own behind everything that was signed."""

    async def nothing(audit: Audited) -> None:
        await audit.notary.round()

    evidence = exported(tmp_path, nothing)
    lines, leaves, _ = evidence.parts()
    size = len(lines)
    gone = [at for at, (text, _) in enumerate(lines) if session_id(2).encode() in text]
    mark = an_event(10, "TRUNCATED", {"last_sequence": 9, "positions": runs(gone)}, session_id(2))
    erased = an_event(1, "CONTENT_ERASED", {}, session_id(8))
    hidden = [format_line(b"" if at in gone else text, leaves[at]) for at, (text, _) in enumerate(lines)]
    evidence.rewrite([*hidden, mark[0], erased[0]])
    for old in (evidence.bundle / "tile" / "0" / "000.p").iterdir():
        old.unlink()
    path = evidence.bundle.joinpath(*tile_path(0, 0, size + 2))
    path.write_bytes(b"".join([*leaves, mark[1], erased[1]]))
    manifest = evidence.bundle / "bundle.json"
    manifest.write_text(manifest.read_text().replace(f'"size": {size}', f'"size": {size + 2}'))

    found = evidence.examine(anchored=anchored)
    assert (found.verdict, found.erased) == ("BROKEN", ())
    assert named(found) == [(at, "MISSING_BYTES") for at in gone]


def lost_log(folder: Path) -> Evidence:
    """Lose the last session's entries to a backup, acknowledge that, go on, and export."""
    settings = settings_of(folder)
    database = folder / "state" / "audit.db"

    async def run() -> None:
        async with audited(settings) as audit:
            await audit.seal(session=1)
        shutil.copy(database, folder / "backup.db")
        async with audited(settings) as audit:
            await audit.seal(session=2)
        for file in database.parent.glob("audit.db*"):
            file.unlink()
        shutil.copy(folder / "backup.db", database)
        async with audited(settings) as audit:
            asked = audit_pb2.AcknowledgeTruncationRequest(
                approval_id=APPROVAL, reviewer_id="r@example.com", anchored_size=6
            )
            assert (await audit.stub.AcknowledgeTruncation(asked)).size == 3
            await audit.seal(session=3)

    asyncio.run(run())
    write_bundle(settings, folder / "bundle")
    return Evidence(settings, folder / "bundle", folder / "anchor", load_checkpoint_key(settings).verifier())


def test_an_acknowledged_loss_is_printed_for_ever_and_is_no_fault(tmp_path):
    """The anchor of the first generation had six entries; three of them are lost, and the log says who accepted that."""
    evidence = lost_log(tmp_path)
    found = evidence.examine()

    assert (found.verdict, found.found, found.size) == ("TRUNCATED", 0, 7)
    [loss] = found.losses
    assert (loss.generation, loss.kept, loss.anchored_size, loss.position) == (2, 3, 6, 3)
    assert (loss.reviewer_id, loss.cause) == ("r@example.com", "CHAIN_TRUNCATED")
    assert found.anchored == 7


def test_a_loss_that_no_checkpoint_of_its_generation_signs_excuses_nothing(tmp_path):
    """An entry that claims a loss is worth what signs it."""
    evidence = lost_log(tmp_path)
    shutil.rmtree(evidence.bundle / "2")
    shutil.rmtree(evidence.anchor / "2")

    found = evidence.examine()
    assert found.verdict == "BROKEN"
    assert found.losses == ()


def test_a_loss_excuses_nothing_before_it(tmp_path):
    """An entry of the kept range is edited, with hash and all but the anchor's signature."""
    evidence = lost_log(tmp_path)
    evidence.rewrite([evidence.lines[0].replace(b'"severity":2', b'"severity":1'), *evidence.lines[1:]])

    assert (0, "ENTRY_MISMATCH") in named(evidence.examine())


# --- what only the holder of every key could write


def an_event(sequence: int, event_type: str, data: object, session: str = session_id(1)) -> Line:
    event = EventRecord(
        session, sequence, "", event_type, 2, "2026-05-25T10:00:00Z", canonical_json(data), 1, "sha256:0"
    )
    return parse_line(encode_entry(event))


def problems(*lines: Line) -> list[str]:
    found = Examiner([]).run(lines, [leaf for _, leaf in lines], whole=True)
    return [finding.reason for finding in found.findings]


@pytest.mark.parametrize(
    "positions",
    [None, [], [[0, 2], [1, 3]], [[0, 3]], [[2, 1]], [[-1, 1]], [["0", 2]], [[0]], [[0, 99]], {"0": 2}, [[0.0, 2]]],
)
def test_a_mark_that_does_not_add_up_is_found(positions):
    """It names exactly the entries of its session before it, in order."""
    hidden = parse_line(format_line(b"", bytes(32)))
    mark = an_event(3, "TRUNCATED", {"last_sequence": 2, "positions": positions})

    assert "MARK_INVALID" in problems(hidden, hidden, mark)


def test_a_mark_that_adds_up_is_none():
    """The same with the right positions."""
    hidden = parse_line(format_line(b"", bytes(32)))
    lines = [hidden, hidden, an_event(3, "TRUNCATED", {"positions": [[0, 2]]})]
    leaves = [leaf for _, leaf in lines]
    signed = Head(3, merkle_root(leaves), anchored=False)

    assert Examiner([signed]).run(lines, leaves, whole=True).verdict == "TRUNCATED"
    assert problems(*lines) == ["MISSING_BYTES"] * 2


@pytest.mark.parametrize(
    ("sequences", "reason"), [((2,), "SEQUENCE_GAP"), ((1, 3), "SEQUENCE_GAP"), ((1, 2, 2), "DUPLICATE_SEQUENCE")]
)
def test_a_log_that_skips_or_repeats_an_event_is_found(sequences, reason):
    """Gapless sequences are part of what is signed."""
    assert problems(*(an_event(sequence, "DPE_COMPLETED", {"at": at}) for at, sequence in enumerate(sequences))) == [
        reason
    ]


def a_seal(sequence: int, window: int, **fields: object) -> Line:
    named: dict[str, object] = dict.fromkeys(("hmac", "response_hash", "report_hash"), "sha256:" + "0" * 64)
    data = named | {"parent_ids": [], "window_number": 1} | fields
    event = decode_entry(an_event(sequence, "WINDOW_SEALED", data)[0])
    return parse_line(encode_entry(EventRecord(**{**_fields(event), "window_id": f"w{window}"})))


def _fields(event: EventRecord) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__dataclass_fields__}


@pytest.mark.parametrize(
    ("seals", "reason"),
    [
        ((a_seal(1, 1), a_seal(2, 2, parent_ids=["w9"], window_number=2)), "MISSING_PARENT"),
        ((a_seal(1, 1), a_seal(2, 2, parent_ids=["w1"], window_number=3)), "NUMBER_MISMATCH"),
        ((a_seal(1, 1), a_seal(2, 1)), "DUPLICATE_SEAL"),
        ((a_seal(1, 1, hmac="x"),), "SEAL_INVALID"),
        ((a_seal(1, 1, parent_ids="w1"),), "SEAL_INVALID"),
        ((a_seal(1, 1, parent_ids=[["w1"]]),), "SEAL_INVALID"),
    ],
)
def test_a_seal_that_does_not_fit_its_parents_is_found(seals, reason):
    """By what the seals themselves say, without a key."""
    assert problems(*seals) == [reason]


@pytest.mark.parametrize(
    "data", [{}, {"generation": 1}, {"generation": True, "kept": 0, "anchored_size": 0}, {"generation": 2, "kept": -1}]
)
def test_an_acknowledged_loss_says_what_it_must(data):
    """Numbers and names, or it is no mark."""
    assert problems(an_event(1, "TRUNCATED", data, LOG_SESSION)) == ["MARK_INVALID"]


def test_a_loss_counts_from_the_first_checkpoint_of_its_generation():
    """The same entries: the earlier anchor's larger log is excused by what the next generation signed, and by nothing less."""
    data = {"generation": 2, "kept": 1, "anchored_size": 6, "cause": "CHAIN_TRUNCATED", "anchored_root": ""}
    loss = an_event(1, "TRUNCATED", data | {"reviewer_id": "r", "approval_id": APPROVAL}, LOG_SESSION)
    lines = [an_event(1, "DPE_COMPLETED", {}), loss]
    leaves = [leaf for _, leaf in lines]
    before, signed = Head(6, bytes(32), anchored=True), Head(2, merkle_root(leaves), anchored=True, generation=2)

    alone = Examiner([before]).run(lines, leaves, whole=True)
    told = Examiner([before, signed]).run(lines, leaves, whole=True)
    assert (alone.verdict, alone.losses) == ("BROKEN", ())
    assert (told.verdict, len(told.losses)) == ("TRUNCATED", 1)


def test_a_line_that_is_no_entry_is_found():
    """Even where its hash is the one that is known."""
    assert problems(parse_line(b'{"a":1}'), parse_line(json.dumps({"b": 2}).encode())) == ["MALFORMED_ENTRY"] * 2


def test_entries_behind_the_last_known_hash_are_taken_as_they_are():
    """Where a tile is gone, the signed roots alone tell."""
    lines = [parse_line(b"%d" % n) for n in range(5)]
    pairs = list(aligned(lines, [lines[0][1]], whole=False))

    assert [reason for _, _, _, reason in pairs] == [""] * 5


def test_runs_of_positions():
    """Rising positions as runs, and what of them is not covered."""
    assert runs([0, 1, 2, 5, 7, 8]) == [(0, 3), (5, 6), (7, 9)]
    assert beyond([(0, 10), (20, 30)], [(8, 25), (2, 4)]) == [(0, 2), (4, 8), (25, 30)]


@given(st.sets(st.integers(0, 30)), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=8))
def test_what_no_run_covers_is_what_is_left(positions, covered):
    """Position by position."""
    others = [(first, first + length) for first, length in covered]
    left = positions - {at for first, end in others for at in range(first, end)}

    found = beyond(runs(sorted(positions)), others)
    assert {at for first, end in found for at in range(first, end)} == left
    assert sum(end - first for first, end in found) == len(left)


def test_many_runs_are_compared_in_one_pass():
    """A bundle that somebody cut into as many pieces as it has entries holds nobody up."""
    pieces = [(2 * at, 2 * at + 1) for at in range(200_000)]
    begun = time.process_time()

    assert beyond(pieces, pieces[::-1]) == []
    assert time.process_time() - begun < 10


def test_a_seal_that_names_no_window_leads_to_no_file(tmp_path):
    """The name of a report's file is an entry's word, and an entry of a bundle is anybody's."""
    (tmp_path / "reports").mkdir()
    report_hash = _reports(LogFolder(tmp_path))

    for name in ("a\0b", "\ud800", "../x", ".", "", "w" * 300):
        assert report_hash(name) is None


def test_tiles_of_a_log_are_those_of_the_specification():
    """The example of C2SP tlog-tiles, and only what is new between two sizes."""
    found = list(tiles_between(0, 70_000))
    assert (len(found), found[-4:]) == (277, [(0, 273, 112), (1, 0, 256), (1, 1, 17), (2, 0, 1)])
    assert list(tiles_between(256, 256)) == []
    assert list(tiles_between(255, 256)) == [(0, 0, 256), (1, 0, 1)]
    assert tile_path(0, 1_234_067) == ("tile", "0", "x001", "x234", "067")
    assert tile_path(1, 0, 17) == ("tile", "1", "000.p", "17")
