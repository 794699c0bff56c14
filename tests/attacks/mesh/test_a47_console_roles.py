"""A-47: a person of the console who reads, decides or stops more than the role allows, by hand and past the pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.policy.reviewers import key_text
from tests.support.policy import agents
from tests.support.sidecar.oversight import HOLDS, reviewed_world, running_oversight, token_for, window_of
from tests.support.sidecar.people import LIMITED, NUMBERS, VIEWER, people, who
from tests.support.sidecar.sidecar import a_report, token_of

pytestmark = [pytest.mark.req("OBS-5", "OVR-3"), pytest.mark.asyncio(loop_scope="module")]

MARK = "QUOKKA"
"""A word that stands in every question, answer, claim, fact and finding of these tests, and in nothing else."""
SAID = f"HIGH risk: the {MARK} costs 9 EUR."


def report() -> dpe_pb2.Report:
    claim = dpe_pb2.Claim(
        claim_id="c1", text=SAID, start=0, end=len(SAID), fact_id=f"f-{MARK}", fabrications=[f"the {MARK}"],
        attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED, entities=[dpe_pb2.Entity(text=MARK)],
        distortions=[dpe_pb2.Distortion(type="numerical", source_value=f"90 {MARK}", claim_value=f"9 {MARK}")],
    )  # fmt: skip
    against = dpe_pb2.Contradiction(claim_id="c1", severity="HIGH", other_text=f"No {MARK} is sold.")
    return a_report(
        "HIGH", claims=[claim], distortion_count=1, fabrication_count=1, fabricated_entities=[f"the {MARK}"],
        contradictions=[against], contradiction_count=1, uncovered_sub_queries=[f"Which {MARK}?"],
    )  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A session with a delivered answer and a held one, both about the same word."""
    folder = tmp_path_factory.mktemp("a47")
    async with reviewed_world(folder, people(), reviewers_by_rpc=True) as running:
        running.provider.answers(SAID)
        running.sidecar.dpe.report = report()
        facts = {"facts": [{"id": f"f-{MARK}", "content": f"The {MARK} costs 90 EUR."}]}
        sent = await running.sidecar.chat(f"What does the {MARK} cost?", interlock=facts)
        held = await running.sidecar.chat(f"And the {MARK}?", token=token_of(sent), headers=HOLDS, interlock=facts)
        assert (sent.status_code, held.status_code) == (200, 451), (sent.text, held.text)
        running.session_id = sent.headers["crp-context-session-id"]
        running.delivered = sent.headers["crp-provenance-report-uri"].rpartition("/")[2]
        running.held = window_of(held)
        yield running


def requests_of(world, window_id: str):
    """Yield method and path of every route, with the ids of what is there."""
    given = {
        "window_id": window_id, "session_id": world.session_id, "name": "review.js", "kernel_id": world.session_id,
        "experiment_id": world.session_id, "cycle": "1",
    }  # fmt: skip
    for route in world.oversight.routes:
        path = re.sub(r"\{(\w+)\}", lambda found: given[found[1]], route.path)
        for method in sorted(route.methods - {"HEAD"}):
            yield method, path


async def answers(world, csrf: str, token: str):
    """Return what every route says to the signed-in person: pages, JSON, files, and the first events of streams."""
    found: dict[str, str] = {}
    client, sent = world.oversight.client, {"origin": world.oversight.http, "x-csrf-token": csrf}
    for window_id in (world.delivered, world.held):
        for method, path in requests_of(world, window_id):
            if f"{method} {path}" in found or (method == "POST" and path in {"/sign-out", "/sign-in", "/api/sign-in"}):
                continue  # tried already, or it ends or replaces the view that is tried
            body = {"json": {"token": token, "reason": "ACCURATE"}} if method == "POST" else {}
            async with client.stream(method, path, headers=sent, **body) as answer:
                if answer.headers.get("content-type", "").startswith("text/event-stream"):
                    text = await first_events(answer)
                else:
                    text = (await answer.aread()).decode("utf-8", "replace")
                assert answer.status_code < 500, (method, path, text)
            found[f"{method} {path}"] = f"{answer.headers}{text}"
    return found


async def first_events(answer) -> str:
    """Return what a stream says until its first event; a log in which nothing happens has none."""
    said = ""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2):
            async for line in answer.aiter_lines():
                said += line
                if line.startswith("data: "):
                    break
    return said


async def looks(world) -> set[str]:
    events = [one for one in await world.sidecar.events(world.session_id) if one.event_type == "CONTENT_VIEWED"]
    return {json.loads(one.data_json)["viewer"] for one in events}


async def held_item(world) -> audit_pb2.HeldItem:
    return (await world.sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=world.held))).item


@pytest.mark.parametrize("name", [VIEWER, LIMITED])
async def test_a47_who_may_not_see_content_gets_none_by_any_url_or_stream(world, name):
    """Every route by hand, with a decision signed by the own key: no word of it, nothing decided, and no look on record."""
    csrf = await world.oversight.browse(**who(name))
    token = token_for(await held_item(world), reviewer=name, key=agents.private_key(NUMBERS[name]))
    found = await asyncio.wait_for(answers(world, csrf, token), 60)

    assert [one for one, text in found.items() if MARK.lower() in text.lower()] == []
    assert "fabricated" in found[f"GET /windows/{world.delivered}"]
    assert (await held_item(world)).status == audit_pb2.HELD_STATUS_PENDING
    assert name not in await looks(world)


