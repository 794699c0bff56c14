"""``interlock serve`` as real processes: start, readiness, faults, end."""

from __future__ import annotations

import json
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import grpc
import httpx
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from interlock.api.session.v1 import session_pb2
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from interlock.domain.policy.directives import policy_hash
from interlock.runtime.rpc.errors import from_rpc_error
from tests.support.servers.collector import Collector
from tests.support.servers.ports import free_port
from tests.support.servers.processes import Processes, environment, run
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.mesh import TOPOLOGIES, Front, start_front
from tests.support.texts.canary import API_KEY, MASTER_KEY, PROMPT, found_in
from tests.support.valkey import Valkey

PATIENCE_S = 30.0
MEMORY_LIMIT_BYTES = 80 * 2**20
SERVICES = ("session", "policy", "dpe", "audit")


def eventually(ask, expected):
    """Return what *ask* says once it is *expected*; recovery has no fixed time, only a bound."""
    deadline = time.monotonic() + PATIENCE_S
    while (said := ask()) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return said


def ready(url: str) -> dict:
    return httpx.get(f"{url}/readyz", timeout=10).json()


def missing(url: str) -> set[str]:
    return set(ready(url)["missing"])


def status_of(address: str, service: str) -> str:
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        try:
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        except grpc.RpcError as error:
            return error.code().name
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


def check(address: str, *, text: str = "Paris is the capital of France.", token: str = "", key: str = "agent-key"):
    with grpc.insecure_channel(address) as channel:
        return SidecarServiceStub(channel).Check(
            sidecar_pb2.CheckRequest(
                context=sidecar_pb2.CallContext(session_token=token),
                text=text,
                facts=[{"id": "f1", "content": "Paris is the capital of France.", "importance": 0.9}],
                query="What is the capital of France?",
            ),
            metadata=(("authorization", f"Bearer {key}"),),
            timeout=60,
        )


def check_fails(address: str) -> str:
    """Return the reason with which a Check is refused; empty when it is answered."""
    try:
        check(address)
    except grpc.RpcError as error:
        return from_rpc_error(error, "sidecar").reason
    return ""


