"""A-30: an approval that is replayed, moved, forged, made by the caller itself, late, or asked for by another page."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain import approval
from interlock.policy.reviewers import key_text
from tests.support.policy import agents
from tests.support.sidecar.oversight import HOLDS, decision, reviewed_world, token_for, window_of
from tests.support.sidecar.sidecar import reason_of, token_of

pytestmark = [pytest.mark.req("OVR-3"), pytest.mark.asyncio(loop_scope="module")]

SELF = agents.private_key(5)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """Held answers, a registered reviewer, and one who is named as the anonymous caller is."""
    document = agents.reviewers(**{agents.REVIEWER: agents.private_key(), "anonymous@company.com": SELF})
    async with reviewed_world(tmp_path_factory.mktemp("a30"), document) as running:
        yield running


@pytest.fixture
def provider(world):
    world.provider.reset()
    world.provider.answers("HIGH risk.")
    return world.provider


@pytest.fixture
def reviewed(world, provider):
    return world.sidecar


@pytest.fixture
def oversight(world):
    world.oversight.client.cookies.clear()
    return world.oversight


async def item_of(sidecar, held) -> audit_pb2.HeldItem:
    return (await sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=window_of(held)))).item


async def decide(oversight, item, token, **who):
    metadata = await oversight.metadata(**who)
    return await oversight.stub.Decide(
        oversight_pb2.DecideRequest(window_id=item.window_id, token=token), metadata=metadata
    )


async def release(sidecar, held, token):
    return await sidecar.chat(token=token_of(held), headers={"crp-oversight-token": token})


async def status_of(sidecar, held) -> int:
    return (await item_of(sidecar, held)).status


async def test_a30_a_token_that_was_used_releases_nothing_more(reviewed, oversight, provider):
    """Neither again from another window of the session, nor for another response, nor as a second decision."""
    held = await reviewed.chat(headers=HOLDS)
    token = token_for(await item_of(reviewed, held))
    first = await decide(oversight, await item_of(reviewed, held), token)
    released = await release(reviewed, held, token)
    provider.answers("LOW risk.")
    onward = await reviewed.chat(token=token_of(held))
    provider.answers("HIGH risk.")
    second = await reviewed.chat(token=token_of(onward))
    replayed = await release(reviewed, onward, token)
    moved = await decide(oversight, await item_of(reviewed, second), token)

    assert (first.item.status, released.status_code) == (audit_pb2.HELD_STATUS_APPROVED, 200)
    assert (replayed.status_code, reason_of(replayed)) == (409, "HELD_ALREADY_RELEASED")
    assert moved.refusal.reason == "APPROVAL_MISMATCH"
    assert await status_of(reviewed, second) == audit_pb2.HELD_STATUS_PENDING


@pytest.mark.parametrize("name", ["session", "window", "response", "policy"])
async def test_a30_a_token_for_something_else_decides_nothing(reviewed, oversight, name):
    """Another session, window, response or policy: refused, and what is held stays held."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    other = {"session": "crp_sess_" + "0" * 32, "window": "crp_win_" + "0" * 32}.get(name, "sha256:" + "0" * 64)
    answer = await decide(oversight, item, token_for(item, **{name: other}))

    assert answer.refusal.reason == "APPROVAL_MISMATCH"
    assert await status_of(reviewed, held) == audit_pb2.HELD_STATUS_PENDING


async def test_a30_a_forged_reviewer_decides_nothing(reviewed, oversight):
    """A signature of another key, and the name of nobody: refused as the same thing."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    forged = await decide(oversight, item, token_for(item, key=agents.private_key(9)))
    nobody = await decide(oversight, item, token_for(item, reviewer="nobody@company.com"))

    assert {forged.refusal.reason, nobody.refusal.reason} == {"APPROVAL_INVALID"}
    assert await status_of(reviewed, held) == audit_pb2.HELD_STATUS_PENDING


async def test_a30_nobody_hands_in_what_another_signed(reviewed, oversight):
    """A token that leaked is worth nothing in the hands of another reviewer."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    answer = await decide(oversight, item, token_for(item), key=SELF, reviewer="anonymous@company.com")

    assert answer.refusal.reason == "REVIEWER_MISMATCH"


async def test_a30_nobody_approves_what_they_asked_for(reviewed, oversight):
    """The session's scope is anonymous, and so is the reviewer: refused when deciding, and again when releasing."""
    held = await reviewed.chat(headers=HOLDS)
    item, who = await item_of(reviewed, held), {"key": SELF, "reviewer": "anonymous@company.com"}
    token = token_for(item, **who)
    decided = await decide(oversight, item, token, **who)
    await reviewed.mesh.audit.DecideHeld(decision(token))  # as if the check before it had been gone around
    released = await release(reviewed, held, token)

    assert decided.refusal.reason == "SELF_APPROVAL"
    assert (released.status_code, reason_of(released)) == (403, "SELF_APPROVAL")


