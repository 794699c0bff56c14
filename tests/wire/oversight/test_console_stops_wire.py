"""The stop buttons of the console over its real listener: who may, what ends, what is sealed, and that it stays so (OBS-5)."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from tests.support.kernels import UNIT, KernelClient, failed
from tests.support.policy import agents
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import ADMIN, VIEWER, people, who
from tests.support.sidecar.sidecar import reason_of, token_of

SAID = "The deposit is 2,400 EUR."
TASK = {"id": "task", "costs": [{"resource": "usd", "micros": UNIT}]}

pytestmark = [pytest.mark.req("OBS-5"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, valkey):
    """A sidecar and its console, with a person of each role."""
    async with reviewed_world(tmp_path_factory.mktemp("stops"), people(), redis_url=valkey.url) as running:
        running.provider.answers(SAID)
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def begun(world):
    """The answer of the first call of a session."""
    answer = await world.sidecar.chat()
    assert answer.status_code == 200, answer.text
    return answer


def id_of(answer) -> str:
    return answer.headers["crp-context-session-id"]


async def posted(world, path: str, csrf: str, **form: str):
    """Post a form of the page as a browser does, as the person who is signed in."""
    return await world.oversight.client.post(
        path, data={"csrf": csrf, **form}, headers={"origin": world.oversight.http}
    )


async def stopped(world, session_id: str, csrf: str, **form: str):
    wanted = {"reason": "RUNAWAY", "confirm": session_id[-6:], "root": "", **form}
    return await posted(world, f"/sessions/{session_id}/stop", csrf, **wanted)


async def ends(world, session_id: str) -> list[dict]:
    events = await world.sidecar.events(session_id)
    return [json.loads(one.data_json) for one in events if one.event_type == "SESSION_TERMINATED"]


async def test_an_admin_ends_a_session_and_who_and_why_is_sealed(world, begun):
    """The next call is refused, the page says so, and the chain that names the admin verifies."""
    csrf = await world.oversight.browse(**who(ADMIN))
    page = await world.oversight.client.get(f"/sessions/{id_of(begun)}")
    answer = await stopped(world, id_of(begun), csrf)
    after = await world.oversight.client.get(f"/sessions/{id_of(begun)}")
    verified = await world.sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=id_of(begun)))
    refused = await world.sidecar.chat(token=token_of(begun))

    assert f'action="/sessions/{id_of(begun)}/stop"' in page.text
    assert (answer.status_code, answer.headers["location"]) == (303, f"/sessions/{id_of(begun)}?root=")
    assert await ends(world, id_of(begun)) == [
        {"reason": "ADMIN", "stopped_by": ADMIN, "why": "RUNAWAY", "final_safety_budget": "1.00"}
    ]
    assert reason_of(refused) == "SESSION_TERMINATED"
    assert "TERMINATED</span>" in after.text
    assert (verified.windows, list(verified.faults)) == (1, [])
    assert "/stop" not in after.text


async def test_what_is_below_ends_with_it(world, begun):
    """A sub-agent whose parent was stopped gets no answer any more."""
    grant = await world.sidecar.client.post(
        "/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(begun)}
    )
    assert grant.status_code in {200, 201}, grant.text
    child = await world.sidecar.chat(headers={"crp-agent-delegation-grant": grant.json()["grant"]})
    assert child.status_code == 200, child.text
    csrf = await world.oversight.browse(**who(ADMIN))
    await stopped(world, id_of(begun), csrf)
    refused = await world.sidecar.chat(token=token_of(child))

    assert id_of(child) != id_of(begun)
    assert reason_of(refused) == "ANCESTOR_ENDED"


async def test_a_stop_that_the_store_lost_holds_all_the_same(world, begun, valkey):
    """It is in the chain: a store that lost the session gets it back as it ended."""
    csrf = await world.oversight.browse(**who(ADMIN))
    await stopped(world, id_of(begun), csrf)
    valkey.flush()
    refused = await world.sidecar.chat(token=token_of(begun))

    assert reason_of(refused) == "SESSION_TERMINATED"


@pytest.mark.parametrize("name", [VIEWER, agents.REVIEWER, ""])
async def test_nobody_else_stops_anything(world, begun, name):
    """A viewer, a reviewer and who came by the link: refused in words, no button, no event, and the session goes on."""
    if name:
        csrf = await world.oversight.browse(**who(name))
    else:
        world.oversight.client.cookies.clear()
        await world.oversight.look()
        csrf = (await world.oversight.client.get("/sessions")).text.split('data-csrf="')[1].split('"')[0]
    page = await world.oversight.client.get(f"/sessions/{id_of(begun)}")
    answer = await stopped(world, id_of(begun), csrf)
    kernel = await posted(world, "/kernels/stop", csrf, scope="any", kernel="any", confirm="any", reason="TEST")

    assert "/stop" not in page.text
    assert [answer.status_code, kernel.status_code] == [403, 403]
    assert "403 Forbidden" in answer.text
    assert "ROLE_NOT_ADMIN" in answer.text
    assert await ends(world, id_of(begun)) == []
    assert (await world.sidecar.chat(token=token_of(begun))).status_code == 200


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"confirm": "000000x"}, "STOP_NOT_CONFIRMED"), ({"confirm": ""}, "STOP_NOT_CONFIRMED"),
        ({"reason": "because I say so"}, "STOP_REASON_INVALID"), ({"csrf": "another"}, "CSRF_TOKEN_INVALID"),
        ({"root": "crp_sess_x"}, "INVALID_ID"),
    ],
)  # fmt: skip
async def test_what_is_not_meant_stops_nothing(world, begun, form, reason):
    """Each with its reason; nothing is on record as a stop."""
    csrf = await world.oversight.browse(**who(ADMIN))
    given = {"csrf": csrf, "reason": "RUNAWAY", "confirm": id_of(begun)[-6:], **form}
    client, sent = world.oversight.client, {"origin": world.oversight.http}
    answer = await client.post(f"/sessions/{id_of(begun)}/stop", data=given, headers=sent)

    assert reason in answer.text
    assert answer.status_code in {400, 403}
    assert await ends(world, id_of(begun)) == []


async def test_another_site_stops_nothing(world, begun):
    """A form of another origin is refused before its token is looked at; a GET is no stop."""
    csrf = await world.oversight.browse(**who(ADMIN))
    form = {"csrf": csrf, "reason": "RUNAWAY", "confirm": id_of(begun)[-6:]}
    path = f"/sessions/{id_of(begun)}/stop"
    foreign = await world.oversight.client.post(path, data=form, headers={"origin": "https://evil.example"})
    got = await world.oversight.client.get(path, params=form)

    assert (foreign.status_code, got.status_code) == (403, 405)
    assert "ORIGIN_NOT_ALLOWED" in foreign.text
    assert csrf not in foreign.text
    assert await ends(world, id_of(begun)) == []


async def test_a_stop_is_no_sidecars_to_write(world, begun):
    """Only the audit service says that an admin stopped a session."""
    data = {"reason": "ADMIN", "stopped_by": ADMIN, "why": "TEST", "final_safety_budget": "1.0"}
    event = audit_pb2.NewEvent(
        event_type="SESSION_TERMINATED", severity=audit_pb2.SEVERITY_WARN, data_json=json.dumps(data)
    )
    answer = await world.sidecar.mesh.audit.Record(audit_pb2.RecordRequest(session_id=id_of(begun), events=[event]))

    assert answer.refusal.reason == "RESERVED_EVENT_TYPE"


async def kernel_of(world, name: str, **definition):
    """Open a kernel of a caller; return it, and the name of the caller's key."""
    key = "sk-of-the-team"
    kernel = KernelClient(world.sidecar.client, name, key=key)
    await kernel.open(**definition)
    begun = await world.sidecar.chat(headers={"authorization": f"Bearer {key}"})
    created = [one for one in await world.sidecar.events(id_of(begun)) if one.event_type == "SESSION_CREATED"]
    return kernel, json.loads(created[0].data_json)["scope"]


