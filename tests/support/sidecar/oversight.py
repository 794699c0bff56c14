"""Holding, deciding and releasing in tests: reviewers, their tokens, and a sidecar whose answers are held."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.api.audit.v1 import audit_pb2
from interlock.api.oversight.v1 import oversight_pb2
from interlock.api.oversight.v1.oversight_pb2_grpc import OversightServiceStub
from interlock.cli.probing.running import running_parts
from interlock.domain import approval
from interlock.domain.approval import Approval
from interlock.oversight.wiring import OpenedOversight, open_oversight
from interlock.runtime.clock import iso8601, system_clock
from interlock.runtime.http.server import WebServer, listen
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.policy import agents
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar, token_of

HOLDS = {"crp-safety-oversight-mode": "human-review"}
"""Request headers under which an answer of HIGH or CRITICAL risk is held."""


def _on_port(opened: OpenedOversight, settings: Settings) -> RpcServer:
    return RpcServer([opened.service], settings.model_copy(update={"allow_plaintext": True}), port=0)


_NUMBERS = itertools.count(1_000)


def token_for(
    item: audit_pb2.HeldItem | Mapping[str, Any],
    *,
    action: str = approval.RELEASE,
    number: int | None = None,
    key: Ed25519PrivateKey | None = None,
    reviewer: str = agents.REVIEWER,
    life_s: int = 600,
    issued_at: int | None = None,
    **scope: str,
) -> str:
    """Return a reviewer's signed decision about a held response, each with an id of its own."""
    if isinstance(item, audit_pb2.HeldItem):
        item = {name: getattr(item, name) for name in ("session_id", "window_id", "response_hash", "policy_hash")}
    pinned = {
        "session": item["session_id"], "window": item["window_id"], "response": item["response_hash"],
        "policy": item["policy_hash"], **scope,
    }  # fmt: skip
    issued = int(time.time()) - 1 if issued_at is None else issued_at
    made = Approval(
        f"crp_appr_{next(_NUMBERS) if number is None else number:032x}",
        reviewer,
        action,
        pinned,
        issued,
        issued + life_s,
    )
    payload = approval.canonical_payload(made)
    return approval.token(payload, (key or agents.private_key()).sign(approval.signed_bytes(payload)))


def decision(token: str, /, **changes: Any) -> audit_pb2.DecideHeldRequest:
    """Return the request that writes a decision down, as the oversight service would ask it."""
    said = approval.read(token).approval
    values = {
        "window_id": said.scope["window"],
        "approved": said.action == approval.RELEASE,
        "reviewer_id": said.reviewer,
        "approval_id": said.approval_id,
        "token": token,
        "response_hash": said.scope["response"],
        "expires_at": iso8601(said.expires_at * 1_000_000),
        **changes,
    }
    return audit_pb2.DecideHeldRequest(**values)


def held_path(response: httpx.Response) -> str:
    """The path of a 451's held_uri."""
    return httpx.URL(response.json()["metadata"]["held_uri"]).path


def window_of(response: httpx.Response) -> str:
    return response.json()["metadata"]["window_id"]


