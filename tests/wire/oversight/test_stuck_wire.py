"""Compensations that are stuck, on the reviewers' page, over gRPC and in the CLI: who may decide, what, once (KRN-5, OVR-5)."""

from __future__ import annotations

import asyncio
import itertools
import json
from urllib.parse import quote

import pytest
import pytest_asyncio
import yaml
from typer.testing import CliRunner

from interlock.api.audit.v1 import audit_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.cli.oversight.commands import app
from interlock.policy.reviewers import key_text
from tests.support.kernels import UNIT, KernelClient
from tests.support.policy import agents
from tests.support.sidecar import stuck
from tests.support.sidecar.oversight import reviewed_world, token_for
from tests.support.sidecar.stuck import DECIDER, NO_RIGHT, NO_RIGHT_KEY, OTHER, OTHER_KEY, STEP, signed, stuck_step

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("KRN-5", "OVR-5")]

SELF = "anonymous@company.com"
"""The name of the caller without a key, before the @."""
_NAMES = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, valkey):
    """A sidecar whose kernels are in a real store, and its reviewers."""
    folder = tmp_path_factory.mktemp("stuck")
    async with reviewed_world(folder, stuck.reviewers(SELF), redis_url=valkey.url) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def left(world):
    """A fresh kernel with one step that only a person can make up for: its name, and kernel id, step and record."""
    name = f"trip{next(_NAMES)}"
    return name, *await stuck_step(world.sidecar.client, name, "send")


async def last_record(world, name: str) -> tuple[str, dict]:
    record = (await KernelClient(world.sidecar.client, name).trace())[-1]
    return record["type"], json.loads(record["data_json"])


async def handed_in(world, csrf: str, kernel_id: str, token: str, reason: str = "MADE_UP_FOR", step: str = STEP):
    body = {"step": step, "token": token, "reason": reason}
    return await world.oversight.post(f"/api/stuck/{kernel_id}/decision", body, csrf)


async def waiting(world) -> dict[str, audit_pb2.StuckCompensation]:
    """What the audit log says waits for a person, by kernel."""
    found = await world.sidecar.mesh.audit.ListStuck(audit_pb2.ListStuckRequest(limit=200))
    return {one.kernel_id: one for one in found.items}


async def test_the_page_shows_what_waits_and_takes_a_signed_decision_once(world, left):
    """List, read, decide: the chain holds who decided and why; a second decision finds nothing, the same one is answered again."""
    name, kernel_id, step, record = left
    csrf = await world.oversight.browse()
    path = f"/stuck/{kernel_id}?step={quote(step, safe='')}"
    queue = (await world.oversight.client.get("/stuck")).text
    page = (await world.oversight.client.get(path)).text
    token = signed(kernel_id, step, record, "done")
    decided = await handed_in(world, csrf, kernel_id, token)
    again = await handed_in(world, csrf, kernel_id, token)
    second = await handed_in(world, csrf, kernel_id, signed(kernel_id, step, record, "done"))
    gone = await world.oversight.client.get(path)

    assert (name in queue, quote(kernel_id) in queue, "a person" in queue) == (True, True, True)
    assert f'data-record="{record}"' in page
    assert 'data-step="step/1?&amp;&#34;+"' in page
    assert ('data-outcome="done"' in page, 'data-outcome="retry"' in page) == (True, False), "no action to try again"
    assert (decided.json()["approved"], again.json()) == (True, decided.json())
    assert (second.status_code, second.json()["reason"]) == (404, "KERNEL_COMPENSATION_UNKNOWN")
    assert (gone.status_code, "KERNEL_COMPENSATION_UNKNOWN" in gone.text) == (404, True)
    kind, data = await last_record(world, name)
    told = {"execution": step, "outcome": "done", "reason": "MADE_UP_FOR", "reviewer_id": DECIDER, "token": token}
    assert kind == "KERNEL_COMPENSATED"
    assert told.items() <= data["decided"].items()
    assert kernel_id not in await waiting(world)
    verified = await world.sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=kernel_id))
    assert not verified.faults


async def test_what_is_left_stays_and_a_page_that_was_read_before_decides_nothing(world, left):
    """Leaving is on record and on the list; who read the page before that must read it again, and so must who reads between."""
    name, kernel_id, step, record = left
    csrf = await world.oversight.browse()
    first = await handed_in(world, csrf, kernel_id, signed(kernel_id, step, record, "leave"), "WAITS_FOR_OTHERS")
    stale = await handed_in(world, csrf, kernel_id, signed(kernel_id, step, record, "done"))
    listed = (await waiting(world))[kernel_id]
    queue = (await world.oversight.client.get("/stuck")).text

    assert first.json()["approved"]
    assert (stale.status_code, stale.json()["reason"]) == (409, "KERNEL_COMPENSATION_MOVED_ON")
    assert (listed.left_by, listed.left_reason, listed.fence) == (DECIDER, "WAITS_FOR_OTHERS", record + 1)
    assert f"{DECIDER}: waits for others" in queue
    assert (await last_record(world, name))[0] == "KERNEL_COMPENSATION_LEFT"
    done = await handed_in(world, csrf, kernel_id, signed(kernel_id, step, listed.fence, "done"))
    assert done.json()["approved"]


