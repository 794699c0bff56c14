"""A-35: a rogue sidecar or worker in the mesh. Every service × method × caller, with real certificates over real gRPC."""

from __future__ import annotations

import ast
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from structlog.testing import capture_logs

import interlock
from interlock.api.envoy import ext_authz_pb2, ext_proc_pb2, rls_pb2
from interlock.runtime.rpc.callers import CALLERS, MEMBERS
from interlock.runtime.rpc.service import Service
from tests.support.servers.tls import a_mesh_of_certificates, files, issue, raw_channel, serving, uri

pytestmark = [pytest.mark.req("SVC-6")]

SERVICES = ("session", "policy", "dpe", "audit", "oversight")
INFRASTRUCTURE = {"health", "serverreflection"}
ENVOY = {ext_proc_pb2: "ExternalProcessor", ext_authz_pb2: "Authorization", rls_pb2: "RateLimitService"}
"""What Envoy asks; tests/wire/envoy asks it with the certificates of others."""
STRANGER = "stranger"
HERE = Path(interlock.__file__).parent

MAY_NOT = {
    "oversight": {"audit/Append", "audit/Record", "session/CommitWindow", "session/OpenWindow", "audit/EraseSession"},
    "sidecar": {
        "audit/DecideHeld", "audit/EraseSession", "audit/AcknowledgeTruncation", "policy/RegisterAgent",
        "policy/RegisterReviewer", "oversight/Decide", "oversight/SignIn", "audit/SealDecision",
    },
    "decision": {
        "audit/Append", "audit/Record", "audit/DecideHeld", "audit/GetContents", "session/OpenWindow",
        "session/CommitWindow", "session/SpendWindow", "policy/RegisterAgent",
    },
    "envoy": {"audit/Append", "audit/GetContents", "session/OpenWindow", "session/CommitWindow", "policy/Decide"},
    "operator": {"audit/SealDecision", "audit/Append", "audit/DecideHeld", "session/CommitWindow", "session/OpenWindow"},
}  # fmt: skip
"""What must never be allowed, by hand, whatever the table says."""


def stubs_of(name: str):
    return import_module(f"interlock.api.{name}.v1.{name}_pb2_grpc")


def descriptor_of(name: str):
    module = import_module(f"interlock.api.{name}.v1.{name}_pb2")
    return module.DESCRIPTOR.services_by_name[f"{name.capitalize()}Service"]


def methods_of(name: str):
    return {method.name: method for method in descriptor_of(name).methods}


class Answering:
    """Has every method of a service, and answers each with an empty message once the call is admitted."""

    def __init__(self, name: str) -> None:
        self._methods = methods_of(name)

    def __getattr__(self, name: str):
        method = self._methods[name]
        empty = GetMessageClass(method.output_type)

        async def stream(_request, _context):
            yield empty()

        async def answer(_request, _context):
            return empty()

        return stream if method.server_streaming else answer


def bare(name: str) -> Service:
    """A service of that name over its real interface, with nothing behind it."""

    async def nothing():
        return {}

    stubs, kind = stubs_of(name), f"{name.capitalize()}Service"
    return Service(
        name=name,
        full_names=(descriptor_of(name).full_name,),
        servicer=Answering(name),
        register=getattr(stubs, f"add_{kind}Servicer_to_server"),
        unready_dependencies=nothing,
        close=nothing,
    )


async def outcome(channel: grpc.aio.Channel, service: str, method: str) -> grpc.StatusCode:
    """Call a method with an empty message and return the code."""
    path = f"/{descriptor_of(service).full_name}/{method}"
    try:
        if methods_of(service)[method].server_streaming:
            async for _ in channel.unary_stream(path)(b"", timeout=10):
                pass
        else:
            await channel.unary_unary(path)(b"", timeout=10)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a35_every_method_of_every_service_is_denied_to_all_but_those_of_the_table(tmp_path):
    """Of all calls that any member and any stranger with our authority's certificate can make, only the table's pass."""
    held = a_mesh_of_certificates(tmp_path)
    certificates = {name: files(held, name) for name in MEMBERS}
    certificates[STRANGER] = issue(held, STRANGER, [uri(STRANGER)])
    wrong = []
    ends = [bare(name) for name in SERVICES]
    with capture_logs():  # hundreds of refusals, of which one is looked at elsewhere
        async with serving(ends, **files(held, "mesh")) as port:
            wrong += [found async for found in surprises(certificates, port)]

    assert not wrong