async def test_a47_the_same_urls_show_a_reviewer_the_content(world):
    """What is hidden above is there: the pages, the JSON and the bytes have the word."""
    csrf = await world.oversight.browse()
    found = await asyncio.wait_for(answers(world, csrf, "no-token"), 60)
    having = {one for one, text in found.items() if MARK in text}

    paths = (
        f"/windows/{world.delivered}",
        f"/held/{world.held}",
        f"/api/held/{world.held}",
        f"/api/held/{world.held}/body",
    )
    assert having >= {f"GET {path}" for path in paths}
    assert agents.REVIEWER in await looks(world)


@pytest.mark.parametrize(
    ("name", "seen", "decided"),
    [(VIEWER, "ROLE_SEES_NO_CONTENT", "VIEW_READS_ONLY"), (LIMITED, "SESSION_NOT_COVERED", "SESSION_NOT_COVERED")],
)
async def test_a47_grpc_shows_and_takes_no_more_than_the_page(world, name, seen, decided):
    """The command line speaks to the same use cases: refused by name, with nothing beside the refusal."""
    metadata = await world.oversight.metadata(**who(name))
    stub, request = world.oversight.stub, oversight_pb2.GetHeldRequest(window_id=world.held)
    shown = await stub.GetHeld(request, metadata=metadata)
    token = token_for(await held_item(world), reviewer=name, key=agents.private_key(NUMBERS[name]))
    decision = oversight_pb2.DecideRequest(window_id=world.held, token=token, reason="ACCURATE")
    answer = await stub.Decide(decision, metadata=metadata)

    assert (shown.refusal.reason, shown.text, shown.question) == (seen, "", "")
    assert not shown.HasField("report")
    assert answer.refusal.reason == decided
    assert (await held_item(world)).status == audit_pb2.HELD_STATUS_PENDING


async def test_a47_a_viewers_signature_approves_nothing_past_the_console(world):
    """The key of a viewer is registered, and may approve no action, whoever presents its signature."""
    item = await held_item(world)
    token = token_for(item, reviewer=VIEWER, key=agents.private_key(NUMBERS[VIEWER]))
    scope = {
        "session": item.session_id,
        "window": item.window_id,
        "response": item.response_hash,
        "policy": item.policy_hash,
    }
    request = policy_pb2.VerifyApprovalRequest(token=token, action="release", session_id=item.session_id, scope=scope)

    assert (await world.sidecar.mesh.policy.VerifyApproval(request)).refusal.reason == "APPROVAL_MISMATCH"


async def test_a47_a_role_that_is_taken_away_is_gone_at_the_next_request(world):
    """A view that was opened by a reviewer shows nothing once the person is a viewer."""
    name, key = "second@company.com", agents.private_key(7)
    public = key_text(key.public_key().public_bytes_raw())
    register = world.sidecar.mesh.policy.RegisterReviewer
    await register(
        policy_pb2.RegisterReviewerRequest(reviewer=policy_pb2.Reviewer(reviewer_id=name, public_key=public))
    )
    await world.oversight.browse(reviewer=name, key=key)
    before = await world.oversight.client.get(f"/held/{world.held}")
    viewer = policy_pb2.Reviewer(reviewer_id=name, public_key=public, role="viewer")
    await register(policy_pb2.RegisterReviewerRequest(reviewer=viewer))
    after = await world.oversight.client.get(f"/held/{world.held}")

    assert (before.status_code, MARK in before.text) == (200, True)
    assert (after.status_code, MARK in after.text) == (403, False)
    assert "403 Forbidden" in after.text
    assert "ROLE_SEES_NO_CONTENT" in after.text
    assert "Key file" not in after.text


async def test_a47_the_link_has_the_role_of_the_setting(world):
    """As a viewer it opens figures alone; nothing that the form says makes it more."""
    async with running_oversight(world.sidecar, console_link_role="viewer") as limited:
        form = {"viewer": "eve", "secret": limited.secret, "role": "admin"}
        await limited.client.post("/sign-in", data=form, headers={"origin": limited.http})
        listed = await limited.client.get("/sessions")
        window = await limited.client.get(f"/windows/{world.delivered}")
        held = await limited.client.get(f"/held/{world.held}")

    assert world.session_id in listed.text
    assert "eve</strong>, viewer" in listed.text
    assert (window.status_code, MARK in window.text) == (200, False)
    assert held.status_code == 403


@pytest.mark.parametrize("sees", [{"keys": ["SCOPE"]}, {"agent_types": ["other"], "keys": ["SCOPE", "another"]}])
async def test_a47_a_limited_reviewer_sees_the_sessions_of_the_named_key(world, sees):
    """By the name of the key, as the session's own chain tells it."""
    scope = next(
        json.loads(one.data_json)["scope"]
        for one in await world.sidecar.events(world.session_id)
        if one.event_type == "SESSION_CREATED"
    )
    name, key = "third@company.com", agents.private_key(8)
    reviewer = policy_pb2.Reviewer(
        reviewer_id=name, public_key=key_text(key.public_key().public_bytes_raw()),
        sees_keys=[scope if one == "SCOPE" else one for one in sees["keys"]], sees_agent_types=sees.get("agent_types", []),
    )  # fmt: skip
    await world.sidecar.mesh.policy.RegisterReviewer(policy_pb2.RegisterReviewerRequest(reviewer=reviewer))
    await world.oversight.browse(reviewer=name, key=key)

    assert MARK in (await world.oversight.client.get(f"/windows/{world.delivered}")).text
    assert MARK in (await world.oversight.client.get(f"/held/{world.held}")).text
