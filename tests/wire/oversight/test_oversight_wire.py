"""The oversight service over its real listeners: signing in, the queue, decisions, the page's guards (OVR-3, OVR-5)."""

from __future__ import annotations

import json

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.policy.reviewers import key_text
from interlock.runtime import failpoints
from tests.support.policy import agents
from tests.support.sidecar.oversight import HOLDS, reviewed_world, running_oversight, token_for, window_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID = "HIGH risk: transfer <b>9</b> \u202eREVERSED\u202c to\u200b account."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A sidecar whose answers are held, and the reviewers' side of it, for the whole module."""
    async with reviewed_world(tmp_path_factory.mktemp("oversight"), reviewers_by_rpc=True) as running:
        running.provider.answers(SAID)
        yield running.sidecar, running.oversight


@pytest_asyncio.fixture(loop_scope="module")
async def held(world):
    """A fresh held response."""
    response = await world[0].chat(headers=HOLDS)
    assert response.status_code == 451
    return response


async def item_of(world, held) -> audit_pb2.HeldItem:
    return (await world[0].mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=window_of(held)))).item


@pytest.mark.req("OVR-5")
async def test_a_reviewer_reads_and_decides_over_grpc(world, held):
    """Sign in, list, show, decide: the text is shown with everything hidden in it visible."""
    sidecar, oversight = world
    metadata = await oversight.metadata()
    status = audit_pb2.HELD_STATUS_PENDING
    listed = await oversight.stub.ListHeld(oversight_pb2.ListHeldRequest(status=status, limit=200), metadata=metadata)
    shown = await oversight.stub.GetHeld(oversight_pb2.GetHeldRequest(window_id=window_of(held)), metadata=metadata)
    token = token_for(shown.item)
    decided = await oversight.stub.Decide(
        oversight_pb2.DecideRequest(window_id=window_of(held), token=token, reason="SOURCES_CHECKED"), metadata=metadata
    )

    assert window_of(held) in [item.window_id for item in listed.items]
    assert shown.text == SAID.replace("\u202e", "⟦U+202E⟧").replace("\u202c", "⟦U+202C⟧").replace("\u200b", "⟦U+200B⟧")
    assert (shown.question, shown.report.risk_level, len(shown.sessions)) == ("What is it?", shown.item.risk_level, 1)
    assert decided.item.status == audit_pb2.HELD_STATUS_APPROVED
    events = [e for e in await sidecar.events(shown.item.session_id) if e.event_type == "OVERSIGHT_APPROVED"]
    told = json.loads(events[0].data_json)
    assert (told["reviewer_id"], told["reason"]) == (agents.REVIEWER, "SOURCES_CHECKED")


@pytest.mark.req("OVR-4", "OVR-5")
async def test_a_readers_view_never_has_the_token_of_an_approval(world, held):
    """It is the client's that waits: what the page leaves out, gRPC leaves out too."""
    _, oversight = world
    metadata = await oversight.metadata()
    window = window_of(held)
    request = oversight_pb2.GetHeldRequest(window_id=window)
    token = token_for((await oversight.stub.GetHeld(request, metadata=metadata)).item)
    decided = await oversight.stub.Decide(
        oversight_pb2.DecideRequest(window_id=window, token=token, reason="SOURCES_CHECKED"), metadata=metadata
    )
    shown = await oversight.stub.GetHeld(request, metadata=metadata)
    wanted = oversight_pb2.ListHeldRequest(status=audit_pb2.HELD_STATUS_APPROVED, limit=200)
    listed = await oversight.stub.ListHeld(wanted, metadata=metadata)

    assert (await item_of(world, held)).token == token
    assert window in [item.window_id for item in listed.items]
    assert {one.token for one in (decided.item, shown.item, *listed.items)} == {""}


SHOWN_AT = ("/held/{}", "/api/held/{}", "/api/held/{}/body")
"""Each shows the text of a held answer. So does the queue: test_console_inbox_wire.py."""