async def test_what_is_tried_again_is_handed_out_and_not_decided_meanwhile(world):
    """A compensation whose workers died five times is claimed again; meanwhile no one decides, and what ran leaves the list."""
    name = f"trip{next(_NAMES)}"
    kernel_id, step, record = await stuck_step(world.sidecar.client, name, "book")
    csrf = await world.oversight.browse()
    page = (await world.oversight.client.get(f"/stuck/{kernel_id}?step={quote(step, safe='')}")).text
    tried = await handed_in(world, csrf, kernel_id, signed(kernel_id, step, record, "retry"), "CAUSE_MENDED")
    late = await handed_in(world, csrf, kernel_id, signed(kernel_id, step, record, "done"))
    kernel = KernelClient(world.sidecar.client, name)
    claimed = (await kernel.post("claim-compensation", lifetime_ms=60_000, key="worker")).json()

    assert "decrement booked 1" in page
    assert "Book &lt;b&gt;a&lt;/b&gt; room" in page
    assert tried.json()["approved"]
    assert (late.status_code, late.json()["reason"]) == (409, "KERNEL_COMPENSATION_NOT_STUCK")
    assert (claimed["compensation"]["execution"], claimed["compensation"]["attempts"]) == (step, 1)
    assert kernel_id not in await waiting(world)
    settled = await kernel.post("settle-compensation", execution=step, outcome="OUTCOME_DONE", key="made")
    assert settled.json()["verdict"]["approved"]
    assert (await kernel.describe())["state"]["booked"] == {"number_micros": "0"}
    assert await kernel.spent() == 2 * UNIT, "what was done in the world was paid for"


async def refused(world, left, token: str, **who) -> tuple[int, str]:
    """Hand a token in as one reviewer; what it is refused with. Nothing was recorded."""
    name, kernel_id, *_ = left
    csrf = await world.oversight.browse(**who)
    before = len(await KernelClient(world.sidecar.client, name).trace())
    answer = await handed_in(world, csrf, kernel_id, token)
    assert len(await KernelClient(world.sidecar.client, name).trace()) == before
    assert kernel_id in await waiting(world)
    return answer.status_code, answer.json().get("reason", "")


async def test_a_reviewer_without_the_right_decides_nothing(world, left):
    """Who may release answers may not compensate for it, whatever is signed."""
    token = signed(*left[1:], "done", key=NO_RIGHT_KEY, reviewer=NO_RIGHT)

    assert await refused(world, left, token, key=NO_RIGHT_KEY, reviewer=NO_RIGHT) == (401, "APPROVAL_MISMATCH")


async def test_the_caller_of_a_kernel_does_not_decide_about_it(world, left):
    """A person whose own agents left it undone has another one look."""
    own = agents.private_key(20)
    token = signed(*left[1:], "done", key=own, reviewer=SELF)

    assert await refused(world, left, token, key=own, reviewer=SELF) == (403, "SELF_APPROVAL")


async def test_what_was_signed_is_what_is_decided(world, left):
    """Another's signature, another step, kernel or outcome, another action, or a record that is no number."""
    _, kernel_id, step, record = left
    others = signed(kernel_id, step, record, "done", key=OTHER_KEY, reviewer=OTHER)
    assert await refused(world, left, others) == (403, "REVIEWER_MISMATCH")
    forged = signed(kernel_id, step, record, "done", key=OTHER_KEY)
    assert await refused(world, left, forged) == (401, "APPROVAL_INVALID")
    for scope in ({"step": "other"}, {"kernel": "crp_sess_" + "0" * 32}, {"record": "-1"}, {"record": "x"}):
        token = signed(kernel_id, step, record, "done", **scope)
        assert await refused(world, left, token) == (401, "APPROVAL_MISMATCH"), scope
    assert await refused(world, left, signed(kernel_id, step, record, "leave")) == (400, "INVALID_REASON")
    assert await refused(world, left, signed(kernel_id, step, record, "away")) == (400, "INVALID_OUTCOME")
    held = {"session_id": kernel_id, "window_id": "w", "response_hash": "", "policy_hash": ""}
    assert await refused(world, left, token_for(held)) == (401, "APPROVAL_MISMATCH")
    unsealed = signed(kernel_id, step, record + 1, "done")
    assert await refused(world, left, unsealed) == (409, "KERNEL_COMPENSATION_MOVED_ON")


