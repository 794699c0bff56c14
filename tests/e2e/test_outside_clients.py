"""Clients that know nothing of this repository: curl over HTTP, and a gRPC client that has only reflection."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from grpc_requests import Client

from interlock.demo.mesh import DemoMesh
from interlock.demo.provider import Replay, RunningProvider
from interlock.demo.recording import Recording, load
from tests.support.paths import ROOT

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]
README = ROOT / "README.md"
SERVICE = "interlock.api.sidecar.v1.SidecarService"
FACT = {"id": "price", "content": "The Platinum plan costs $630 a month.", "importance": 0.9}


@dataclass(frozen=True)
class Running:
    """The mesh, what stands behind it, and what it may answer."""

    mesh: DemoMesh
    replay: Replay
    recording: Recording


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Running]:
    """The whole mesh as a process of its own, with the bundled provider behind it."""
    recording = load()
    replay = Replay(recording, api_key="provider-key")
    with RunningProvider(replay) as provider:
        settings = {"INTERLOCK_UPSTREAM_BASE_URL": provider.base_url, "INTERLOCK_UPSTREAM_API_KEY": "provider-key"}
        with DemoMesh(tmp_path_factory.mktemp("mesh"), settings) as mesh:
            mesh.wait_ready(lambda _: None)
            yield Running(mesh, replay, recording)


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def by_curl(url: str, headers: list[str], body: str) -> Answer:
    """Post with curl and read what it prints."""
    flags = [part for header in headers for part in ("-H", header)]
    command = ["curl", "-sS", "-i", "--noproxy", "*", "--max-time", "60", *flags, "--data-binary", "@-", url]
    said = subprocess.run(command, input=body.encode(), capture_output=True, check=True).stdout
    head, _, content = said.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Answer(int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}, content)


def by_http_client(url: str, headers: list[str], body: str) -> Answer:
    """Post with the standard library, for a machine without curl."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    connection.request("POST", parts.path, body.encode(), dict(header.split(": ", 1) for header in headers))
    answer = connection.getresponse()
    return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def post(running: Running, path: str, body: object, *more: str) -> Answer:
    """Post *body* to the mesh as an outside client would."""
    client = by_curl if shutil.which("curl") else by_http_client
    headers = ["Authorization: Bearer outside", "Content-Type: application/json", *more]
    return client(running.mesh.base_url + path, headers, json.dumps(body))


def chat(running: Running, turn: int = 0) -> dict:
    """A chat request that the bundled provider can answer."""
    question = running.recording.turns[turn].question
    messages = [{"role": "system", "content": running.recording.passage}, {"role": "user", "content": question}]
    return {"model": "recorded", "messages": messages}


@pytest.mark.req("SVC-2", "HDR-4", "HDR-5")
def test_curl_gets_the_recorded_answer_with_its_headers(running):
    """One POST without any CRP header gives the answer, its risk, the full budget line and a token."""
    before = running.replay.calls
    answer = post(running, "/chat/completions", chat(running))

    assert answer.status == 200, answer.body
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == running.recording.turns[0].answer
    assert answer.headers["crp-safety-hallucination-risk"] in {"LOW", "MEDIUM", "HIGH", "CRITICAL"}
    assert answer.headers["crp-set-session"].startswith("token=")
    assert 0 <= float(answer.headers["crp-agent-safety-budget"]) <= 1
    assert (running.replay.calls, running.replay.crp_headers) == (before + 1, set())


@pytest.mark.req("TOK-5", "HDR-5")
def test_curl_continues_its_session_with_the_token_it_was_given(running):
    """The token of the first answer is enough to go on; it does not reach the provider."""
    first = post(running, "/chat/completions", chat(running))
    token = first.headers["crp-set-session"].split(";")[0].removeprefix("token=")
    second = post(running, "/chat/completions", chat(running, 1), f"CRP-Session-Token: {token}")

    assert second.status == 200, second.body
    assert second.headers["crp-context-session-id"] == first.headers["crp-context-session-id"]
    assert running.replay.crp_headers == set()


@pytest.mark.req("TOK-5")
def test_a_token_that_was_used_is_refused(running):
    """The same token presented twice is a replay: 409, and the provider is not asked."""
    first = post(running, "/chat/completions", chat(running))
    token = first.headers["crp-set-session"].split(";")[0].removeprefix("token=")
    post(running, "/chat/completions", chat(running, 1), f"CRP-Session-Token: {token}")
    calls = running.replay.calls
    replayed = post(running, "/chat/completions", chat(running, 1), f"CRP-Session-Token: {token}")

    assert (replayed.status, running.replay.calls) == (409, calls)


@pytest.mark.req("SVC-2")
def test_an_endpoint_that_is_not_governed_says_so(running):
    """Nothing is passed on unscanned: 501, and the body tells why."""
    answer = post(running, "/moderations", {"model": "m", "input": "text"})

    assert answer.status == 501
    assert json.loads(answer.body)["error"]["message"]


@pytest.mark.req("HDR-6")
def test_a_response_only_header_in_a_request_is_refused(running):
    """A client cannot pretend to be judged already."""
    answer = post(running, "/chat/completions", chat(running), "CRP-Safety-Hallucination-Risk: LOW")

    assert answer.status == 400


@pytest.mark.parametrize("number", [0, 1], ids=["openai", "grpc"])
def test_the_python_examples_of_the_readme_run(running, number, monkeypatch, capsys):
    """Each example is taken from the page and run; only addresses and the question are those of this mesh."""
    example = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[
        number
    ]
    example = example.replace("http://127.0.0.1:7070/v1", running.mesh.base_url)
    example = example.replace("127.0.0.1:7071", running.mesh.grpc_address)
    example = example.replace("What does the Premium Package cost?", running.recording.turns[0].question)
    monkeypatch.setenv("OPENAI_API_KEY", "outside")
    exec(compile(example, "README.md", "exec"), {})

    said = capsys.readouterr().out
    assert said.startswith(("The email", "451", "{'action': 'ACTION_"))


@pytest.mark.req("SVC-4", "SVC-8")
def test_a_client_with_nothing_but_reflection_gets_a_decision(running):
    """grpc_requests finds the service and its messages by reflection and checks a completion that it already has."""
    client = Client.get_by_endpoint(running.mesh.grpc_address)
    outcome = client.request(
        SERVICE, "Check", {"text": FACT["content"], "facts": [FACT], "query": "What is the price?"}
    )["outcome"]

    assert SERVICE in client.service_names
    assert outcome["decision"]["action"] == "ACTION_DELIVER"
    assert outcome["session_id"].startswith("crp_sess_")
    assert outcome["report"]["claims"]


@pytest.mark.req("SVC-8", "BUD-1")
def test_a_changed_price_costs_the_checked_session_budget(running):
    """The same check of a text that contradicts its fact is charged: what was found is in the report."""
    client = Client.get_by_endpoint(running.mesh.grpc_address)
    text = "The Platinum plan costs $900 a month."
    outcome = client.request(SERVICE, "Check", {"text": text, "facts": [FACT], "query": "What is the price?"})[
        "outcome"
    ]

    assert outcome["report"]["distortion_count"] == 1
    assert int(outcome["safety_budget_micros"]) < 1_000_000