def children_of(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@dataclass(frozen=True)
class Running:
    """A mesh in one topology, the Valkey and the trace collector beside it, and what it said before the Valkey came."""

    front: Front
    valkey: Valkey
    collector: Collector
    missing_at_start: set[str]
    refused_at_start: str


@pytest.fixture(scope="module", params=TOPOLOGIES)
def running(request, tmp_path_factory):
    """A mesh with secrets in its settings that was started before its Valkey."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "valkey").mkdir()
    valkey = Valkey(folder / "valkey")
    with Collector() as collector:
        settings = {
            "master_key": MASTER_KEY, "upstream_api_key": API_KEY, "log_level": "debug",
            "redis_url": valkey.url, "otlp_endpoint": collector.endpoint,
        }  # fmt: skip
        started = start_front(request.param, folder, settings)
        with started.processes:
            absent, refused = missing(started.http), check_fails(started.grpc)
            with valkey:
                assert eventually(lambda: missing(started.http), set()) == set()
                yield Running(started, valkey, collector, absent, refused)


@pytest.fixture
def front(running):
    """The front of a mesh that is ready."""
    assert eventually(lambda: missing(running.front.http), set()) == set()
    return running.front


@pytest.mark.models
@pytest.mark.req("SVC-1", "SVC-4")
def test_every_service_serves_and_is_healthy(front):
    """Session, policy, dpe, audit and sidecar each listen in a place of their own and say SERVING."""
    places = {name: p.address(name) for p in front.processes.all.values() for name in (*p.ports, *p.sockets)}
    names = {name: f"interlock.api.{name}.v1.{name.capitalize()}Service" for name in SERVICES}
    said = {name: status_of(places[name], full) for name, full in names.items()}
    said["sidecar"] = status_of(places["sidecar_grpc"], "interlock.api.sidecar.v1.SidecarService")

    assert said == dict.fromkeys([*SERVICES, "sidecar"], "SERVING")
    assert ready(front.http) == {"ready": True, "missing": {}}


@pytest.mark.models
@pytest.mark.req("SVC-1")
def test_a_governed_call_goes_through(front):
    """A completion is checked, charged and sealed in either topology, and its successor continues the session."""
    first = check(front.grpc).outcome
    second = check(front.grpc, token=first.session_token).outcome

    assert first.safety_budget_micros == 1_000_000
    assert second.session_id == first.session_id
    assert second.headers["CRP-Provenance-HMAC"] != first.headers["CRP-Provenance-HMAC"]


@pytest.mark.models
@pytest.mark.req("SVC-5")
def test_metrics_are_served(front):
    """/metrics of the sidecar counts the calls of its own fronts."""
    check(front.grpc)
    text = httpx.get(f"{front.http}/metrics", timeout=10).text

    assert 'interlock_requests_total{code="OK",method="Check",service="sidecar"}' in text


@pytest.mark.models
@pytest.mark.req("SVC-5")
def test_nothing_secret_is_printed(front):
    """Prompt, answer, facts, keys and tokens of a call are in no output of any process, at the loudest level."""
    token = check(front.grpc, text=f"{PROMPT}. {API_KEY}", key=API_KEY).outcome.session_token
    httpx.post(
        f"{front.http}/v1/chat/completions",
        json={"model": "m", "messages": [{"role": "user", "content": PROMPT}], "user": API_KEY},
        headers={"authorization": f"Bearer {API_KEY}", "CRP-Session-Token": token, "CRP-Safety-Policy": PROMPT},
        timeout=30,
    )
    httpx.post(f"{front.http}/v1/chat/completions", content=f"{{{PROMPT}".encode(), timeout=30)
    httpx.get(f"{front.http}/v1/{API_KEY}", params={"q": PROMPT}, timeout=30)
    printed = front.processes.everything()

    assert '"event": "rpc"' in printed
    assert not found_in(printed)
    assert token not in printed
    assert token.split(".")[0] not in printed


@pytest.mark.models
@pytest.mark.req("SVC-5")
def test_every_log_line_is_json(front):
    """Beside the lines for people, which start without a brace, all of standard error is JSON with an event."""
    check(front.grpc)
    lines = [line for p in front.processes.all.values() for line in p.log().splitlines() if line.startswith("{")]

    assert lines
    assert all(json.loads(line)["event"] for line in lines)


@pytest.mark.models
@pytest.mark.req("SVC-4", "SVC-9")
@pytest.mark.parametrize("running", ["remote"], indirect=True)
@pytest.mark.parametrize("name", SERVICES)
def test_a_killed_service_is_named_and_comes_back(front, name):
    """A service that dies makes the sidecar say so, refuse calls with its name, and recover when it is back."""
    front.processes.all[name].kill()
    assert eventually(lambda: missing(front.http), {name}) == {name}
    assert check_fails(front.grpc) == f"{name.upper()}_UNAVAILABLE"
    front.processes.all[name].restart()
    assert eventually(lambda: missing(front.http), set()) == set()
    assert eventually(lambda: check_fails(front.grpc), "") == ""


@pytest.mark.models
@pytest.mark.req("SVC-9")
def test_mesh_starts_before_redis(running):
    """Without Redis the mesh starts, names it, and refuses calls; it serves as soon as Redis is there."""
    assert all("redis" in name for name in running.missing_at_start)
    assert running.refused_at_start == "SESSION_STORE_UNAVAILABLE"


@pytest.mark.models
@pytest.mark.req("SVC-9", "BUD-4")
def test_redis_lost_midway_comes_back(running, front):
    """When Redis dies calls are refused; when it is back the session goes on with the budget that it had."""
    before = check(front.grpc, text="Madrid is the capital of France.").outcome
    running.valkey.kill()
    assert eventually(lambda: ready(front.http)["ready"], False) is False
    assert check_fails(front.grpc) == "SESSION_STORE_UNAVAILABLE"
    running.valkey.start()
    assert eventually(lambda: missing(front.http), set()) == set()
    after = check(front.grpc, token=before.session_token).outcome

    assert after.session_id == before.session_id
    assert after.safety_budget_micros <= before.safety_budget_micros < 1_000_000


@pytest.mark.models
@pytest.mark.req("SVC-5")
def test_one_trace_goes_through_every_hop(running, front):
    """The spans of session, policy, dpe and audit belong to the trace of the sidecar's call, and quote nothing."""
    separate = {f"interlock-{name}" for name in ("sidecar", *SERVICES)}
    expected = {"interlock-mesh"} if front.topology == "local" else separate
    check(front.grpc, text=PROMPT)

    assert eventually(lambda: hops_of(last_trace(running.collector)), {"sidecar", *SERVICES}) == {"sidecar", *SERVICES}
    assert eventually(lambda: {process for process, _ in last_trace(running.collector)}, expected) == expected
    assert not found_in(str([span for _, span in running.collector.spans]))


def last_trace(collector: Collector) -> list:
    fronts = [span for _, span in collector.spans if span.name.endswith("SidecarService/Check")]
    last = max(fronts, key=lambda span: span.start_time_unix_nano, default=None)
    return [(process, span) for process, span in collector.spans if last and span.trace_id == last.trace_id]


def hops_of(trace: list) -> set[str]:
    return {span.name.split(".")[2] for _, span in trace if span.name.startswith("interlock.api.")}


def start_session(port: int) -> str:
    """Start a session at a session service, and return its token."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        text = "halt-on CRITICAL"
        request = session_pb2.StartSessionRequest(scope="anonymous", policy_text=text, policy_hash=policy_hash(text))
        answer = SessionServiceStub(channel).StartSession(request, timeout=10)
    assert answer.token, answer.refusal
    return answer.token


def session_of(port: int, token: str) -> str:
    """Return the status of a token's session; the reason when it is refused."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        request = session_pb2.GetSessionRequest(token=token, scope="anonymous")
        answer = SessionServiceStub(channel).GetSession(request, timeout=10)
    return answer.refusal.reason or session_pb2.SessionStatus.Name(answer.session.status)


@pytest.mark.req("SVC-4")
def test_sigterm_ends_everything_with_code_0(tmp_path):
    """SIGTERM ends the process with exit code 0, and its embedded Valkey with it."""
    with Processes(tmp_path) as processes:
        service = processes.process("session").start().wait()
        valkey = children_of(service.child.pid)
        assert valkey
        assert service.stop() == 0
        assert not psutil.wait_procs(valkey, timeout=10)[1]


@pytest.mark.models
@pytest.mark.req("SVC-4")
def test_sigterm_finishes_the_call_in_flight(tmp_path):
    """A governed call that waits for its provider is answered, charged and sealed; a new one finds nobody; code 0."""
    provider, go = Provider(), Event()
    provider.waits_for(go)
    with RunningProvider(provider) as upstream, Processes(tmp_path) as processes, ThreadPoolExecutor(1) as pool:
        mesh = processes.mesh(upstream_base_url=upstream.base_url)
        url = f"http://127.0.0.1:{mesh.ports['sidecar_http']}"
        call = pool.submit(ask_model, url)
        assert provider.asked.wait(20)
        mesh.signal(signal.SIGTERM)
        assert eventually(lambda: refused(url), True)
        go.set()
        answer = call.result(30)

        assert mesh.child.wait(20) == 0
    assert answer.status_code == 200
    assert answer.headers["CRP-Provenance-HMAC"].startswith("sha256:")


def ask_model(url: str) -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": "What is the answer?"}]}
    return httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60)


