"""A-37: two keys share a deployment and nothing else: no RPC and no route shows one what the other has."""

from __future__ import annotations

import json

import grpc
import pytest
from starlette.routing import Route

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.sidecar.fronts.http import make_app
from tests.support.sidecar.sidecar import running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)

ALICE, BOB = {"authorization": "Bearer alice-key"}, {"authorization": "Bearer bob-key"}
CANARY = "Alices secret figure is 31415."
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "?"}]}).encode()


def calls(token: str, session: str, pointer: str) -> dict[str, list]:
    """One call of every method of the sidecar's API that names what Alice has."""
    context = sidecar_pb2.CallContext(session_token=token)
    pointed = sidecar_pb2.CallContext(session_token=token, continuation_id=pointer)
    parent = sidecar_pb2.CallContext(agent_session_parent=session)
    return {
        "Dispatch": [sidecar_pb2.DispatchRequest(chat_request=CHAT, context=one) for one in (context, pointed, parent)],
        "DispatchStream": [
            sidecar_pb2.DispatchRequest(chat_request=CHAT, context=one) for one in (context, pointed, parent)
        ],
        "Check": [sidecar_pb2.CheckRequest(text="x", context=one) for one in (context, pointed)],
        "StartSession": [sidecar_pb2.StartSessionRequest(parent=sidecar_pb2.Parent(session_token=token))],
        "GetSession": [sidecar_pb2.GetSessionRequest(session_token=token)],
        "Delegate": [sidecar_pb2.DelegateRequest(context=context)],
        "Batch": [sidecar_pb2.BatchRequest(context=context, items=[sidecar_pb2.BatchItem(id="a", chat_request=CHAT)])],
        "GetDag": [sidecar_pb2.GetDagRequest(session_token=token, tree=tree) for tree in (False, True)],
        "GetHeld": [sidecar_pb2.GetHeldRequest(session_token=token)],
        "Terminate": [sidecar_pb2.TerminateRequest(session_token=token)],
    }


def test_a37_every_method_of_the_sidecar_is_tried():
    """A new method has to be added here before it can be served."""
    assert set(calls("t", "s", "p")) == set(sidecar_pb2.DESCRIPTOR.services_by_name["SidecarService"].methods_by_name)


@pytest.mark.req("SVC-2", "TOK-3", "DAG-4")
async def test_a37_what_one_key_has_no_other_key_sees(tmp_path, upstream, provider, redis_url):
    """Bob with Alice's token, ids, pointers, results and URIs, over gRPC and HTTP: refused, and nothing of hers comes back."""
    async with running_sidecar(tmp_path, upstream=upstream, redis_url=redis_url) as sidecar:
        provider.answers(CANARY)
        alices = await sidecar.chat(headers=ALICE)
        provider.answers("Fine.")
        bobs = await sidecar.chat(headers=BOB)
        token, session = token_of(alices), alices.headers["crp-context-session-id"]
        pointer = alices.headers["crp-context-continuation-id"]
        window = (
            await sidecar.client.get(f"/crp/v3/session/{session}", headers={**ALICE, "crp-session-token": token})
        ).json()
        secrets = [CANARY, token, window["windows"][0]["window_id"], alices.headers["crp-provenance-hmac"]]
        asked = len(provider.received)

        for method, requests in calls(token, session, pointer).items():
            for request in requests:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    call = getattr(sidecar.stub, method)(request, metadata=tuple(BOB.items()))
                    _ = [part async for part in call] if hasattr(call, "__aiter__") else await call
                assert caught.value.code() in {
                    grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT,
                }, (method, caught.value)  # fmt: skip
                assert not [one for one in secrets if one in str(caught.value)], method

        for method, path, headers, body in _routes(alices, window, token_of(bobs)):
            answer = await sidecar.client.request(method, path, headers={**BOB, **headers}, content=body)
            assert answer.status_code in {400, 401, 403, 404}, (method, path, answer.text)
            shown = answer.text + str(answer.headers)
            assert not [one for one in secrets if one in shown], (method, path)

        untouched = await sidecar.chat(token=token, headers=ALICE)
        metrics = (await sidecar.client.get("/metrics")).text
        prompts = [json.dumps(one.body) for one in provider.received[1:-1]]

    assert len(provider.received) == asked + 1
    assert untouched.status_code == 200
    assert not [prompt for prompt in prompts if CANARY in prompt]
    assert not [one for one in (session, window["windows"][0]["window_id"], "alice-key", CANARY) if one in metrics]


def _routes(alices, shown, bobs_token):
    """Every route of the front that names something, as Bob would try it: with Alice's token, and with his own."""
    session, window = shown["session_id"], shown["windows"][0]["window_id"]
    trail = alices.headers["crp-compliance-audit-trail-id"]
    result = {"session_id": session, "hmac": alices.headers["crp-provenance-hmac"]}
    made_from = {
        "model": "m",
        "messages": [{"role": "user", "content": "?"}],
        "interlock": {"sub_agent_results": [result]},
    }
    typed = {"content-type": "application/json"}
    for token in (token_of(alices), bobs_token):
        sent = {"crp-session-token": token}
        yield "GET", f"/crp/v3/session/{session}", sent, None
        yield "DELETE", f"/crp/v3/session/{session}", sent, None
        yield "GET", f"/crp/v3/session/{session}/dag?tree=true", sent, None
        yield "GET", f"/crp/v3/session/{session}/held/{window}", sent, None
        yield "GET", f"/crp/v3/reports/{window}", sent, None
        yield "GET", f"/crp/v3/trails/{trail}", sent, None
        yield "POST", "/v1/chat/completions", {**sent, **typed}, json.dumps(made_from).encode()
    pointed = {
        "crp-session-token": bobs_token,
        "crp-context-continuation-id": alices.headers["crp-context-continuation-id"],
    }
    yield "POST", "/v1/chat/completions", {**pointed, **typed}, CHAT
    yield "POST", "/crp/v3/delegations", {"crp-session-token": token_of(alices), **typed}, b"{}"
    yield (
        "POST",
        "/crp/v3/batch",
        {"crp-session-token": token_of(alices), **typed},
        b'{"items": [{"id": "a", "body": %s}]}' % CHAT,
    )


@pytest.mark.req("SVC-2")
async def test_a37_every_route_of_the_front_is_tried(sidecar):
    """A new route that names something has to be added above."""

    async def missing():
        return {}

    app = make_app(type("Front", (), {"settings": sidecar.settings, "kernels": None})(), missing, "http://a", [])
    # Kernels stand below their caller's own scope (test_kernel_wire), and a model is nobody's.
    named = {
        route.path
        for route in app.routes
        if isinstance(route, Route) and "{" in route.path and "/{kernel}" not in route.path
    }

    assert named == {
        "/crp/v3/session/{session_id}", "/crp/v3/session/{session_id}/dag", "/crp/v3/session/{session_id}/held/{window_id}",
        "/crp/v3/reports/{window_id}", "/crp/v3/trails/{trail_id}", "/v1/{rest:path}", "/v1/models/{model:path}",
    }  # fmt: skip