@pytest.mark.parametrize(
    ("name", "definition", "action"), [("own", {}, "leave"), ("without", {"actions": [TASK]}, "console.stop")]
)
async def test_an_admin_stops_a_kernel_and_who_and_why_is_sealed(world, name, definition, action):
    """By its own emergency action, or by the console's where it has none; what comes next is rejected."""
    kernel, scope = await kernel_of(world, name, **definition)
    csrf = await world.oversight.browse(**who(ADMIN))
    before = await world.oversight.client.get("/kernels", params={"scope": scope, "kernel": name})
    answer = await posted(world, "/kernels/stop", csrf, scope=scope, kernel=name, confirm=name, reason="HARMFUL")
    after = await world.oversight.client.get("/kernels", params={"scope": scope, "kernel": name})
    verdict = (await kernel.execute("task", "later"))["verdict"]
    sealed = [json.loads(one["data_json"]) for one in await kernel.trace() if one["type"] == "KERNEL_EMERGENCY"]

    assert 'action="/kernels/stop"' in before.text
    assert answer.status_code == 303, answer.text
    assert "It is stopped, for good" in after.text
    assert "KERNEL_STOPPED" in failed(verdict)
    assert [one["action"] for one in sealed] == [action]
    assert sealed[0]["key"].startswith(f"{ADMIN}/HARMFUL/")


