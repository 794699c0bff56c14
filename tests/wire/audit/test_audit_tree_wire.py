"""The walk through an agent tree: whatever is broken in it is found, and the first break is named (SPEC-012 §8.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log_sql import SqliteLog
from tests.support.audit.audit import Attacker, Service, event, hash_of, serving, session_id, window_id
from tests.support.audit.trails import FIRST, HELPER, LEGAL, ROOT, TAX, Spoiled, grow

BROKEN, PARTIAL, VALID = "BROKEN", "PARTIAL", "VALID"


def a_log(database: Path) -> SqliteLog:
    """Return a log on its newest schema."""
    log = SqliteLog(database)
    log.commit([])
    return log


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "audit.db"


@pytest_asyncio.fixture
async def service(database: Path) -> AsyncIterator[Service]:
    async with serving(a_log(database)) as running:
        yield running


async def verify(service: Service, session: int = ROOT) -> audit_pb2.VerifyTreeResponse:
    return await service.stub.VerifyTree(audit_pb2.VerifyTreeRequest(session_id=session_id(session)))


def integrity(found: audit_pb2.VerifyTreeResponse) -> str:
    return common_pb2.ChainIntegrity.Name(found.integrity).removeprefix("CHAIN_INTEGRITY_")


def faults(found: audit_pb2.VerifyTreeResponse) -> list[tuple[str, int, str]]:
    """Return kind, number of the child and fault of every link that does not hold."""
    return [(link.kind, int(link.child_session_id[-2:], 16), link.fault) for link in found.links if link.fault]


@pytest.mark.req("PRV-4")
async def test_a_sound_tree_is_valid(service):
    """Every session after its parent, every link in the order of the walk, and the sum of all charges."""
    await grow(service)
    found = await verify(service)

    assert (integrity(found), found.broken, found.charged_micros) == (VALID, "", 10 * 150_000)
    assert [(s.session_id, s.parent_session_id, s.agent_type, s.loop_depth) for s in found.sessions] == [
        (session_id(ROOT), "", "orchestrator", 0),
        (session_id(LEGAL), session_id(ROOT), "specialist_legal", 1),
        (session_id(HELPER), session_id(LEGAL), "", 2),
        (session_id(TAX), session_id(ROOT), "specialist_tax", 1),
    ]
    assert [(link.kind, link.parent_session_id, link.child_session_id, link.window_id) for link in found.links] == [
        ("DELEGATED", session_id(ROOT), session_id(LEGAL), ""),
        ("DELEGATED", session_id(ROOT), session_id(TAX), ""),
        ("SUB_AGENT_RESULT", session_id(ROOT), session_id(LEGAL), window_id(2, ROOT)),
        ("SUB_AGENT_RESULT", session_id(ROOT), session_id(TAX), window_id(2, ROOT)),
        ("DELEGATED", session_id(LEGAL), session_id(HELPER), ""),
        ("SUB_AGENT_RESULT", session_id(LEGAL), session_id(HELPER), window_id(2, LEGAL)),
    ]
    assert faults(found) == []


async def test_a_single_session_is_a_tree_too(service):
    """A root without children; one window alone has nothing to chain from."""
    await service.seal(1)
    first = await verify(service)
    await service.seal(2, session=9)

    assert (integrity(first), len(first.sessions)) == ("UNVERIFIED", 1)
    assert integrity(await verify(service, 9)) == VALID


# --- somebody with the file, but without a key

DELEGATED, RESULT = "DELEGATED", "SUB_AGENT_RESULT"

Attack = Callable[[Attacker], None]


def edit(statement: str, *values: object) -> Attack:
    return lambda attack: attack(statement, *values)


def without(session: int) -> Attack:
    """Delete every trace of a session."""

    def attacked(attack: Attacker) -> None:
        attack(
            "DELETE FROM reports WHERE window_id IN (SELECT window_id FROM windows WHERE session_id = ?)",
            session_id(session),
        )
        for table in ("windows", "events"):
            attack(f"DELETE FROM {table} WHERE session_id = ?", session_id(session))

    return attacked


def cut(session: int, windows: int) -> Attack:
    """Cut off the end of a session's trail, all after its first *windows* windows: its own chain then still verifies."""

    def attacked(attack: Attacker) -> None:
        of_later = "SELECT window_id FROM windows WHERE session_id = ? AND window_number > ?"
        [(last,)] = attack.connection.execute(
            "SELECT sequence FROM events WHERE session_id = ? AND window_id = ? AND event_type = 'WINDOW_SEALED'",
            (session_id(session), window_id(windows, session)),
        ).fetchall()
        attack(f"DELETE FROM reports WHERE window_id IN ({of_later})", session_id(session), windows)
        attack("DELETE FROM windows WHERE session_id = ? AND window_number > ?", session_id(session), windows)
        attack("DELETE FROM events WHERE session_id = ? AND sequence > ?", session_id(session), last)

    return attacked


