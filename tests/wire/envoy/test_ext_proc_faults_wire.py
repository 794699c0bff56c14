"""What goes wrong between Envoy, the sidecar and the provider: nothing that was not judged passes (MSH-1; reliability.md A-33)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from typing import Any

import httpx
import pytest

from interlock.cli.keys import certificates
from tests.support.servers.envoy import cluster, first_filter, manager, needs_envoy, shipped
from tests.support.servers.ports import free_port
from tests.support.servers.provider import completion, message
from tests.support.servers.tcp import Proxy, listening
from tests.support.sidecar.behind_envoy import QUESTION, STRICT, behind_envoy

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [needs_envoy, pytest.mark.req("MSH-1")]

ANSWER = "What nobody judged."
CHAT = {"model": "m", "messages": QUESTION}
NOT_JUDGED = 500
"""The lowest status of a call that was not governed."""


@pytest.fixture
async def mesh(tmp_path, upstream):
    async with behind_envoy(tmp_path, upstream, max_body_bytes=65_536, upstream_timeout_s=3.0) as running:
        yield running


@contextlib.asynccontextmanager
async def client_of(mesh: Any):
    async with httpx.AsyncClient(base_url=mesh.envoy.url, trust_env=False, timeout=30) as client:
        yield client


async def asked(mesh: Any, **more: Any) -> httpx.Response:
    async with client_of(mesh) as client:
        return await client.post("/v1/chat/completions", **{"json": CHAT, **more})


async def test_without_interlock_nothing_reaches_the_provider(tmp_path, upstream, provider):
    """Where nothing listens, the client gets an error and the provider no request."""
    async with behind_envoy(tmp_path, upstream, asked=free_port()) as mesh:
        response = await asked(mesh)

    assert response.status_code >= NOT_JUDGED
    assert not provider.received


async def test_an_interlock_that_dies_meanwhile_lets_no_answer_pass(tmp_path, upstream, provider):
    """The connection is cut while the provider answers: what it says then is dropped."""
    answer = threading.Event()
    provider.waits_for(answer, ANSWER)
    async with behind_envoy(tmp_path, upstream) as mesh:
        proxy = Proxy(mesh.sidecar.envoy)
        async with listening(proxy.handle) as port, behind_envoy(tmp_path / "two", upstream, asked=port) as cut:
            asking = asyncio.create_task(asked(cut))
            await asyncio.to_thread(provider.asked.wait, 20)
            proxy.cut()
            answer.set()
            response = await asking

    assert response.status_code >= NOT_JUDGED
    assert ANSWER not in response.text


def _without_the_filter(config: dict[str, Any]) -> None:
    del manager(config)["http_filters"][0]


async def test_without_the_filter_no_route_leads_to_the_provider(tmp_path, upstream, provider):
    """The route asks for the mark that only Interlock sets, and a client's own mark is taken off."""
    async with behind_envoy(tmp_path, upstream, change=_without_the_filter) as mesh:
        response = await asked(mesh, headers={"x-interlock-governed": "1"})

    assert response.status_code == 503
    assert not provider.received


UNSAFE = {
    "answers are not sent": {"response_body_mode": "NONE"},
    "answers are buffered": {"response_body_mode": "BUFFERED"},
    "requests are not sent": {"request_body_mode": "NONE"},
    "heads of answers are not sent": {"response_header_mode": "SKIP"},
}


@pytest.mark.parametrize("mode", UNSAFE.values(), ids=UNSAFE)
async def test_a_filter_that_would_let_something_pass_is_refused(tmp_path, upstream, provider, mode):
    """A filter that was changed ends in errors and not in answers that nobody judged."""
    provider.answers(ANSWER)
    try:
        async with behind_envoy(
            tmp_path, upstream, change=lambda config: first_filter(config)["processing_mode"].update(mode)
        ) as mesh:
            response = await asked(mesh)
    except httpx.RemoteProtocolError:  # the connection breaks before a byte of the body
        return
    except AssertionError as refused:  # Envoy itself takes no such configuration
        assert "ext_proc" in str(refused) or "mode" in str(refused)
        return

    assert response.status_code >= NOT_JUDGED
    assert ANSWER not in response.text


async def test_headers_that_only_an_answer_has_are_refused(mesh, provider):
    """A client cannot say of itself what only Interlock says."""
    response = await asked(mesh, headers={"crp-safety-hallucination-risk": "LOW"})

    assert response.status_code == 400
    assert not provider.received


async def test_headers_of_the_provider_do_not_reach_the_client(mesh, provider):
    """Neither forged CRP headers nor cookies nor others of its own."""
    forged = {
        "crp-safety-hallucination-risk": "CRITICAL",
        "crp-memory-ckf-hits": "9",
        "set-cookie": "a=b",
        "x-own": "1",
    }
    provider.completes(completion(message("The answer is fine.")), headers=forged)
    response = await asked(mesh)

    assert response.headers["crp-safety-hallucination-risk"] == "LOW"
    assert response.headers.get("set-cookie", "").startswith("crp_session") or "set-cookie" not in response.headers
    assert not {"crp-memory-ckf-hits", "x-own", "x-envoy-upstream-service-time"} & set(response.headers)


@pytest.mark.parametrize(
    ("path", "status"), [("/metrics", 404), ("/readyz", 404), ("/v1/audio/speech", 501), ("/anything", 404)]
)
async def test_a_path_that_is_not_governed_ends_at_interlock(mesh, provider, path, status):
    """What the HTTP front does not have, Envoy does not pass on; the operators' pages are not there."""
    async with client_of(mesh) as client:
        response = await client.get(path) if status == 404 else await client.post(path, json={})

    assert response.status_code == status
    assert not provider.received