async def viewers_of(world, held) -> list[str]:
    """Who looked at the answer, by the session's own chain."""
    events = await world[0].events(held.headers["crp-context-session-id"])
    looks = [event for event in events if event.event_type == "CONTENT_VIEWED" and event.window_id == window_of(held)]
    return [json.loads(event.data_json)["viewer"] for event in looks]


@pytest.mark.req("OVR-5", "OBS-5")
async def test_each_look_at_a_held_text_is_on_record(world, held):
    """Page, JSON, bytes and gRPC write who looked before they show it; picture and state, which hold no text, write nothing."""
    sidecar, oversight = world
    await oversight.browse()
    window = window_of(held)
    for path in ("/?status=rejected", f"/held/{window}/dag.svg"):
        assert (await oversight.client.get(path)).status_code == 200
    state = oversight_pb2.GetHeldRequest(window_id=window, state_only=True)
    known = await oversight.stub.GetHeld(state, metadata=await oversight.metadata())
    assert (known.item.window_id, known.text) == (window, "")
    assert await viewers_of(world, held) == []
    for number, path in enumerate(SHOWN_AT, start=1):
        assert "risk: transfer" in (await oversight.client.get(path.format(window))).text
        assert await viewers_of(world, held) == [agents.REVIEWER] * number
    request = oversight_pb2.GetHeldRequest(window_id=window)
    assert (await oversight.stub.GetHeld(request, metadata=await oversight.metadata())).text

    assert await viewers_of(world, held) == [agents.REVIEWER] * 4
    verified = await sidecar.mesh.audit.Verify(
        audit_pb2.VerifyRequest(session_id=held.headers["crp-context-session-id"])
    )
    assert not verified.faults


@pytest.mark.req("OVR-5", "OBS-5")
async def test_what_cannot_be_put_on_record_is_not_shown(world, held):
    """While the audit log takes no event, page, JSON, bytes and gRPC refuse, and none has a word of the answer."""
    _, oversight = world
    await oversight.browse()
    metadata = await oversight.metadata()
    failpoints.configure("audit.before_commit:error")
    try:
        pages = [await oversight.client.get(path.format(window_of(held))) for path in SHOWN_AT]
        answer = await oversight.stub.GetHeld(
            oversight_pb2.GetHeldRequest(window_id=window_of(held)), metadata=metadata
        )
    finally:
        failpoints.configure("")

    assert {page.status_code for page in pages} == {503}
    assert not any("transfer" in page.text for page in pages)
    assert (answer.HasField("refusal"), answer.text, answer.question, dict(answer.evidence)) == (True, "", "", {})
    assert await viewers_of(world, held) == []
    assert (await oversight.client.get(SHOWN_AT[0].format(window_of(held)))).status_code == 200


@pytest.mark.req("OVR-3")
async def test_without_a_view_nothing_is_shown(world, held):
    """No bearer, a made-up one, one that has expired: SIGN_IN_REQUIRED."""
    _, oversight = world
    request = oversight_pb2.GetHeldRequest(window_id=window_of(held))
    metadata = await oversight.metadata()
    without = await oversight.stub.GetHeld(request)
    forged = await oversight.stub.GetHeld(request, metadata=(("authorization", "Bearer x"),))
    oversight.clock.by_s = 901
    expired = await oversight.stub.GetHeld(request, metadata=metadata)
    oversight.clock.by_s = 0

    assert {answer.refusal.reason for answer in (without, forged, expired)} == {"SIGN_IN_REQUIRED"}
    assert not (without.text or forged.text or expired.text)