@dataclass
class RunningOversight:
    """Where the reviewers' side of a running sidecar listens."""

    http: str
    grpc: str
    stub: Any
    client: httpx.AsyncClient
    clock: Any
    secret: str
    """What the operator's link signs in with."""
    routes: list[Any]
    """Every route of the listener."""

    async def look(self, viewer: str = "operator") -> httpx.Response:
        """Sign the HTTP client in by the operator's link."""
        form = {"viewer": viewer, "secret": self.secret}
        return await self.client.post("/sign-in", data=form, headers={"origin": self.http})

    async def signed_in(self, *, key: Ed25519PrivateKey | None = None, reviewer: str = agents.REVIEWER) -> Any:
        """Open a view over gRPC and return the answer."""
        drawn = await self.stub.Challenge(oversight_pb2.ChallengeRequest(reviewer_id=reviewer))
        signature = (key or agents.private_key()).sign(drawn.challenge.encode())
        return await self.stub.SignIn(
            oversight_pb2.SignInRequest(reviewer_id=reviewer, challenge=drawn.challenge, signature=signature)
        )

    async def metadata(self, **who: Any) -> tuple[tuple[str, str], ...]:
        """The metadata of a signed-in reviewer."""
        return (("authorization", f"Bearer {(await self.signed_in(**who)).bearer}"),)

    async def browse(self, **who: Any) -> str:
        """Sign the HTTP client in as a browser would be, and return the CSRF token of its pages."""
        self.client.cookies.clear()
        self.client.cookies.set("interlock_view", (await self.signed_in(**who)).bearer)
        page = await self.client.get("/policy")
        return re.search(r'data-csrf="([^"]+)"', page.text)[1]

    async def post(self, path: str, body: Any, csrf: str = "", **headers: str) -> httpx.Response:
        """Post JSON from the page's own origin, unless *headers* say otherwise."""
        sent = {"origin": self.http, "x-csrf-token": csrf, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return await self.client.post(path, json=body, headers={k: v for k, v in sent.items() if v})


@asynccontextmanager
async def running_oversight(sidecar: RunningSidecar, **overrides: Any) -> AsyncIterator[RunningOversight]:
    """Serve the oversight service over the mesh of a running sidecar."""
    settings = sidecar.settings.model_copy(update={"oversight_port": 0, "oversight_http_port": 0, **overrides})

    async def ready() -> Mapping[str, str]:
        return {}

    async with AsyncExitStack() as ends:
        listener = listen(settings, 0, "oversight_http")
        ends.callback(listener.close)
        port = listener.getsockname()[1]
        clock = Shifted()
        opened = open_oversight(
            settings, sidecar.mesh, ready, lambda: running_parts(settings), http_port=port, clock=clock
        )
        web, server = WebServer(opened.http_app, settings, listener), _on_port(opened, settings)
        await web.start()
        ends.push_async_callback(web.drain)
        grpc_port = await server.start()
        ends.push_async_callback(server.drain)
        http = f"http://127.0.0.1:{port}"
        client = await ends.enter_async_context(httpx.AsyncClient(base_url=http, trust_env=False, timeout=30))
        channel = await ends.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{grpc_port}"))
        yield RunningOversight(
            http, f"127.0.0.1:{grpc_port}", OversightServiceStub(channel), client, clock, opened.link.secret,
            list(opened.http_app.routes),
        )  # fmt: skip


@dataclass
class Reviewed:
    """A sidecar whose answers of HIGH risk are held, the reviewers' side of it, and its provider."""

    sidecar: RunningSidecar
    oversight: RunningOversight
    provider: Provider


@asynccontextmanager
async def reviewed_world(folder: Path, reviewers: Any = None, **settings: Any) -> AsyncIterator[Reviewed]:
    """Serve all of it below *folder*, with the registered *reviewers*."""
    path = agents.write(folder / "reviewers.yaml", reviewers or agents.reviewers())
    provider = Provider()
    with RunningProvider(provider) as upstream:
        wanted = {"reviewers_file": path, "remediation": "none", **settings}
        async with running_sidecar(folder, upstream=upstream.base_url, **wanted) as sidecar:
            async with running_oversight(sidecar) as oversight:
                yield Reviewed(sidecar, oversight, provider)


async def status_of(sidecar: RunningSidecar, held: Any, **headers: str) -> dict[str, Any]:
    """Return what the sidecar says of a kept answer."""
    answer = await sidecar.client.get(held_path(held), headers={"crp-session-token": token_of(held), **headers})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def decided(sidecar: RunningSidecar, held: Any, **how: Any) -> str:
    """Approve what is kept, unless *how* says otherwise, and return the token."""
    token = token_for(await status_of(sidecar, held), **how)
    answer = await sidecar.mesh.audit.DecideHeld(decision(token))
    assert not answer.HasField("refusal"), answer.refusal
    return token


async def retried(sidecar: RunningSidecar, held: Any, token: str, **more: Any) -> Any:
    """Ask for a kept answer with an approval."""
    return await sidecar.chat(token=token_of(held), headers={"crp-oversight-token": token}, **more)


class Shifted:
    """The system's clock, moved by as much as a test says."""

    def __init__(self) -> None:
        self.by_s = 0

    def __call__(self) -> int:
        return system_clock() + self.by_s * 1_000_000