def refused(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz", timeout=5)
    except httpx.ConnectError:
        return True
    except httpx.TransportError:  # it came in as the listener closed
        return False
    return False


@pytest.mark.req("SVC-9")
def test_kill_9_leaves_no_orphan_and_the_state_serves_again(tmp_path):
    """kill -9 takes the embedded Valkey with it; the next start has the sessions of before."""
    with Processes(tmp_path) as processes:
        service = processes.process("session").start().wait()
        token = start_session(service.ports["session"])
        valkey = children_of(service.child.pid)
        service.kill()
        assert valkey
        assert not psutil.wait_procs(valkey, timeout=10)[1]
        service.restart()

        # Held as it was, and used only once it was verified against the audit log, which is not here.
        assert session_of(service.ports["session"], token) == "SESSION_STATE_UNVERIFIED"


@pytest.mark.req("SVC-9")
def test_killed_embedded_valkey_is_started_again(tmp_path):
    """An embedded Valkey that dies alone is started again on the same data."""
    with Processes(tmp_path) as processes:
        service = processes.process("session").start().wait()
        token = start_session(service.ports["session"])
        [valkey] = children_of(service.child.pid)
        valkey.kill()
        said = eventually(lambda: session_of(service.ports["session"], token), "SESSION_STATE_UNVERIFIED")

    assert said == "SESSION_STATE_UNVERIFIED"  # it is there; what it was before is verified by the mesh (ADR 12)


def test_two_owners_of_one_state_are_refused(tmp_path):
    """A second session service on the same state is refused in one line that says how to share the first one's Valkey."""
    with Processes(tmp_path) as processes:
        processes.process("session").start().wait()
        second = run("serve", "session", env=environment(tmp_path / "state"))

    assert second.returncode == 2
    assert "EMBEDDED_VALKEY_IN_USE" in second.stderr
    assert "INTERLOCK_REDIS_URL=unix://" in second.stderr


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A sidecar whose services are not there."""
    with Processes(tmp_path_factory.mktemp("alone")) as processes:
        closed = {f"{name}_address": f"127.0.0.1:{free_port()}" for name in SERVICES}
        yield processes.process("sidecar", **closed).start().wait()


@pytest.mark.req("SVC-9")
def test_sidecar_starts_before_its_services_and_stays_small(alone):
    """A sidecar without its services serves, names each of them, and uses at most 80 MiB."""
    said = ready(f"http://127.0.0.1:{alone.ports['sidecar_http']}")
    memory = psutil.Process(alone.child.pid).memory_info().rss

    assert set(said["missing"]) == set(SERVICES)
    assert all("interlock serve" in hint for hint in said["missing"].values())
    assert memory <= MEMORY_LIMIT_BYTES


def test_liveness_does_not_depend_on_others(alone):
    """/healthz answers 200 while /readyz answers 503."""
    url = f"http://127.0.0.1:{alone.ports['sidecar_http']}"
    codes = [httpx.get(f"{url}{path}", timeout=10).status_code for path in ("/healthz", "/readyz")]

    assert codes == [200, 503]


@pytest.mark.models
@pytest.mark.parametrize("running", ["remote"], indirect=True)
@pytest.mark.parametrize("name", ["policy", "session", "audit"])
def test_single_service_has_its_operators_pages(front, name):
    """A service without an HTTP front serves /healthz, /readyz and /metrics on its metrics port."""
    url = f"http://127.0.0.1:{front.processes.all[name].ports['metrics']}"
    codes = [httpx.get(f"{url}{path}", timeout=10).status_code for path in ("/healthz", "/readyz", "/metrics")]
    metrics = httpx.get(f"{url}/metrics", timeout=10).text

    assert codes == [200, 200, 200]
    assert f'interlock_ready{{service="{name}"}} 1.0' in metrics


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("policy", {"decrement_high": "0.9"}, "SETTINGS_INVALID"),
        ("audit", {"master_key": "secret"}, "MASTER_KEY_WEAK"),
        ("policy", {"config_file": "/nowhere/interlock.yaml"}, "CONFIG_FILE_UNREADABLE"),
        ("dpe", {"nli_model_dir": "/nowhere"}, "MODEL_MISSING"),
        ("sidecar", {"api_keys_file": "/nowhere"}, "API_KEYS_FILE_INVALID"),
        ("policy", {"otlp_endpoint": "collector"}, "SETTINGS_INVALID"),
    ],
)
def test_bad_setting_is_one_clear_line(tmp_path, name, settings, reason):
    """A setting that no waiting mends ends the start with code 2, its reason, and no traceback."""
    said = run("serve", name, env=environment(tmp_path / "state", settings))

    assert said.returncode == 2
    assert f"error: {reason}: " in said.stderr
    assert "Traceback" not in said.stderr
    assert said.stdout == ""


def test_missing_package_is_one_clear_line(tmp_path):
    """Without the models' libraries the dpe service says which extra brings them."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['spacy'] = None")
    said = run("serve", "dpe", env=environment(tmp_path / "state") | {"PYTHONPATH": str(tmp_path)})

    assert said.returncode == 2
    assert "error: PACKAGE_MISSING: " in said.stderr
    assert "hint: pip install 'interlock[dpe]'" in said.stderr


def test_taken_port_is_refused_before_anything_loads(tmp_path):
    """A port in use is refused at once, in one line that names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run("serve", "-o", "json", env=environment(tmp_path / "state", {"sidecar_grpc_port": port}))

    assert said.returncode == 2
    assert json.loads(said.stdout)["error"]["reason"] == "PORT_IN_USE"
    assert "sidecar_grpc_port" in json.loads(said.stdout)["error"]["message"]
    assert not (tmp_path / "state" / "valkey").exists()


def test_signal_while_starting_ends_it(tmp_path):
    """SIGTERM before the ready line ends the start, with what it had opened."""
    with Processes(tmp_path) as processes:
        mesh = processes.process("session").start()
        deadline = time.monotonic() + PATIENCE_S
        while "interlock" not in mesh.log() and time.monotonic() < deadline:
            time.sleep(0.005)
        mesh.signal(signal.SIGTERM)

        assert mesh.child.wait(20) == 0


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["serve", "--help"], ["check", "--help"], ["policy", "parse", "halt-on HIGH"]],
)
def test_small_commands_import_no_models(tmp_path, arguments):
    """Help and version do not load the models' libraries."""
    said = run(*arguments, env=environment(tmp_path) | {"PYTHONPROFILEIMPORTTIME": "1"})

    assert said.returncode == 0
    assert not [name for name in ("onnxruntime", "spacy", "numpy", "redis") if f"| {name}\n" in said.stderr]


def test_unknown_command_is_a_usage_error(tmp_path):
    """A command that is none ends with code 2 and the way to help."""
    said = run("serv", env=environment(tmp_path))

    assert said.returncode == 2
    assert "No such command" in said.stderr
