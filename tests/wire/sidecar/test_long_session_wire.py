"""A conversation of many turns through the served sidecar: what it is compared with, and what of its record is looked at."""

from __future__ import annotations

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from tests.support.audit.audit import Attacker
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import RunningSidecar, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import fan_in, onward, window_of

running, provider, dpe = answering.running, answering.provider, answering.dpe

WITHIN = 8


async def turns(sidecar: RunningSidecar, count: int) -> list:
    """Ask *count* questions in one session."""
    found = [await sidecar.chat("0?")]
    for number in range(1, count):
        found.append(await sidecar.chat(f"{number}?", token=token_of(found[-1])))
    assert {each.status_code for each in found} == {200}
    return found


@pytest.fixture
async def sidecar(tmp_path, running, provider, dpe):
    del provider
    settings = {"compared_windows": 4, "audit_reread_windows": WITHIN}
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, **settings) as one:
        yield one


@pytest.mark.req("ATT-4")
async def test_an_answer_is_compared_with_the_latest_windows_only(sidecar, dpe):
    """What is sent to the judge does not grow with the conversation, and the order stays."""
    answers = await turns(sidecar, 9)

    latest = [window_of(each) for each in answers]
    assert [one.window_id for one in dpe.asked[-1].prior] == latest[4:8]
    assert [len(asked.prior) for asked in dpe.asked] == [0, 1, 2, 3, 4, 4, 4, 4, 4]


@pytest.mark.req("ATT-4", "DAG-3")
async def test_what_a_fan_in_merges_is_there_however_old_it_is(sidecar, dpe):
    """An old branch that is merged is material, though many windows came after it."""
    first = await sidecar.chat("All?")
    old = await sidecar.chat("A?", token=token_of(first), headers={**onward(first), "crp-context-strategy": "fan-out"})
    young = await sidecar.chat(
        "B?", token=token_of(first), headers={**onward(first), "crp-context-strategy": "fan-out"}
    )
    for number in range(6):
        young = await sidecar.chat(f"{number}?", token=token_of(young), headers=onward(young))
    merged = await fan_in(sidecar, [old, young])

    assert merged.status_code == 200, merged.text
    assert {one.source_id for one in dpe.asked[-1].merged} == {window_of(old), window_of(young)}


@pytest.mark.req("ATT-4", "PRV-2")
@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE windows SET charge_micros = 1 WHERE window_number = 2",
        "UPDATE events SET severity = 5 WHERE sequence = 3",
        "UPDATE events SET hmac = (SELECT hmac FROM events WHERE sequence = 4) WHERE sequence = 3",
        "UPDATE reports SET body = x'00' WHERE window_id = (SELECT window_id FROM windows WHERE window_number = 7)",
    ],
    ids=["a window", "an event", "an HMAC", "a report"],
)
async def test_a_tampered_old_entry_ends_a_long_session_within_the_bound(sidecar, tampering):
    """A-27 where the log is in use: the session is refused after at most so many windows."""
    answers = await turns(sidecar, 14)
    with Attacker(sidecar.settings.state_dir / "audit.db") as attack:
        attack(tampering)

    last = answers[-1]
    for _ in range(WITHIN + 1):
        last = await sidecar.chat("More?", token=token_of(last))
        if last.status_code != 200:
            break

    assert (last.status_code, reason_of(last)) == (409, "CHAIN_BROKEN")


@pytest.mark.req("ATT-4", "PRV-2")
async def test_verify_looks_at_everything_and_ends_the_session(sidecar):
    """What is asked for is not shortened; the recorded break is new to the next call, which is refused."""
    answers = await turns(sidecar, 12)
    session_id = answers[0].headers["crp-context-session-id"]
    with Attacker(sidecar.settings.state_dir / "audit.db") as attack:
        attack("UPDATE events SET severity = 5 WHERE sequence = 1")

    verdict = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))
    refused = await sidecar.chat("More?", token=token_of(answers[-1]))

    assert verdict.integrity == common_pb2.CHAIN_INTEGRITY_BROKEN
    assert (refused.status_code, reason_of(refused)) == (409, "CHAIN_BROKEN")


@pytest.mark.req("ATT-4", "PRV-2")
async def test_a_swapped_answer_is_never_compared_with(sidecar):
    """The text of an earlier answer is held against what was verified, every time that it is read."""
    answers = await turns(sidecar, 12)
    with Attacker(sidecar.settings.state_dir / "audit.db") as attack:
        attack(
            "UPDATE contents SET sealed = (SELECT sealed FROM contents WHERE window_id = ?) WHERE window_id = ?",
            window_of(answers[0]), window_of(answers[-1]),
        )  # fmt: skip

    refused = await sidecar.chat("More?", token=token_of(answers[-1]))

    assert (refused.status_code, reason_of(refused)) == (503, "CONTENT_UNREADABLE")