async def test_no_one_decides_without_a_sign_in_of_a_reviewer_and_the_pages_own_form(world, left):
    """A stranger, a viewer with the operator's link, a form without its token, and a form of another site."""
    _, kernel_id, step, record = left
    token = signed(kernel_id, step, record, "done")
    world.oversight.client.cookies.clear()
    stranger = await handed_in(world, "x", kernel_id, token)
    pages = [await world.oversight.client.get(path) for path in ("/stuck", f"/stuck/{kernel_id}?step=x")]
    assert (stranger.status_code, stranger.json()["reason"]) == (401, "SIGN_IN_REQUIRED")
    assert [(page.status_code, page.headers["location"]) for page in pages] == [(303, "/sign-in")] * 2
    csrf = await world.oversight.browse()
    assert (await handed_in(world, "forged", kernel_id, token)).json()["reason"] == "CSRF_TOKEN_INVALID"
    body = {"step": step, "token": token, "reason": "MADE_UP_FOR"}
    path = f"/api/stuck/{kernel_id}/decision"
    foreign = await world.oversight.post(path, body, csrf, origin="https://evil.example")
    assert foreign.json()["reason"] == "ORIGIN_NOT_ALLOWED"
    world.oversight.client.cookies.clear()
    await world.oversight.look()
    page = (await world.oversight.client.get(f"/stuck/{kernel_id}?step={quote(step, safe='')}")).text
    csrf = page.split('data-csrf="')[1].split('"')[0]
    assert (await handed_in(world, csrf, kernel_id, token)).json()["reason"] == "VIEW_READS_ONLY"
    assert "data-outcome" not in page
    assert kernel_id in await waiting(world)


async def test_a_store_that_lost_the_kernel_is_restored_before_a_person_reads_or_decides(world, left, valkey):
    """The oversight service reads from the chain what the store does not have any more, and seals what it decides there."""
    name, kernel_id, step, record = left
    metadata = await world.oversight.metadata()
    valkey.flush()
    request = oversight_pb2.GetStuckRequest(kernel_id=kernel_id, execution=step)
    shown = await world.oversight.stub.GetStuck(request, metadata=metadata)
    valkey.flush()
    token = signed(kernel_id, step, record, "done")
    decide = oversight_pb2.DecideStuckRequest(kernel_id=kernel_id, execution=step, token=token, reason="LOSS_ACCEPTED")
    decided = await world.oversight.stub.DecideStuck(decide, metadata=metadata)

    assert (shown.kernel, shown.scope, shown.compensation.fence) == (name, "anonymous", record)
    assert decided.verdict.approved, decided.refusal
    assert (await last_record(world, name))[1]["decided"]["reason"] == "LOSS_ACCEPTED"


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "reviewer.key"
    private = key_text(agents.private_key().private_bytes_raw())
    path.write_text(yaml.safe_dump({"reviewer": DECIDER, "private_key": private}))
    path.chmod(0o600)
    return str(path)


async def test_a_person_lists_reads_and_decides_in_the_cli(world, left, key_file):
    """Exit codes tell what waits; a record that was read before is refused, and a wrong word is told with the right ones."""
    _, kernel_id, step, record = left

    async def command(*arguments: str) -> tuple[int, str]:
        env = {"INTERLOCK_OVERSIGHT_ADDRESS": world.oversight.grpc, "NO_COLOR": "1"}
        line = ["stuck", *arguments, "--key", key_file]
        result = await asyncio.to_thread(CliRunner().invoke, app, line, env=env)
        return result.exit_code, result.output

    code, out = await command("list")
    assert (code, kernel_id in out, "anonymous" in out) == (1, True, True), out
    code, out = await command("show", kernel_id, step)
    assert (code, f"record    {record}" in out, "send" in out) == (0, True, True)
    code, out = await command("decide", kernel_id, step, "--outcome", "done", "--reason", "CAUSE_PASSED")
    assert (code, "LOSS_ACCEPTED" in out) == (2, True)
    decide = ("decide", kernel_id, step, "--outcome", "leave", "--reason", "UNCLEAR", "--record", str(record))
    assert (await command(*decide))[0] == 0
    code, out = await command(*decide)
    assert (code, "KERNEL_COMPENSATION_MOVED_ON" in out) == (2, True)
    code, out = await command("decide", kernel_id, step, "--outcome", "done", "--reason", "MADE_UP_FOR")
    assert (code, "decided: done" in out) == (0, True)
    code, out = await command("show", kernel_id, step)
    assert (code, "KERNEL_COMPENSATION_UNKNOWN" in out) == (2, True)


async def test_a_viewer_sees_no_compensation_and_a_limited_sight_only_its_own(world, left):
    """Neither page, JSON nor gRPC shows it to whom its role does not cover, and their signed decision decides nothing (OBS-5)."""
    name, kernel_id, step, record = left
    path = f"/stuck/{kernel_id}?step={quote(step, safe='')}"
    for who, reason in ((stuck.VIEWER, "ROLE_SEES_NO_CONTENT"), (stuck.LIMITED, "SESSION_NOT_COVERED")):
        csrf = await world.oversight.browse(reviewer=who, key=stuck.key_of(who))
        shown = await world.oversight.client.get(path)
        listed = [await world.oversight.client.get(one) for one in ("/stuck", "/api/stuck")]
        token = signed(kernel_id, step, record, "done", reviewer=who, key=stuck.key_of(who))
        decided = await handed_in(world, csrf, kernel_id, token)

        assert (shown.status_code, reason in shown.text) == (403, True), who
        assert [one for one in listed if name in one.text or kernel_id in one.text] == [], who
        assert decided.status_code == 403, who
    assert kernel_id in await waiting(world)