async def test_a35_the_service_of_kernels_is_for_agents_and_for_no_member_of_the_mesh(tmp_path):
    """It stands beside the sidecar's front, where an API key tells the caller; at a port of the mesh it answers nobody."""
    held = a_mesh_of_certificates(tmp_path)
    codes = set()
    with capture_logs():
        async with serving([replace(bare("kernel"), name="session")], **files(held, "mesh")) as port:
            for name in sorted(MEMBERS):
                async with raw_channel(port, files(held, name), target="session.interlock") as channel:
                    codes |= {await outcome(channel, "kernel", method) for method in methods_of("kernel")}

    assert codes == {grpc.StatusCode.PERMISSION_DENIED}


async def surprises(certificates, port: int):
    """Yield every call whose outcome is not the table's."""
    for caller, own in certificates.items():
        async with raw_channel(port, own, target="session.interlock") as channel:
            for service in SERVICES:
                for method in methods_of(service):
                    allowed = caller in CALLERS[service].get(method, ())
                    expected = grpc.StatusCode.OK if allowed else grpc.StatusCode.PERMISSION_DENIED
                    if (code := await outcome(channel, service, method)) is not expected:
                        yield caller, service, method, code


def test_a35_the_table_names_every_method_and_nothing_else():
    """A new method is denied to everybody until somebody decides who may call it, here."""
    ours = {name: set(methods) for name, methods in CALLERS.items() if name not in INFRASTRUCTURE}

    envoys = [module.DESCRIPTOR.services_by_name[name] for module, name in ENVOY.items()]
    asked = {one.name.lower(): {method.name for method in one.methods} for one in envoys}
    assert ours == {name: set(methods_of(name)) for name in SERVICES} | asked


@pytest.mark.parametrize(("caller", "call"), [(c, m) for c, denied in MAY_NOT.items() for m in sorted(denied)])
def test_a35_what_must_never_be_allowed_is_not(caller, call):
    """Writing belongs to sidecars, deciding to oversight, erasing and registering to the operator, and to nobody else."""
    service, method = call.split("/")

    assert caller not in CALLERS[service][method]


def test_a35_no_service_may_call_another():
    """Services do not call one another: what one of them leaks opens none of the others."""
    callers = {
        caller
        for name, table in CALLERS.items()
        if name not in INFRASTRUCTURE | {"externalprocessor", "authorization", "ratelimitservice"}
        for one in table.values()
        for caller in one
    }

    assert callers <= {"sidecar", "oversight", "decision", "operator"}


@pytest.mark.parametrize("caller", ["sidecar", "oversight"])
def test_a35_the_table_allows_what_the_code_calls(caller):
    """Every call on a mesh in a caller's code is one that the table allows, so that nothing works without TLS alone."""
    peers = peer_methods()
    made = {call for path in (HERE / caller).rglob("*.py") for call in _calls(ast.parse(path.read_text()), peers)}

    assert made
    assert not {(service, method) for service, method in made if caller not in CALLERS[service][method]}


def test_a35_every_typed_call_is_seen():
    """The test above reads the peers: each of their public methods makes a call that it can name."""
    peers = peer_methods()

    assert set(peers) == {"session", "policy", "dpe", "audit"}
    assert all(calls for methods in peers.values() for calls in methods.values())


def peer_methods() -> dict[str, dict[str, set[str]]]:
    """Service → public method of its peer in ``runtime/rpc/peers.py`` → RPCs that it makes."""
    found: dict[str, dict[str, set[str]]] = {}
    for node in ast.parse((HERE / "runtime" / "rpc" / "peers.py").read_text()).body:
        if isinstance(node, ast.ClassDef) and (service := _service_named(node)):
            methods = [one for one in node.body if isinstance(one, ast.AsyncFunctionDef) and one.name[0] != "_"]
            found[service] = {one.name: set(_stub_calls(one)) for one in methods}
    inner = {name: methods["get_window"] for name, methods in found.items() if "get_window" in methods}
    for service, calls in inner.items():
        found[service]["find_window"] = calls  # it asks through get_window
    return found


def _stub_calls(function: ast.AST):
    for part in ast.walk(function):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Attribute) and part.value.attr == "_stub":
            yield part.attr


def _calls(tree: ast.AST, peers: dict[str, dict[str, set[str]]]):
    """Yield service and RPC of ``mesh.session.GetDag`` and of ``peers.session.dag``, by whatever name a peer is kept."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        kept = getattr(node.value, "attr", getattr(node.value, "id", "")).lstrip("_")
        for method in (node.attr, *peers.get(kept, {}).get(node.attr, ())):
            yield from _known(kept, method)


def _known(service: str, method: str):
    if service in SERVICES and method in methods_of(service):
        yield service, method


def _service_named(peer: ast.ClassDef) -> str:
    """Return the value of ``name = "session"`` in the body of a class; empty without one."""
    for part in peer.body:
        match part:
            case ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str(service))):
                return service
    return ""
