"""A-09: ids that a client chooses, or guesses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from interlock.api.session.v1 import session_pb2 as pb
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.runtime.rpc.channel import LocalChannel
from interlock.runtime.settings.model import Settings
from interlock.session.wiring import open_service
from tests.support.session.session_client import POLICY, SCOPE, payload, sha
from tests.support.sidecar.sidecar import token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-1")

CHOSEN = "crp_sess_" + "0" * 32
SESSIONS = 10_000
BITS = 128


@pytest.mark.parametrize("name", ["crp-context-session-id", "x-session-id", "crp-session-id", "mcp-session-id"])
async def test_a09_a_client_cannot_choose_the_id_of_its_session(sidecar, name):
    """An id in a header makes no session of that id: it is refused, or it is a name like any other."""
    response = await sidecar.chat(headers={name: CHOSEN})

    assert CHOSEN not in str(response.headers) + response.text
    assert response.status_code == {"crp-context-session-id": 404, "crp-session-id": 400}.get(name, 200)


async def test_a09_an_id_alone_grants_nothing(sidecar, provider):
    """The id of a living session, in every place a client can put it, continues nothing and shows nothing."""
    session = (await sidecar.chat()).headers["crp-context-session-id"]
    shown = await sidecar.client.get(f"/crp/v3/session/{session}")
    spoken = await sidecar.chat(headers={"x-session-id": session})
    body = await sidecar.chat(session_id=session, metadata={"session_id": session})

    assert shown.status_code in {401, 404}
    assert spoken.headers["crp-context-session-id"] != session
    assert body.status_code != 200 or body.headers["crp-context-session-id"] != session


async def test_a09_ids_are_minted_here_and_cannot_be_guessed(tmp_path):
    """Of 10,000 sessions no id or nonce repeats, and each of their 128 bits is as often 1 as 0, alone and beside the next."""
    service = await open_service(Settings(redis_url="memory://", state_dir=tmp_path))
    stub = SessionServiceStub(LocalChannel(SessionService=service.servicer))
    ask = pb.StartSessionRequest(scope=SCOPE, policy_text=POLICY, policy_hash=sha(POLICY))
    ids, nonces = [], []
    with capture_logs():  # one line for each of them says nothing more
        for _ in range(SESSIONS):
            said = payload((await stub.StartSession(ask)).token)
            ids.append(int(said["sid"].removeprefix("crp_sess_"), 16))
            nonces.append(said["nonce"])
    await service.close()

    assert len(set(ids)) == len(set(nonces)) == SESSIONS
    # Six standard deviations of a fair coin: a chance of 1 in 10^6 over all of these bits.
    slack = 6 * (SESSIONS**0.5) / 2
    steps = [one ^ other for one, other in itertools.pairwise(ids)]
    for ones in (*counts(ids), *counts(steps)):
        assert abs(ones - SESSIONS / 2) < slack


def counts(numbers: list[int]) -> Iterator[int]:
    """Yield for each bit how many of the numbers have it."""
    for bit in range(BITS):
        yield sum(number >> bit & 1 for number in numbers)


async def test_a09_every_id_that_a_client_sees_has_128_bits(sidecar):
    """Session, window and continuation are 32 hex digits, and nothing of one is in another."""
    first = await sidecar.chat()
    said = json.dumps(payload(token_of(first)))
    names = ("crp-context-session-id", "crp-context-continuation-id", "crp-compliance-audit-trail-id")
    ids = [first.headers[name].rsplit("_", 1)[1] for name in names if name in first.headers]

    assert len(ids) >= 2
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in ids)
    assert len(set(ids)) == len(ids)
    assert said.count(ids[0]) == 1