ATTACKS = {
    "event of a child altered": (
        edit(
            "UPDATE events SET data_json = '{}' WHERE session_id = ? AND event_type = 'DISPATCH_COMPLETED'",
            session_id(TAX),
        ),
        BROKEN,
        [(DELEGATED, TAX, "CHILD_BROKEN"), (RESULT, TAX, "CHILD_BROKEN")],
        "DELEGATED of {TAX} by {ROOT}: CHILD_BROKEN",
    ),
    "event of a grandchild altered": (
        edit("UPDATE events SET severity = 1 WHERE session_id = ? AND sequence = 4", session_id(HELPER)),
        BROKEN,
        [(DELEGATED, HELPER, "CHILD_BROKEN"), (RESULT, HELPER, "CHILD_BROKEN")],
        "DELEGATED of {HELPER} by {LEGAL}: CHILD_BROKEN",
    ),
    "window of a child deleted": (
        edit("DELETE FROM windows WHERE window_id = ?", window_id(1, LEGAL)),
        PARTIAL,
        [(DELEGATED, LEGAL, "CHILD_INCOMPLETE"), (RESULT, LEGAL, "CHILD_INCOMPLETE")],
        "DELEGATED of {LEGAL} by {ROOT}: CHILD_INCOMPLETE",
    ),
    "report of a child deleted": (
        edit("DELETE FROM reports WHERE window_id = ?", window_id(1, TAX)),
        PARTIAL,
        [(DELEGATED, TAX, "CHILD_INCOMPLETE"), (RESULT, TAX, "CHILD_INCOMPLETE")],
        "DELEGATED of {TAX} by {ROOT}: CHILD_INCOMPLETE",
    ),
    "seal of a child changed": (
        edit("UPDATE windows SET hmac = ? WHERE window_id = ?", hash_of(5), window_id(2, LEGAL)),
        BROKEN,
        [(DELEGATED, LEGAL, "CHILD_BROKEN"), (RESULT, LEGAL, "CHILD_BROKEN")],
        "DELEGATED of {LEGAL} by {ROOT}: CHILD_BROKEN",
    ),
    "end of a child cut off": (
        cut(HELPER, 1),
        BROKEN,
        [(RESULT, HELPER, "RESULT_MISMATCH")],
        "SUB_AGENT_RESULT of {HELPER} by {LEGAL} in window " + window_id(2, LEGAL) + ": RESULT_MISMATCH",
    ),
    "child deleted": (
        without(TAX),
        BROKEN,
        [(DELEGATED, TAX, "CHILD_MISSING"), (RESULT, TAX, "CHILD_MISSING")],
        "DELEGATED of {TAX} by {ROOT}: CHILD_MISSING",
    ),
    "event removed from the parent": (
        edit("DELETE FROM events WHERE session_id = ? AND event_type = 'SUB_AGENT_RESULT'", session_id(LEGAL)),
        BROKEN,
        [(DELEGATED, LEGAL, "CHILD_BROKEN"), (RESULT, LEGAL, "CHILD_BROKEN"), (RESULT, HELPER, "RESULT_NOT_RECORDED")],
        "DELEGATED of {LEGAL} by {ROOT}: CHILD_BROKEN",
    ),
    "event removed from the root": (
        edit(
            "DELETE FROM events WHERE session_id = ? AND event_type = 'SUB_AGENT_STARTED' AND data_json LIKE ?",
            session_id(ROOT),
            f"%{session_id(TAX)}%",
        ),
        BROKEN,
        [(RESULT, TAX, "NOT_DELEGATED")],
        "session {ROOT}: event 5: SEQUENCE_GAP",
    ),
    "end of the root cut off": (
        cut(ROOT, 1),
        BROKEN,
        [(DELEGATED, LEGAL, "NOT_RECORDED"), (DELEGATED, TAX, "NOT_RECORDED")],
        "DELEGATED of {LEGAL} by {ROOT}: NOT_RECORDED",
    ),
    "report of the consuming window changed": (
        edit("UPDATE reports SET body = zeroblob(99) WHERE window_id = ?", window_id(2, ROOT)),
        BROKEN,
        [(RESULT, LEGAL, "NOT_COVERED"), (RESULT, TAX, "NOT_COVERED")],
        "session {ROOT}: window 2: REPORT_HASH_MISMATCH",
    ),
}