@pytest.mark.req("OVR-3")
async def test_signing_in_needs_the_key_of_a_registered_reviewer_once_and_in_time(world):
    """Another key, another name, a challenge used twice or too late: one and the same refusal."""
    _, oversight = world
    other_key = await oversight.signed_in(key=agents.private_key(2))
    unknown = await oversight.signed_in(reviewer="nobody@company.com")
    drawn = await oversight.stub.Challenge(oversight_pb2.ChallengeRequest(reviewer_id=agents.REVIEWER))
    signed = oversight_pb2.SignInRequest(
        reviewer_id=agents.REVIEWER, challenge=drawn.challenge,
        signature=agents.private_key().sign(drawn.challenge.encode()),
    )  # fmt: skip
    oversight.clock.by_s = 121
    late = await oversight.stub.SignIn(signed)
    oversight.clock.by_s = 0
    twice = await oversight.stub.SignIn(signed)

    assert {one.refusal.reason for one in (other_key, unknown, late, twice)} == {"SIGN_IN_INVALID"}


@pytest.mark.req("OVR-3")
async def test_a_reviewer_by_rpc_decides_until_removed(world, held):
    """Registered, signed in, deciding; once removed the view is gone with the registration."""
    sidecar, oversight = world
    key, name = agents.private_key(7), "second@company.com"
    public = key_text(key.public_key().public_bytes_raw())
    reviewer = policy_pb2.Reviewer(reviewer_id=name, public_key=public)
    await sidecar.mesh.policy.RegisterReviewer(policy_pb2.RegisterReviewerRequest(reviewer=reviewer))
    metadata = await oversight.metadata(key=key, reviewer=name)
    listed = await oversight.stub.ListHeld(oversight_pb2.ListHeldRequest(), metadata=metadata)
    await sidecar.mesh.policy.RemoveReviewer(policy_pb2.RemoveReviewerRequest(reviewer_id=name))
    after = await oversight.stub.ListHeld(oversight_pb2.ListHeldRequest(), metadata=metadata)

    assert not listed.HasField("refusal")
    assert after.refusal.reason == "SIGN_IN_REQUIRED"


@pytest.mark.parametrize(
    ("reviewer", "reason"),
    [
        ({"reviewer_id": agents.REVIEWER, "public_key": "ed25519:" + "A" * 43}, "REVIEWER_FROM_FILE"),
        ({"reviewer_id": "x", "public_key": key_text(agents.private_key().public_key().public_bytes_raw())},
         "REVIEWER_FROM_FILE"),
        ({"reviewer_id": "x", "public_key": "ed25519:short"}, "REVIEWERS_INVALID"),
        ({"reviewer_id": "x y", "public_key": "ed25519:" + "A" * 43}, "REVIEWERS_INVALID"),
        ({"reviewer_id": "x", "public_key": "ed25519:" + "A" * 43, "actions": ["fly"]}, "REVIEWERS_INVALID"),
    ],
)  # fmt: skip
async def test_what_the_file_says_is_not_changed_by_rpc(world, reviewer, reason):
    """A name or a key of the file, and what is no reviewer at all, is refused by name."""
    request = policy_pb2.RegisterReviewerRequest(reviewer=policy_pb2.Reviewer(**reviewer))
    answer = await world[0].mesh.policy.RegisterReviewer(request)

    assert answer.refusal.reason == reason


@pytest.mark.req("OVR-5")
async def test_the_page_shows_and_decides_by_json(world, held):
    """What a browser does: the cookie of the view, the CSRF token of its page, a signed decision."""
    _, oversight = world
    csrf = await oversight.browse()
    window_id = window_of(held)
    page = await oversight.client.get(f"/held/{window_id}")
    body = await oversight.client.get(f"/api/held/{window_id}/body")
    token = token_for(await item_of(world, held), action="reject")
    decided = await oversight.post(f"/api/held/{window_id}/decision", {"token": token, "reason": "INACCURATE"}, csrf)
    after = await oversight.client.get(f"/held/{window_id}")
    oversight.client.cookies.clear()

    assert page.status_code == 200
    assert "transfer &lt;b&gt;9&lt;/b&gt;" in page.text
    assert '<mark class="hidden" title="right-to-left override">U+202E</mark>' in page.text
    assert body.headers["content-disposition"] == "attachment"
    assert (decided.status_code, decided.json()["status"]) == (200, "REJECTED")
    assert "It is deleted" in after.text


