"""Windows of a DAG in the audit log: fan-outs, branches and fan-ins are sealed where they belong (SPEC-004 §9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.audit.store.log_sql import SqliteLog
from interlock.domain.chain.chain import window_hmac
from tests.support.audit.audit import Attacker, Service, hash_of, keys, serving, session_id, window, window_id
from tests.support.audit.old_log import OldLog

CONFLICT, INVALID = common_pb2.REFUSAL_KIND_CONFLICT, common_pb2.REFUSAL_KIND_INVALID
A, B, C, JOIN = 11, 12, 13, 21


def a_log(database: Path) -> SqliteLog:
    """Return a log on its newest schema."""
    log = SqliteLog(database)
    log.commit([])
    return log


@pytest_asyncio.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """The service over a SQLite log."""
    async with serving(a_log(tmp_path / "audit.db")) as running:
        yield running


def node(name: int, number: int, pattern: str, parents: dict[int, str], **fields) -> audit_pb2.AppendRequest:
    """Return a request that seals window *name* after *parents*, name → HMAC."""
    return window(
        number,
        "x",
        window_id=window_id(name),
        parent_ids=[window_id(parent) for parent in parents],
        parent_hmacs=list(parents.values()),
        response_hash=hash_of(name),
        pattern=pattern,
        **fields,
    )


async def seal(service: Service, *asked, **fields) -> str:
    answer = await service.stub.Append(node(*asked, **fields))
    assert not answer.HasField("refusal"), answer.refusal
    return answer.hmac


async def diamond(service: Service) -> dict[int, str]:
    """Seal a root, three siblings, one window after the first, and a fan-in of all; return the HMACs."""
    [root] = await service.seal(1)
    made = {1: root.hmac}
    for name in (A, B, C):
        made[name] = await seal(service, name, 2, "FAN_OUT", {1: made[1]})
    made[14] = await seal(service, 14, 3, "LINEAR", {A: made[A]})
    made[JOIN] = await seal(service, JOIN, 4, "FAN_IN", {name: made[name] for name in (14, B, C)})
    return made


async def verified(service: Service) -> audit_pb2.VerifyResponse:
    return await service.stub.Verify(audit_pb2.VerifyRequest(session_id=session_id()))


def reason(answer: audit_pb2.AppendResponse) -> tuple[int, str]:
    return answer.refusal.kind, answer.refusal.reason


@pytest.mark.req("PRV-1", "PRV-2", "DAG-3")
async def test_the_dag_of_appendix_a_is_sealed_and_verifies(service):
    """Siblings chain from one HMAC, the fan-in from all three, sorted, whatever order they came in."""
    made = await diamond(service)
    found = await verified(service)
    rows = {row.window_id: row for row in service.log.chain(session_id()).windows}
    join = rows[window_id(JOIN)]

    assert (found.integrity, found.windows) == (common_pb2.CHAIN_INTEGRITY_VALID, 6)
    assert made[JOIN] == window_hmac(
        keys(session_id())(1), session_id=session_id(), window_number=4, timestamp=join.timestamp,
        response_hash=hash_of(JOIN), report_hash=join.report_hash, parent_hmacs=[made[C], made[14], made[B]],
    )  # fmt: skip
    assert found.chain_tip == made[JOIN]


@pytest.mark.req("PRV-2")
async def test_the_tip_is_the_window_sealed_last(service):
    """Of several leaves, not the one with the highest number: a branch from far back may come later."""
    made = await diamond(service)
    branch = await seal(service, 30, 2, "BRANCH", {1: made[1]})

    assert (await verified(service)).chain_tip == branch
    assert branch != made[JOIN]


@pytest.mark.req("DAG-3")
@pytest.mark.parametrize("pattern", ["FAN_OUT", "BRANCH", "FAN_IN"])
async def test_a_linear_window_is_the_first_that_continues_its_parent(service, pattern):
    """After a child of any pattern it is a replay."""
    made = await diamond(service)
    parent, number = {"FAN_OUT": (1, 2), "BRANCH": (B, 3), "FAN_IN": (C, 3)}[pattern]
    if pattern == "BRANCH":
        await seal(service, 31, 3, "BRANCH", {B: made[B]})

    answer = await service.stub.Append(node(32, number, "LINEAR", {parent: made[parent]}))

    assert reason(answer) == (CONFLICT, "CHAIN_CONFLICT")


@pytest.mark.req("DAG-3")
async def test_every_leaf_can_be_continued_linearly_once(service):
    """Two paths of a fan-out go on side by side, each by one window."""
    [root] = await service.seal(1)
    tips = {name: await seal(service, name, 2, "FAN_OUT", {1: root.hmac}) for name in (A, B)}

    answers = await asyncio.gather(
        *(service.stub.Append(node(40 + n, 3, "LINEAR", {(A, B)[n % 2]: tips[(A, B)[n % 2]]})) for n in range(8))
    )

    assert sorted(answer.refusal.reason for answer in answers) == ["", "", *["CHAIN_CONFLICT"] * 6]
    assert (await verified(service)).integrity == common_pb2.CHAIN_INTEGRITY_VALID


@pytest.mark.req("DAG-3")
async def test_many_siblings_race_and_all_are_sealed(service):
    """A fan-out has no order."""
    [root] = await service.seal(1)

    answers = await asyncio.gather(
        *(service.stub.Append(node(40 + n, 2, "FAN_OUT", {1: root.hmac})) for n in range(10))
    )

    assert {answer.refusal.reason for answer in answers} == {""}
    assert (await verified(service)).integrity == common_pb2.CHAIN_INTEGRITY_VALID


@pytest.mark.req("DAG-3")
@pytest.mark.parametrize(
    ("pattern", "parents", "expected"),
    [
        ("FAN_OUT", {}, "INVALID_PARENTS"),
        ("BRANCH", {}, "INVALID_PARENTS"),
        ("FAN_IN", {}, "INVALID_PARENTS"),
        ("FAN_OUT", {A: hash_of(1), B: hash_of(2)}, "INVALID_PARENTS"),
        ("LINEAR", {A: hash_of(1), B: hash_of(2)}, "INVALID_PARENTS"),
        ("linear", {A: hash_of(1)}, "INVALID_PATTERN"),
        ("CYCLE", {A: hash_of(1)}, "INVALID_PATTERN"),
    ],
)
async def test_a_pattern_has_its_number_of_parents(service, pattern, parents, expected):
    """Anything else is refused before the log is asked."""
    answer = await service.stub.Append(node(50, 2 if parents else 1, pattern, parents))

    assert reason(answer) == (INVALID, expected)


@pytest.mark.req("DAG-9")
async def test_a_partial_fan_in_may_be_left_with_one_parent(service):
    """The others failed and have no seal; its HMAC is chained to the one that is left (SPEC-004 §16.3)."""
    [root] = await service.seal(1)
    left = await seal(service, A, 2, "FAN_OUT", {1: root.hmac})
    await seal(service, JOIN, 3, "FAN_IN", {A: left})

    assert (await verified(service)).integrity == common_pb2.CHAIN_INTEGRITY_VALID


@pytest.mark.req("PRV-2", "DAG-3")
@pytest.mark.parametrize("foreign", [False, True])
async def test_a_fan_in_over_what_this_session_never_sealed_breaks_the_chain(service, foreign):
    """The session's state names a window that this log has not acknowledged, or one of another session by its true HMAC."""
    made = await diamond(service)
    [other] = await service.seal(1, session=2)
    request = node(51, 4, "FAN_IN", {14: made[14]})
    request.parent_ids.append(window_id(1, 2) if foreign else window_id(99))
    request.parent_hmacs.append(other.hmac)

    answer = await service.stub.Append(request)

    assert reason(answer) == (CONFLICT, "CHAIN_BROKEN")
    assert answer.refusal.metadata["fault"] == "MISSING_PARENT"