@pytest.mark.req("PRV-4")
@pytest.mark.parametrize(("attack", "verdict", "expected", "named"), ATTACKS.values(), ids=ATTACKS)
async def test_what_was_tampered_with_is_found_and_named(service, database, attack, verdict, expected, named):
    """Each edit by itself; the first break is told in words, with the sessions that it lies between."""
    await grow(service)
    with Attacker(database) as attacker:
        attack(attacker)

    found = await verify(service)

    names = {name: session_id(n) for name, n in {"ROOT": ROOT, "LEGAL": LEGAL, "TAX": TAX, "HELPER": HELPER}.items()}
    assert (integrity(found), faults(found)) == (verdict, expected)
    assert found.broken.startswith(named.format(**names))


# --- a writer whose chains are sound and whose links are not

WRONG = {
    "another tip": (Spoiled(results={LEGAL: {"chain_tip": hash_of(7)}}), (RESULT, LEGAL, "TIP_MISMATCH")),
    "tip before the result": (Spoiled(results={LEGAL: {"chain_tip": FIRST}}), (RESULT, LEGAL, "TIP_MISMATCH")),
    "no tip": (Spoiled(results={LEGAL: {"chain_tip": ""}}), (RESULT, LEGAL, "TIP_MISMATCH")),
    "another window": (Spoiled(results={LEGAL: {"window_id": window_id(1, LEGAL)}}), (RESULT, LEGAL, "RESULT_MISMATCH")),
    "window of another session": (Spoiled(results={TAX: {"window_id": window_id(1, LEGAL)}}), (RESULT, TAX, "RESULT_MISMATCH")),
    "another HMAC": (Spoiled(results={LEGAL: {"hmac": hash_of(7)}}), (RESULT, LEGAL, "RESULT_MISMATCH")),
    "report without the result": (Spoiled(not_covered=frozenset({HELPER})), (RESULT, HELPER, "NOT_COVERED")),
    "report with another tip": (Spoiled(linked={TAX: {"chain_tip": hash_of(7)}}), (RESULT, TAX, "NOT_COVERED")),
    "result without its event": (Spoiled(not_recorded=frozenset({TAX})), (RESULT, TAX, "RESULT_NOT_RECORDED")),
    "child of another parent": (
        Spoiled(created={TAX: {"parent_session_id": session_id(LEGAL)}}), (DELEGATED, TAX, "NOT_LINKED"),
    ),
    "child of another tree": (
        Spoiled(created={TAX: {"root_session_id": session_id(9)}}), (DELEGATED, TAX, "NOT_LINKED"),
    ),
    "child of nobody": (
        Spoiled(created={TAX: {"parent_session_id": "", "root_session_id": ""}}), (DELEGATED, TAX, "NOT_LINKED"),
    ),
    "under another grant": (Spoiled(created={TAX: {"grant_id": "x"}}), (DELEGATED, TAX, "GRANT_MISMATCH")),
    "as another agent type": (Spoiled(started={TAX: {"agent_type": "x"}}), (DELEGATED, TAX, "GRANT_MISMATCH")),
    "depth not counted up": (Spoiled(created={HELPER: {"loop_depth": 1}}), (DELEGATED, HELPER, "DEPTH_MISMATCH")),
    "depth is no number": (Spoiled(created={HELPER: {"loop_depth": "2"}}), (DELEGATED, HELPER, "DEPTH_MISMATCH")),
    "start not recorded": (Spoiled(not_started=frozenset({TAX})), (RESULT, TAX, "NOT_DELEGATED")),
    "start names nobody": (Spoiled(started={TAX: {"session_id": 7}}), (DELEGATED, 0, "CHILD_MISSING")),
}  # fmt: skip