@pytest.mark.req("OVR-5", "OBS-5")
async def test_the_queue_says_how_long_is_left_and_leads_to_the_session(world, held):
    """Of what is pending; what was decided waits for nobody."""
    _, oversight = world
    await oversight.browse()
    page = await oversight.client.get("/")
    oversight.clock.by_s = 82_000
    await oversight.browse()
    later = await oversight.client.get("/")
    decided = await oversight.client.get("/?status=rejected")
    oversight.clock.by_s = 0
    oversight.client.cookies.clear()

    assert "<strong>23 h left</strong>" in page.text
    assert f'href="/sessions/{held.headers["crp-context-session-id"]}"' in page.text
    assert "<strong>1 h left</strong>" in later.text
    assert " left</strong>" not in decided.text


async def test_every_page_carries_the_same_strict_headers(world, held):
    """No script or style but our files, no frame, nothing kept; refusals and files too."""
    _, oversight = world
    await oversight.browse()
    paths = ("/", "/sign-in", f"/held/{window_of(held)}", f"/held/{window_of(held)}/dag.svg", "/static/review.js",
             "/api/held", "/nothing", "/api/held/nonsense")  # fmt: skip
    answers = [await oversight.client.get(path) for path in paths]
    oversight.client.cookies.clear()

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert "onclick" not in answer.text
    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 200, 200, 404, 400]


async def test_signing_in_by_a_token_sets_a_cookie_that_scripts_cannot_read(world):
    """HttpOnly and SameSite=Strict; signed out, it is worth nothing."""
    _, oversight = world
    bearer = (await oversight.signed_in()).bearer
    answer = await oversight.client.post("/sign-in", data={"bearer": bearer}, headers={"origin": oversight.http})
    page = await oversight.client.get("/")
    csrf = page.text.split('data-csrf="')[1].split('"')[0]
    out = await oversight.client.post("/sign-out", data={"csrf": csrf}, headers={"origin": oversight.http})
    oversight.client.cookies.set("interlock_view", bearer)
    after = await oversight.client.get("/")
    oversight.client.cookies.clear()
    cookie = answer.headers["set-cookie"].lower()

    assert answer.status_code == 303
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
    assert (out.status_code, after.status_code, after.headers["location"]) == (303, 303, "/sign-in")


async def test_over_https_the_cookie_is_bound_to_the_host(world):
    """Secure and __Host-, and requests for another host than the one of the setting are refused."""
    sidecar, _ = world
    async with running_oversight(sidecar, oversight_base_url="https://review.example.com") as secure:
        bearer = (await secure.signed_in()).bearer
        sent = {"host": "review.example.com", "origin": "https://review.example.com"}
        answer = await secure.client.post("/sign-in", data={"bearer": bearer}, headers=sent)
        other = await secure.client.get("/sign-in")

    assert answer.headers["set-cookie"].startswith("__Host-interlock_view=")
    assert "secure" in answer.headers["set-cookie"].lower()
    assert answer.headers["strict-transport-security"]
    assert other.status_code == 403


async def test_a_long_text_is_folded_and_says_how_much_of_it(world):
    """Nothing of it is hidden: the rest is there, one key away, and its size is told."""
    sidecar, oversight = world
    held = await sidecar.stub.Check(
        sidecar_pb2.CheckRequest(
            context=sidecar_pb2.CallContext(oversight_mode="human-review"), text="HIGH " + "word " * 2000 + "THE-END"
        )
    )
    await oversight.browse()
    page = (await oversight.client.get(f"/held/{held.outcome.window_id}")).text
    oversight.client.cookies.clear()

    assert "6,012 more characters of 10,012 are folded here" in page
    assert "THE-END" in page