async def test_a_closed_kernel_without_an_emergency_action_says_that_it_cannot_be_stopped(world):
    """In words, and it goes on: its definition does not allow another action."""
    kernel, scope = await kernel_of(world, "closed", actions=[TASK], open_registry=False)
    csrf = await world.oversight.browse(**who(ADMIN))
    answer = await posted(world, "/kernels/stop", csrf, scope=scope, kernel="closed", confirm="closed", reason="TEST")

    assert (answer.status_code, "KERNEL_REGISTRY_CLOSED" in answer.text) == (403, True)
    assert (await kernel.execute("task", "later"))["verdict"]["approved"]


@pytest.mark.parametrize(("name", "shown"), [(VIEWER, False), (agents.REVIEWER, True)])
async def test_the_values_of_a_kernel_are_content(world, name, shown):
    """A viewer sees what is left of its resources; the values that agents put there are for reviewers."""
    text = {"name": "note", "type": "VARIABLE_TYPE_TEXT", "initial": {"text": "QUOKKA"}}
    await kernel_of(world, "values", variables=[text], invariants=[], actions=[TASK])
    _, scope = await kernel_of(world, "values", variables=[text], invariants=[], actions=[TASK])
    await world.oversight.browse(**who(name))
    page = (await world.oversight.client.get("/kernels", params={"scope": scope, "kernel": "values"})).text

    assert "usd" in page
    assert ("QUOKKA" in page) is shown


async def test_a_call_in_flight_is_settled_and_its_answer_released(world, begun):
    """The stop holds from the next call on: what was asked before it is judged, sealed and charged as usual."""
    csrf = await world.oversight.browse(**who(ADMIN))
    go_on, asked = threading.Event(), len(world.provider.received)
    world.provider.waits_for(go_on)
    try:
        calling = asyncio.create_task(world.sidecar.chat(token=token_of(begun)))
        while len(world.provider.received) == asked:
            await asyncio.sleep(0.01)
        assert (await stopped(world, id_of(begun), csrf)).status_code == 303
        go_on.set()
        answer = await calling
    finally:
        go_on.set()
        world.provider.answers(SAID)
    verified = await world.sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=id_of(begun)))

    assert answer.status_code == 200, answer.text
    assert (verified.windows, list(verified.faults)) == (2, [])
    assert reason_of(await world.sidecar.chat(token=token_of(answer))) == "SESSION_TERMINATED"
