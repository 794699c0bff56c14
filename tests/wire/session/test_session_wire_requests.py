"""The session service over real gRPC on a real Valkey: settling, reading, ending, and bad requests."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from interlock.api.session.v1 import session_pb2 as pb
from interlock.domain.errors import Kind, Refused
from interlock.runtime.settings.model import Settings
from interlock.session.wiring import open_service
from tests.support.session.session_client import (
    HIGH,
    MASTER,
    POLICY,
    SCOPE,
    asking,
    opening,
    payload,
    serving,
    settling,
    sha,
)


@pytest.fixture
def settings(redis_url, tmp_path):
    return Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), session_port=0)


@pytest.fixture
async def client(settings):
    async with serving(settings) as address, asking(address) as made:
        yield made


# Settling


@pytest.mark.req("BUD-8", "BUD-5")
async def test_a_window_settles_once_over_the_network(client):
    """Sixty-four clients commit the same window: one charge, one token's worth of state, sixty-three duplicates."""
    window = await client.open((await client.start()).token)
    answers = await asyncio.gather(*(client.settle(window) for _ in range(64)))

    assert sum(not each.duplicate for each in answers) == 1
    assert {(each.session_budget_micros, each.continuation_id) for each in answers} == {
        (850_000, answers[0].continuation_id)
    }


@pytest.mark.req("BUD-4")
async def test_a_policy_can_be_replaced_and_never_be_taken_away(client):
    """A settle with a tighter policy binds the next token to it; one without leaves it."""
    tighter = "halt-on HIGH"
    token = (await client.start()).token
    done = await client.settle(await client.open(token), policy_text=tighter, policy_hash=sha(tighter))
    window = await client.open(done.token)
    later = await client.settle(window, policy_hash=sha(""))

    assert (window.policy_text, payload(done.token)["pol"]) == (tighter, sha(tighter))
    assert payload(later.token)["pol"] == sha(tighter)


BAD_SETTLES = {
    "session_id": "crp_sess_1",
    "root_session_id": "il:{x}",
    "window_id": "crp_win_" + "A" * 32,
    "parent_ids": ["crp_win_\n" + "0" * 31],
    "window_number": 0,
    "risk_level": 0,
    "charge_micros": -1,
    "ceiling_micros": 1_000_001,
    "hmac": "sha256:1",
    "timestamp": "yesterday",
    "response_hash": "",
    "envelope_etag": "etag",
    "quality_tier": "E",
    "strategy": "improvise",
    "token_count": -1,
    "status": "FINE",
    "policy_text": "halt-on HIGH",
    "policy_hash": sha("other"),
}


@pytest.mark.parametrize(("field", "value"), list(BAD_SETTLES.items()), ids=list(BAD_SETTLES))
async def test_a_settle_with_a_wrong_field_is_refused_and_charges_nothing(client, field, value):
    """Wrong ids, ranges, hashes, enumerations and a policy that does not match its hash: 400, and the window stays open."""
    token = (await client.start()).token
    window = await client.open(token)
    no = await client.refused("CommitWindow", settling(window, **{field: value}))

    assert no.kind is Kind.INVALID
    assert no.reason in {"INVALID_FIELD", "INVALID_ID", "POLICY_HASH_MISMATCH"}
    assert (await client.settle(window)).session_budget_micros == 850_000


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"charge_micros": 500_001}, "INVALID_FIELD"),
        ({"charge_micros": 2**62}, "INVALID_FIELD"),
        ({"ceiling_micros": -1}, "INVALID_FIELD"),
        ({"risk_level": 9}, "INVALID_FIELD"),
        ({"parent_ids": ["crp_win_" + "0" * 32] * 2}, "INVALID_FIELD"),
        ({"policy_text": "a\u241fb", "policy_hash": sha("a\u241fb")}, "INVALID_POLICY_TEXT"),
        ({"policy_text": "a\nb", "policy_hash": sha("a\nb")}, "INVALID_POLICY_TEXT"),
        ({"policy_text": "a" * 16_385, "policy_hash": sha("a" * 16_385)}, "INVALID_POLICY_TEXT"),
    ],
)
async def test_a_settle_out_of_bounds_is_refused(client, fields, reason):
    """Numbers beyond their range, a parent named twice, texts with separators or without end."""
    window = await client.open((await client.start()).token)

    assert (await client.refused("CommitWindow", settling(window, **fields))).reason == reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"scope": ""}, "INVALID_SCOPE"),
        ({"scope": "k" * 129}, "INVALID_SCOPE"),
        ({"scope": "a\u241fb"}, "INVALID_SCOPE"),
        ({"scope": "a\x00b"}, "INVALID_SCOPE"),
        ({"scope": "a\u202eb"}, "INVALID_SCOPE"),
        ({"strategy": "improvise"}, "INVALID_FIELD"),
        ({"policy_hash": ""}, "POLICY_HASH_MISMATCH"),
        ({"policy_hash": sha("something looser")}, "POLICY_HASH_MISMATCH"),
    ],
)
async def test_a_start_with_a_wrong_field_is_refused(client, fields, reason):
    """Scopes are printable and bounded; a policy comes with its own hash."""
    with pytest.raises(Refused) as no:
        await client.start(**fields)

    assert (no.value.kind, no.value.reason) == (Kind.INVALID, reason)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"continuation_id": "crp_cont_*"}, "INVALID_ID"),
        ({"lease_ms": -1}, "INVALID_FIELD"),
        ({"lease_ms": 3_600_001}, "INVALID_FIELD"),
        ({"scope": ""}, "INVALID_SCOPE"),
    ],
)
async def test_an_opening_with_a_wrong_field_is_refused(client, fields, reason):
    """What cannot be an id, a lease or a scope is 400 before anything is looked up."""
    no = await client.refused("OpenWindow", opening((await client.start()).token, **fields))

    assert (no.kind, no.reason) == (Kind.INVALID, reason)