@pytest.mark.req("PRV-3", "PRV-4", "AGT-4")
@pytest.mark.parametrize(("spoiled", "expected"), WRONG.values(), ids=WRONG)
async def test_a_link_that_was_written_wrongly_is_found_and_named(service, spoiled, expected):
    """Every chain verifies by itself, so only the walk can see it."""
    await grow(service, spoiled)

    found = await verify(service)

    listed = [
        (link.kind, int(link.child_session_id[-2:], 16) if link.child_session_id.startswith("crp_") else 0, link.fault)
        for link in found.links
        if link.fault
    ]
    assert all(trail.chain.integrity != common_pb2.CHAIN_INTEGRITY_BROKEN for trail in found.sessions)
    assert (integrity(found), listed[0]) == (BROKEN, expected)
    assert expected[2] in found.broken


@pytest.mark.req("PRV-4")
async def test_a_child_of_another_parent_is_not_walked_as_ones_own(service):
    """Its charges are counted once, below the parent that it names itself, if that one started it."""
    await grow(service, Spoiled(created={TAX: {"parent_session_id": session_id(LEGAL)}}))

    found = await verify(service)

    assert [s.session_id for s in found.sessions].count(session_id(TAX)) == 1
    assert found.charged_micros == 10 * 150_000


@pytest.mark.req("PRV-4")
async def test_a_session_of_another_tree_is_not_counted_in(service):
    """A parent that says that it started it does not make it its own: its charges are another tree's."""
    await grow(service, Spoiled(created={TAX: {"root_session_id": session_id(9)}}))

    found = await verify(service)

    assert session_id(TAX) not in {s.session_id for s in found.sessions}
    assert found.charged_micros == 9 * 150_000


async def test_a_session_that_starts_itself_ends_the_walk(service):
    """A forged event cannot make it walk for ever."""
    await grow(service, Spoiled(started={TAX: {"session_id": session_id(ROOT)}}))

    found = await verify(service)

    assert (DELEGATED, ROOT, "NOT_LINKED") in faults(found)
    assert len(found.sessions) == 4


@pytest.mark.req("PRV-4")
async def test_a_break_is_an_incident_of_its_session(service, database):
    """A CRITICAL event in the trail of the session that is broken, and in no other."""
    await grow(service)
    with Attacker(database) as attack:
        attack("UPDATE events SET severity = 1 WHERE session_id = ? AND sequence = 2", session_id(TAX))

    await asyncio.gather(verify(service), verify(service))

    chains = {n: service.log.chain(session_id(n)).events for n in (ROOT, LEGAL, TAX, HELPER)}
    assert {n: [e.event_type for e in of].count("CHAIN_BROKEN") for n, of in chains.items()} == {1: 0, 2: 0, 3: 1, 4: 0}


@pytest.mark.parametrize(
    ("session", "kind", "reason"),
    [
        ("crp_sess_x", common_pb2.REFUSAL_KIND_INVALID, "INVALID_ID"),
        (session_id(77), common_pb2.REFUSAL_KIND_NOT_FOUND, "SESSION_NOT_FOUND"),
        (session_id(LEGAL), common_pb2.REFUSAL_KIND_INVALID, "NOT_A_ROOT"),
    ],
)
async def test_a_tree_is_named_by_its_root(service, session, kind, reason):
    """For a session below it the root is named."""
    await grow(service)

    answer = await service.stub.VerifyTree(audit_pb2.VerifyTreeRequest(session_id=session))

    assert (answer.refusal.kind, answer.refusal.reason) == (kind, reason)
    if reason == "NOT_A_ROOT":
        assert answer.refusal.metadata["root_session_id"] == session_id(ROOT)


async def test_trees_are_apart(service):
    """A session that mentions this root elsewhere in its data is none of its tree's."""
    await grow(service)
    await service.record(event("SESSION_CREATED", f'{{"note":"{session_id(ROOT)}"}}'), session=40)

    found = await verify(service)

    assert (integrity(found), len(found.sessions)) == (VALID, 4)


@pytest.mark.req("PRV-3", "PRV-4")
async def test_a_report_that_was_mended_afterwards_covers_nothing(service, database):
    """Only the bytes that were sealed vouch for a result, even where other bytes would say the right thing."""
    tree = await grow(service, Spoiled(linked={TAX: {"chain_tip": hash_of(7)}}))
    with Attacker(database) as attack:
        attack(
            "UPDATE reports SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB) WHERE window_id = ?",
            hash_of(7), tree.tips[TAX].hmac, window_id(2, ROOT),
        )  # fmt: skip

    found = await verify(service)

    assert (RESULT, TAX, "NOT_COVERED") in faults(found)