@pytest.mark.req("PRV-2", "DAG-3")
async def test_a_fan_in_with_one_wrong_hmac_breaks_the_chain(service):
    """Session state and log disagree about one parent."""
    made = await diamond(service)

    answer = await service.stub.Append(node(51, 4, "FAN_IN", {14: made[14], B: hash_of(1)}))

    assert answer.refusal.metadata["fault"] == "PARENT_HMAC_MISMATCH"


@pytest.mark.req("DAG-2")
async def test_a_fan_in_is_numbered_after_its_furthest_parent(service):
    """SPEC-004 §3.3: one more than the highest of them."""
    made = await diamond(service)

    answer = await service.stub.Append(node(51, 3, "FAN_IN", {14: made[14], B: made[B]}))

    assert reason(answer) == (INVALID, "INVALID_WINDOW_NUMBER")


async def test_the_same_window_with_another_pattern_is_a_conflict(service):
    """A repeated request is a duplicate; the pattern is part of what was asked."""
    [root] = await service.seal(1)
    made = await seal(service, A, 2, "FAN_OUT", {1: root.hmac})

    again = await service.stub.Append(node(A, 2, "FAN_OUT", {1: root.hmac}))
    other = await service.stub.Append(node(A, 2, "BRANCH", {1: root.hmac}))

    assert (again.hmac, again.duplicate) == (made, True)
    assert reason(other) == (CONFLICT, "WINDOW_SEALED_DIFFERENTLY")