async def test_a30_nothing_is_approved_or_released_after_its_expiry(tmp_path):
    """The hold ends by the audit service's own time: the answer is denied, deleted, and the chain says so."""
    async with reviewed_world(tmp_path, hold_expires_s=1) as short:
        sidecar, oversight = short.sidecar, short.oversight
        short.provider.answers("HIGH risk.")
        early = await sidecar.chat(headers=HOLDS)
        item = await item_of(sidecar, early)
        approved = await decide(oversight, item, token := token_for(item))
        late = await sidecar.chat(headers=HOLDS)
        await ended(sidecar, early, late)
        released = await release(sidecar, early, token)
        other = await item_of(sidecar, late)
        answer = await decide(oversight, other, token_for(other, number=2))
        stored = await sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=other.window_id))

    assert approved.item.status == audit_pb2.HELD_STATUS_APPROVED
    assert (released.status_code, reason_of(released)) == (403, "HOLD_EXPIRED")
    assert answer.refusal.reason == "HOLD_EXPIRED"
    assert stored.held == b""


async def ended(sidecar, *held) -> None:
    """Wait until the chains say that these holds ended."""
    async with asyncio.timeout(20):
        for one in held:
            session_id = one.headers["crp-context-session-id"]
            while "OVERSIGHT_EXPIRED" not in [event.event_type for event in await sidecar.events(session_id)]:
                await asyncio.sleep(0.1)


async def test_a30_an_expired_approval_decides_nothing(reviewed, oversight):
    """What a reviewer signed long ago is not what they say now."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    answer = await decide(oversight, item, token_for(item, issued_at=1_700_000_000))

    assert answer.refusal.reason == "APPROVAL_EXPIRED"


async def test_a30_nothing_is_decided_by_get(reviewed, oversight):
    """A link in a message, or an image on a page, decides nothing."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    await oversight.browse()
    paths = [f"/api/held/{item.window_id}/decision", f"/held/{item.window_id}/decision", "/sign-out"]
    query = {"token": token_for(item), "reason": "ACCURATE"}
    answers = [await oversight.client.get(path, params=query) for path in paths]

    assert [answer.status_code for answer in answers] == [405, 404, 405]
    assert await status_of(reviewed, held) == audit_pb2.HELD_STATUS_PENDING


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"origin": "https://evil.example"}, "ORIGIN_NOT_ALLOWED"),
        ({"origin": "null"}, "ORIGIN_NOT_ALLOWED"),
        ({"origin": ""}, "ORIGIN_NOT_ALLOWED"),
        ({"sec-fetch-site": "cross-site"}, "ORIGIN_NOT_ALLOWED"),
        ({"host": "evil.example:7075"}, "HOST_NOT_ALLOWED"),
        ({"x-csrf-token": "guessed"}, "CSRF_TOKEN_INVALID"),
        ({"x-csrf-token": ""}, "CSRF_TOKEN_INVALID"),
        ({"content-type": "text/plain"}, "UNSUPPORTED_MEDIA_TYPE"),
    ],
)
async def test_a30_another_page_decides_nothing(reviewed, oversight, headers, reason):
    """With the reviewer's cookie, but another origin, site, host, form token or media type."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    csrf = await oversight.browse()
    answer = await oversight.post(
        f"/api/held/{item.window_id}/decision", {"token": token_for(item), "reason": ""}, csrf, **headers
    )

    assert answer.status_code in {400, 403}
    assert answer.json()["reason"] == reason
    assert await status_of(reviewed, held) == audit_pb2.HELD_STATUS_PENDING


async def test_a30_an_agent_on_the_same_machine_cannot_make_itself_a_reviewer(reviewed):
    """Registration by RPC is off unless a deployment says otherwise: the policy port may be within reach."""
    public = key_text(agents.private_key(8).public_key().public_bytes_raw())
    request = policy_pb2.RegisterReviewerRequest(reviewer=policy_pb2.Reviewer(reviewer_id="me", public_key=public))
    answer = await reviewed.mesh.policy.RegisterReviewer(request)

    assert answer.refusal.reason == "REVIEWERS_BY_FILE_ONLY"


async def test_a30_a_row_in_the_database_is_no_approval(reviewed):
    """Whoever can write to the tables approves nothing by that: the chain must hold the approval."""
    held = await reviewed.chat(headers=HOLDS)
    item = await item_of(reviewed, held)
    token = token_for(item)
    with sqlite3.connect(reviewed.settings.state_dir / "audit.db") as database:
        database.execute(
            "INSERT INTO decisions (window_id, approved, reviewer_id, approval_id, token, decided_at, expires_at)"
            " VALUES (?, 1, ?, ?, ?, ?, ?)",
            (
                item.window_id,
                agents.REVIEWER,
                approval.read(token).approval.approval_id,
                token,
                item.held_at,
                item.expires_at,
            ),
        )
    database.close()
    refused = await release(reviewed, held, token)

    assert (refused.status_code, reason_of(refused)) == (409, "APPROVAL_NOT_ON_RECORD")