async def test_a_body_that_is_too_large_is_refused(mesh, provider):
    """With the reason and the status of the HTTP front, before the provider is asked."""
    body = {"model": "m", "messages": [{"role": "user", "content": "x" * 3_000_000}]}
    response = await asked(mesh, json=body)

    assert response.status_code == 413
    assert response.json()["reason"] == "REQUEST_TOO_LARGE"
    assert not provider.received


async def test_an_answer_that_is_too_large_is_refused(mesh, provider):
    """A provider that answers more than is read gets no further."""
    provider.answers("long " * 100_000)
    response = await asked(mesh)

    assert (response.status_code, response.json()["reason"]) == (502, "UPSTREAM_INVALID_RESPONSE")


async def test_a_provider_that_cannot_be_reached(tmp_path):
    """Envoy's own answer is not taken for the provider's."""
    async with behind_envoy(tmp_path, f"http://127.0.0.1:{free_port()}/v1") as mesh:
        response = await asked(mesh)

    assert (response.status_code, response.json()["reason"]) == (502, "UPSTREAM_UNAVAILABLE")


async def test_a_provider_that_took_the_request_and_broke_off_is_charged(tmp_path):
    """It may have generated before its connection ended: the answer is not had for nothing by breaking it off."""

    async def takes(reader, _writer):
        await reader.readuntil(b"\r\n\r\n")

    async with (
        listening(takes) as port,
        behind_envoy(tmp_path, f"http://127.0.0.1:{port}", spending_limit_usd=10.0) as mesh,
    ):
        response = await asked(mesh)
        events = await mesh.sidecar.events(response.headers["crp-context-session-id"])

    assert (response.status_code, response.json()["reason"]) == (502, "UPSTREAM_DISCONNECTED")
    charged = [json.loads(one.data_json)["tokens"] for one in events if one.event_type == "SPENDING_CHARGED"]
    assert [tokens > 1000 for tokens in charged] == [True]


async def test_a_provider_that_says_no(mesh, provider):
    """Its refusal is told as by the HTTP front."""
    provider.fails(429, headers={"retry-after": "7"})
    response = await asked(mesh)

    assert (response.status_code, response.json()["reason"]) == (429, "UPSTREAM_RATE_LIMITED")
    assert response.headers["retry-after"] == "7"


async def test_a_provider_that_hangs(mesh, provider):
    """After upstream_timeout_s the client gets a time-out."""
    provider.hangs()
    response = await asked(mesh)

    assert (response.status_code, response.json()["reason"]) == (504, "UPSTREAM_TIMEOUT")


async def test_a_provider_that_breaks_off(mesh, provider):
    """Half an answer is none: the client gets an error, or its connection ends."""
    provider.closes_mid_body()
    try:
        response = await asked(mesh)
    except httpx.TransportError:
        return

    assert response.status_code >= NOT_JUDGED


async def test_a_client_that_hangs_up_does_not_avoid_the_charge(mesh, provider):
    """The answer is there when the client leaves, while it is judged: it is charged and sealed all the same."""
    judging, go_on = asyncio.Event(), asyncio.Event()

    async def gate() -> None:
        judging.set()
        await go_on.wait()

    first = await asked(mesh)
    token = first.headers["crp-set-session"].split(";")[0].removeprefix("token=")
    provider.answers("This is CRITICAL.")
    mesh.sidecar.dpe.gate = gate
    asking = asyncio.create_task(asked(mesh, headers={**STRICT, "crp-session-token": token}))
    await judging.wait()
    asking.cancel()
    await asyncio.sleep(0.2)
    go_on.set()
    shown = await mesh.sidecar.settled(first, windows=2)

    assert shown["safety_budget_micros"] == 650_000


@pytest.mark.parametrize(("member", "admitted"), [("envoy", True), ("operator", False), ("decision", False)])
async def test_only_the_certificate_of_envoy_is_asked_with(tmp_path, upstream, provider, member, admitted):
    """Over mutual TLS, as it is shipped: another member of the mesh brings no answers."""
    certificates.make(tmp_path, trust_domain="interlock", days=1)

    def with_tls(config: dict[str, Any]) -> None:
        text = json.dumps(cluster(shipped("models"), "interlock")["transport_socket"])
        text = text.replace("/etc/interlock/envoy", str(tmp_path / member)).replace("/etc/interlock", str(tmp_path))
        cluster(config, "interlock")["transport_socket"] = json.loads(text)

    files = {
        "tls_cert_file": tmp_path / "sidecar.pem", "tls_key_file": tmp_path / "sidecar.key", "tls_ca_file": tmp_path / "ca.pem",
    }  # fmt: skip
    async with behind_envoy(tmp_path / "mesh", upstream, change=with_tls, allow_plaintext=False, **files) as mesh:
        response = await asked(mesh)

    assert (response.status_code == 200) is admitted
    assert len(provider.received) == (1 if admitted else 0)


def _with_trailers(config: dict[str, Any]) -> None:
    manager(config)["http_protocol_options"] = {"enable_trailers": True}


async def test_trailers_end_at_interlock(tmp_path, upstream, provider):
    """A request with trailers is governed like any other, and the provider gets none of them."""
    async with behind_envoy(tmp_path, upstream, change=_with_trailers) as mesh:
        reader, writer = await asyncio.open_connection("127.0.0.1", mesh.envoy.port)
        body = httpx.Request("POST", "http://x", json=CHAT).read()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
            + f"{len(body):x}\r\n".encode()
            + body
            + b"\r\n0\r\ncrp-safety-mode: permissive\r\n\r\n"
        )
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert not [name for name, _ in provider.received[0].headers if name.startswith("crp-")]