async def test_a_linear_window_may_say_so_or_not():
    """A peer that does not know patterns yet asks for the same as one that does."""
    async with serving() as service:
        [root] = await service.seal(1)
        await seal(service, 2, 2, "", {1: root.hmac})
        again = await service.stub.Append(node(2, 2, "LINEAR", {1: root.hmac}))

    assert again.duplicate


@pytest.mark.req("PRV-2")
async def test_a_fault_names_its_window_among_siblings(tmp_path):
    """They share a number, so the command line tells the id too."""
    async with serving(a_log(tmp_path / "audit.db")) as service:
        await diamond(service)
        with Attacker(tmp_path / "audit.db") as attack:
            attack("UPDATE windows SET response_hash = ? WHERE window_id = ?", hash_of(9), window_id(B))
        from interlock.audit.sealing.verify import examine

        found = examine(service.log.chain(session_id()), session_id(), service.keyring)

    assert {(fault.index, fault.window_id) for fault in found.faults} == {(2, window_id(B))}


# --- deferred facts

FACTS = [
    common_pb2.Fact(id="f1", content="Die Frist endet am 3. März.", importance=0.75),
    common_pb2.Fact(id="f2", content="Zweite Tatsache."),
]


async def contents(service: Service, *numbers: int) -> audit_pb2.GetContentsResponse:
    names = [window_id(number) for number in numbers]
    return await service.stub.GetContents(audit_pb2.GetContentsRequest(session_id=session_id(), window_ids=names))


@pytest.mark.req("DAG-6")
async def test_deferred_facts_are_kept_with_the_content(service):
    """In order, whole; a window may defer facts and say nothing, or say something and defer none."""
    first = await service.stub.Append(window(1, content="Said.", deferred_facts=FACTS))
    second = await service.stub.Append(window(2, first.hmac, deferred_facts=FACTS[:1]))
    await service.stub.Append(window(3, second.hmac, content="Alone."))

    found = await contents(service, 1, 2, 3)

    assert [(c.window_id, c.text, list(c.deferred_facts)) for c in found.contents] == [
        (window_id(1), "Said.", FACTS),
        (window_id(2), "", FACTS[:1]),
        (window_id(3), "Alone.", []),
    ]


@pytest.mark.req("DAG-6")
async def test_the_file_holds_no_word_of_a_deferred_fact(tmp_path):
    """They are encrypted with the content."""
    async with serving(a_log(tmp_path / "audit.db")) as service:
        await service.stub.Append(window(1, deferred_facts=FACTS))
        stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())

    assert b"Frist" not in stored
    assert b"Tatsache" not in stored


async def test_other_deferred_facts_are_another_request(service):
    """Neither order nor boundaries can be moved."""
    await service.stub.Append(window(1, content="Said.", deferred_facts=FACTS))

    again = await service.stub.Append(window(1, content="Said.", deferred_facts=FACTS))
    others = [
        await service.stub.Append(window(1, content="Said.", deferred_facts=facts))
        for facts in ([], FACTS[:1], FACTS[::-1])
    ]

    assert again.duplicate
    assert {answer.refusal.reason for answer in others} == {"WINDOW_SEALED_DIFFERENTLY"}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ([common_pb2.Fact(id="f", content="x" * 4_194_304)], "CONTENT_TOO_LARGE"),
        ([common_pb2.Fact(id="f", importance=float("nan"))], "INVALID_NUMBER"),
    ],
)
async def test_bad_deferred_facts_are_refused(service, facts, expected):
    """And nothing of the window is sealed."""
    answer = await service.stub.Append(window(1, deferred_facts=facts))

    assert answer.refusal.reason == expected
    assert service.log.chain(session_id()).windows == ()


# --- what older versions wrote


async def test_a_request_of_an_older_version_keeps_its_hash(service):
    """A seal that was asked for before the change and again after it is a duplicate, not a conflict."""
    await service.stub.Append(window(1, content="Said. ü"))
    [sealed] = [e for e in service.log.chain(session_id()).events if e.event_type == "WINDOW_SEALED"]

    assert json.loads(sealed.data_json)["request_hash"] == (
        "sha256:a5af7e2a495ab090d65f843ac956afcff09a78f9471b61ae3a4e06780f38c440"
    )


@pytest.mark.req("PRV-2")
async def test_a_log_of_the_second_schema_goes_on(tmp_path):
    """The third adds an index: what was sealed before verifies, and linear chains go on as fan-outs."""
    database = tmp_path / "audit.db"
    with OldLog(database, schema=2) as old:
        second = old.seal(2, old.seal(1))

    async with serving(a_log(database)) as service:
        await seal(service, A, 3, "FAN_OUT", {2: second})
        await seal(service, B, 3, "FAN_OUT", {2: second})
        found = await verified(service)

    assert (found.integrity, found.windows) == (common_pb2.CHAIN_INTEGRITY_VALID, 4)
