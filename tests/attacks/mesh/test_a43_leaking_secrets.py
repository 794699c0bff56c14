"""A-43: secrets in logs, traces, errors, metrics, the process list, the audit log's plain columns, and core dumps."""

from __future__ import annotations

import json
import sqlite3
from contextlib import AsyncExitStack

import grpc
import httpx
import psutil
import pytest
import pytest_asyncio

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from tests.support.servers.collector import Collector
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.pairs import two_pairs
from tests.support.sidecar.sidecar import token_of
from tests.support.texts.canary import API_KEY, MASTER_KEY, PASSWORD, PROMPT, found_in

pytestmark = [
    pytest.mark.long, pytest.mark.timeout(180), pytest.mark.req("SVC-5"), pytest.mark.asyncio(loop_scope="module"),
]  # fmt: skip

ANSWER = "canary-answer you should sell everything"
FACT = "canary-fact her account number is 4711"


class Told:
    """What a mesh that was given secrets, and used with secrets, let out; by where."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.tokens: list[str] = []
        self.core_limits: set[int] = set()

    def secrets_in(self, place: str) -> list[str]:
        text = self.places[place]
        parts = [part for token in self.tokens for part in (token, *token.split("."))]
        return [*found_in(text), *(one for one in (ANSWER, FACT, *parts) if one in text)]


async def use(told: Told, http: str, address: str) -> str:
    """Make calls of every kind, good and bad, with secrets in all that a caller can put them into; return what came back."""
    back, back_text = [], []
    bearer = {"authorization": f"Bearer {API_KEY}"}
    ask = {"model": "m", "messages": [{"role": "system", "content": FACT}, {"role": "user", "content": PROMPT}]}
    async with httpx.AsyncClient(base_url=http, trust_env=False, timeout=30) as client:
        good = await client.post("/v1/chat/completions", json=ask, headers=bearer)
        assert good.status_code == 200, good.text
        told.tokens.append(token_of(good))
        token = {"crp-session-token": told.tokens[0]}
        for headers in ({**bearer, **token}, token, {**bearer, "crp-session-token": told.tokens[0][:-4] + "AAAA"}):
            back.append(await client.post("/v1/chat/completions", json=ask, headers=headers))
        back.append(await client.post("/v1/chat/completions", json={**ask, "stream": True}, headers=bearer))
        back.append(await client.post("/v1/chat/completions", content=f"{{{PROMPT}".encode(), headers=bearer))
        back.append(await client.post(f"/v1/{API_KEY}", params={"q": PROMPT}, headers={"crp-safety-policy": PROMPT}))
        back.append(await client.get(f"/crp/v3/session/{API_KEY}", headers=token))
        told.tokens += [token_of(one) for one in back if "crp-set-session" in one.headers]
    async with grpc.aio.insecure_channel(address) as channel:
        for key, text in ((API_KEY, ANSWER), (PASSWORD, PROMPT), ("", PROMPT)):
            call = SidecarServiceStub(channel).Check(
                sidecar_pb2.CheckRequest(text=text, facts=[{"id": "f", "content": FACT, "importance": 0.5}], query=PROMPT),
                metadata=(("authorization", f"Bearer {key}"),), timeout=20,
            )  # fmt: skip
            try:
                told.tokens.append((await call).outcome.session_token)
            except grpc.aio.AioRpcError as error:
                back_text.append(str(error.details()) + str(error.trailing_metadata()))
    told.tokens = [token for token in told.tokens if token]
    refused = [one for one in back if one.status_code >= 400]
    assert len(refused) >= 4
    # A path that is not served is named to whoever asked for it, and to nobody else: the logs are searched for it too.
    return "".join([*(one.text for one in refused if "is not supported" not in one.text), *back_text])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def told(tmp_path_factory, valkey):
    """Run the mesh, use it, and gather everything that it let out."""
    folder, found = tmp_path_factory.mktemp("canary"), Told()
    async with AsyncExitStack() as ends:
        collector = ends.enter_context(Collector())
        provider = ends.enter_context(RunningProvider(Provider()))
        provider.provider.answers(ANSWER)
        settings = {
            "master_key": MASTER_KEY, "upstream_api_key": API_KEY, "log_level": "debug", "redis_url": valkey.url,
            "otlp_endpoint": collector.endpoint,
        }  # fmt: skip
        pairs = await ends.enter_async_context(two_pairs(folder, provider.base_url, valkey.url, settings))
        found.places["errors"] = await use(found, pairs.http[0], pairs.grpc[0])
        pages = [httpx.get(f"{pairs.http[0]}{path}", timeout=20).text for path in ("/metrics", "/readyz", "/healthz")]
        for process in pairs.by_name.values():
            if port := process.ports.get("metrics"):
                pages.append(httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=20).text)
            running = psutil.Process(process.child.pid)
            found.core_limits.add(running.rlimit(psutil.RLIMIT_CORE)[1])
            whole = [running, *running.children(recursive=True)]
            found.places.setdefault("argv", "")
            found.places["argv"] += "\n".join(" ".join(one.cmdline()) for one in whole)
        found.places["metrics"] = "".join(pages)
        found.places["logs"] = pairs.processes.everything()
        with sqlite3.connect(folder / "state" / "audit.db") as reader:
            found.places["events"] = "\n".join(str(row) for row in reader.execute("SELECT * FROM events"))
        reader.close()
    found.places["logs"] += pairs.processes.everything()
    found.places["traces"] = "".join(str(span) for _, span in collector.spans)
    return found


@pytest.mark.parametrize("place", ["logs", "traces", "errors", "metrics", "argv", "events"])
async def test_a43_no_secret_is_in(told, place):
    """Not a key, a password, a prompt, a fact, an answer or a part of a token stands in this output."""
    assert len(told.places[place]) > 50, "there must be something to look at"
    assert told.secrets_in(place) == []


async def test_a43_the_logs_are_those_of_the_calls(told):
    """The outputs that were searched are the right ones: they tell of the calls that were made."""
    lines = [json.loads(line) for line in told.places["logs"].splitlines() if line.startswith("{")]

    assert {"sidecar", "session", "audit"} <= {line.get("service") for line in lines if line.get("event") == "rpc"}
    assert "OpenWindow" in told.places["traces"]
    assert len(told.tokens) >= 3


async def test_a43_no_process_leaves_a_core_dump(told):
    """The limit of core dumps is 0 in every process: a crash writes no memory to the disk."""
    assert told.core_limits == {0}