# Reading and ending


@pytest.mark.parametrize(
    ("fields", "kind", "reason"),
    [
        ({}, Kind.INVALID, "SESSION_NOT_NAMED"),
        ({"session_id": "crp_sess_" + "0" * 32}, Kind.NOT_FOUND, "SESSION_NOT_FOUND"),
        ({"session_id": "*"}, Kind.INVALID, "INVALID_ID"),
        ({"token": "x"}, Kind.UNAUTHENTICATED, "TOKEN_MALFORMED"),
    ],
)
async def test_a_session_that_cannot_be_named_is_not_shown(client, fields, kind, reason):
    """Nothing named, nothing there, no id, no token."""
    no = await client.refused("GetSession", pb.GetSessionRequest(**fields))

    assert (no.kind, no.reason) == (kind, reason)


async def test_another_scopes_session_does_not_exist(client):
    """A caller who knows an id learns nothing with a key that is not the session's."""
    session = (await client.start()).session.session_id

    assert (await client.session(session_id=session)).scope == SCOPE
    no = await client.refused("GetSession", pb.GetSessionRequest(session_id=session, scope="key_other"))
    assert (no.kind, no.reason) == (Kind.NOT_FOUND, "SESSION_NOT_FOUND")


async def test_a_token_and_another_sessions_id_do_not_go_together(client):
    """Naming two sessions is malformed."""
    mine, other = await client.start(), await client.start()
    request = pb.GetSessionRequest(token=mine.token, session_id=other.session.session_id)

    assert (await client.refused("GetSession", request)).reason == "SESSION_ID_MISMATCH"


async def test_a_session_ends_once_and_for_good(client):
    """Terminate twice: ended, had ended; nothing opens afterwards."""
    token = (await client.start()).token
    request = pb.TerminateSessionRequest(token=token, scope=SCOPE)
    first, second = [await client.call("TerminateSession", request) for _ in range(2)]

    assert (first.changed, second.changed) == (True, False)
    assert first.session.status == pb.SESSION_STATUS_TERMINATED
    assert (await client.refused("OpenWindow", opening(token))).reason == "SESSION_TERMINATED"


async def test_sessions_can_be_kept_in_memory(settings):
    """memory:// needs no server, is ready at once, and follows the same rule."""
    service = await open_service(settings.model_copy(update={"redis_url": "memory://"}))
    started = await service.servicer.StartSession(pb.StartSessionRequest(scope=SCOPE), None)
    opened = await service.servicer.OpenWindow(opening(started.token), None)
    settled = await service.servicer.CommitWindow(settling(opened.window), None)
    replayed = await service.servicer.OpenWindow(opening(started.token), None)
    missing = await service.unready_dependencies()
    await service.close()

    assert (settled.session_budget_micros, replayed.refusal.reason, missing) == (850_000, "TOKEN_REPLAYED", {})


@pytest.mark.parametrize("url", ["", "redis://:secret@h:x"])
async def test_a_service_without_a_usable_store_is_not_opened(settings, url):
    """No URL, or one that cannot be read: refused before anything is served, without the password."""
    with pytest.raises(Refused) as no:
        await open_service(settings.model_copy(update={"redis_url": url}))

    assert no.value.reason == ("REDIS_URL_INVALID" if url else "REDIS_URL_MISSING")
    assert "secret" not in str(no.value)


async def test_no_token_nonce_or_policy_is_ever_logged(client):
    """What is logged are ids, figures and states."""
    with capture_logs() as logged:
        done = await client.line(HIGH, HIGH)
        await client.refused("OpenWindow", opening(done.token[:-1]))
        await client.call("TerminateSession", pb.TerminateSessionRequest(token=done.token, scope=SCOPE))
    text = repr(logged)

    assert "window.settled" in text
    for secret in (done.token, done.token.partition(".")[2], payload(done.token)["nonce"], POLICY, SCOPE):
        assert secret not in text
