"""A-52: every answer inside the mesh says what it answers; whatever else comes back is refused, for each RPC of each service."""

from __future__ import annotations

from contextlib import AsyncExitStack
from importlib import import_module

import grpc
import pytest
import pytest_asyncio
from google.protobuf import message_factory

from interlock.api.dpe.v1 import dpe_pb2
from interlock.cli.probing.running import running_parts
from interlock.domain.errors import Kind, Refused
from interlock.oversight.wiring import open_oversight
from interlock.runtime.rpc import answers
from interlock.runtime.rpc.echo_channel import CUT, EchoChannel
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.bending import BENDS, GARBAGE, BendingProxy, bending, methods, path_of
from tests.support.sidecar.bent import a_service
from tests.support.sidecar.world import ToldDpe

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.finding("F-22", "F-29")]

METHODS = {f"{name}.{method.name}": (name, method) for name, method in methods()}
REASONS = {*answers.UNUSABLE, CUT}


async def _nothing():
    return {}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxies(tmp_path_factory):
    """Each service as it is, on a port, behind a proxy of its own."""
    folder = tmp_path_factory.mktemp("state")
    settings = Settings(state_dir=folder, redis_url="memory://", allow_plaintext=True, drain_s=0.2)
    async with AsyncExitStack() as ends:
        services = {}
        for name in ("session", "policy", "audit", "dpe"):
            services[name] = await _opened(name, settings)
            ends.push_async_callback(services[name].close)
        opened = open_oversight(
            settings, Mesh.local(**services), _nothing, lambda: running_parts(settings), http_port=1
        )
        services["oversight"] = opened.service
        made = {}
        for name, service in services.items():
            server = RpcServer([service], settings, port=0)
            port = await server.start()
            ends.push_async_callback(server.drain)
            made[name] = await ends.enter_async_context(bending(f"127.0.0.1:{port}"))
        yield made


async def _opened(name, settings):
    if name != "dpe":
        return await import_module(f"interlock.{name}.wiring").open_service(settings)
    return a_service("dpe", Dpe())  # the models are no part of this


class Dpe(ToldDpe):
    """The analysis of the tests, with every method of the real one."""

    async def Describe(self, _request, _context):
        return dpe_pb2.DescribeResponse(method="told")


def message(descriptor, **fields):
    return message_factory.GetMessageClass(descriptor)(**fields)


async def ask(proxy: BendingProxy, method, *, accept: bool = False, naked: bool = False):
    """Call a method through its proxy as the mesh does, and return its answers."""
    answer = message_factory.GetMessageClass(method.output_type)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{proxy.port}", [("grpc.use_local_subchannel_pool", 1)]) as channel:
        over = channel if naked else EchoChannel(channel, accept_without=accept)
        kind = "unary_stream" if method.server_streaming else "unary_unary"
        call = getattr(over, kind)(
            path_of(method), request_serializer=lambda m: m.SerializeToString(), response_deserializer=answer.FromString
        )
        try:
            if method.server_streaming:
                return [one async for one in call(message(method.input_type), timeout=10)]
            return [await call(message(method.input_type), timeout=10)]
        except grpc.aio.AioRpcError as error:
            return [error.code()]


@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("name", METHODS)
async def test_a52_a_bent_answer_of_any_rpc_is_refused(proxies, name, bend):
    """As it is the answer is taken; bent it is a refusal with a reason, which a retry may help."""
    service, method = METHODS[name]
    proxy = proxies[service]
    straight = await ask(proxy, method)
    proxy.bends[method.name] = BENDS[bend]
    try:
        if isinstance(straight[0], grpc.StatusCode):
            assert (
                method.server_streaming
            )  # a stream has no field for a refusal: its status is one, and nothing to bend
            assert await ask(proxy, method) == straight
            return
        with pytest.raises(Refused) as caught:
            await ask(proxy, method)
    finally:
        proxy.bends.clear()

    assert caught.value.reason in REASONS
    assert caught.value.kind is Kind.UNAVAILABLE


@pytest.mark.parametrize("name", METHODS)
async def test_a52_request_bytes_that_are_no_message_are_invalid(proxies, name):
    """Not UNKNOWN with the name of an exception: INVALID_ARGUMENT and a reason, for every method."""
    service, method = METHODS[name]
    async with grpc.aio.insecure_channel(proxies[service].target) as channel:
        call = getattr(channel, "unary_stream" if method.server_streaming else "unary_unary")(path_of(method))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            if method.server_streaming:
                _ = [one async for one in call(GARBAGE, timeout=10)]
            else:
                await call(GARBAGE, timeout=10)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "REQUEST_UNDECODABLE" in str(caught.value.trailing_metadata())


async def test_a52_a_caller_without_an_echo_is_answered_as_before(proxies):
    """An older peer, or a tool that knows the protos alone, gets plain messages."""
    method = METHODS["policy.Resolve"][1]

    (plain,) = await ask(proxies["policy"], method, naked=True)

    assert plain.policy_hash
    assert plain.SerializeToString() == proxies["policy"].seen["Resolve"][-1]


async def test_a52_an_answer_without_an_echo_passes_only_where_an_update_asks_for_it(proxies):
    """And even then not one with the echo of another call."""
    proxy, method = proxies["policy"], METHODS["policy.ListReviewers"][1]
    proxy.bends["ListReviewers"] = lambda answer, _before: answer.partition(b"\xc2\x3e")[0]
    try:
        await ask(proxy, method, accept=True)
        with pytest.raises(Refused, match="ANSWER_WITHOUT_ECHO"):
            await ask(proxy, method)
        proxy.bends["ListReviewers"] = BENDS["previous"]
        await ask(proxy, method, accept=True)  # the one before it in `seen` has an echo, of another call
    except Refused as refused:
        assert refused.reason == "ANSWER_TO_ANOTHER_CALL"
    else:
        pytest.fail("the echo of another call was accepted")
    finally:
        proxy.bends.clear()


async def test_a52_a_proxy_that_reads_and_writes_messages_may_stand_between(proxies):
    """It may order the entries of a map in its own way: what counts is the message."""
    method = METHODS["session.GetSession"][1]
    answer = message_factory.GetMessageClass(method.output_type)
    proxies["session"].bends["GetSession"] = lambda raw, _before: answer.FromString(raw).SerializeToString()
    try:
        (found,) = await ask(proxies["session"], method)
    finally:
        proxies["session"].bends.clear()

    assert found.refusal.reason
