"""The decision service reached through a sidecar, as owner and as agent: keyed, passed on, and missing (DEC-1, DEC-7)."""

from __future__ import annotations

import contextlib
import hashlib
import time

import grpc
import pytest

from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.decision.wiring import open_decision
from interlock.runtime.rpc.errors import from_rpc_error
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.server import RpcServer
from interlock.sidecar.wiring import open_sidecar
from tests.support.decision_service import BusClient, DecisionClient, emits, opened_audit, proposes, settings_of
from tests.support.decisions import PROTOCOL

pytestmark = pytest.mark.req("DEC-1", "DEC-7", "SVC-6")
LISTED = "alice: {digest}\n"


async def ready():
    return {}


@contextlib.asynccontextmanager
async def reached(settings, audit, *, local, listed=None):
    """Serve decisions and a sidecar before them, in one process or over the network; yields a stub of the sidecar."""
    mesh = Mesh.local(session=None, policy=None, dpe=None, audit=audit)
    decision = open_decision(settings, mesh, ready)
    async with contextlib.AsyncExitStack() as ends:
        ends.push_async_callback(decision.service.close)
        far = RpcServer([decision.service], settings)
        port = await far.start()
        ends.push_async_callback(far.drain)
        ends.callback(decision.leave)
        named = {"decision_address": f"127.0.0.1:{port}"} if local is False else {}
        if listed:
            named["api_keys_file"] = listed
        sidecar = await open_sidecar(
            settings.model_copy(update=named), mesh, ready, decision=decision.service.servicer if local else None
        )
        ends.push_async_callback(sidecar.close)
        front = RpcServer([sidecar.service], settings)
        port = await front.start()
        ends.push_async_callback(front.drain)
        ends.callback(decision.leave)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield DecisionServiceStub(channel)


@pytest.fixture
def settings(tmp_path, redis_url):
    return settings_of(tmp_path, redis_url)


@pytest.fixture
async def audit(settings):
    async with opened_audit(settings) as service:
        yield service


async def refused(call) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return from_rpc_error(caught.value, "decision").reason


@pytest.mark.parametrize("local", [True, False])
async def test_owner_and_agent_need_no_other_address_than_their_sidecar(settings, audit, local):
    """Tasks, answers, signals and decisions pass; so do the refusals of the decision service, with their reasons."""
    async with reached(settings, audit, local=local) as stub:
        search = DecisionClient(stub)
        assert (await search.open()).created
        await search.register(PROTOCOL)
        bus = BusClient(search)
        plateau = {"metric": "loss", "slope": 0.0}
        await bus.emit(emits("metric_plateau", "executor", plateau, time.time()))
        assert [one.sequence for one in (await bus.until(1, agent="protocol")).signals] == [1]
        async with search.working("protocol", lambda _: {"proposals": [proposes()]}):
            assert (await search.run(1)).outcome == "SWITCH_HPO"
        assert await refused(search.run(7)) == "DECISION_CYCLE_UNEXPECTED"
        search.metadata = ()
        assert await refused(search.describe()) == "DECISION_KEY_REQUIRED"


async def test_a_key_that_the_sidecar_does_not_list_reaches_nothing(settings, audit, tmp_path):
    """Also not with a ticket that is true: the sidecar's own callers are keyed."""
    digest = hashlib.sha256(b"alice").hexdigest()
    path = tmp_path / "keys.yaml"
    path.write_text(LISTED.format(digest=digest))
    path.chmod(0o600)
    async with reached(settings, audit, local=False, listed=path) as stub:
        assert (await DecisionClient(stub).open()).created
        assert await refused(DecisionClient(stub, key="mallory").open()) == "API_KEY_INVALID"


async def test_without_an_address_and_without_the_service_the_caller_is_told(settings, audit):
    """DECISION_ADDRESS_MISSING where none is named; DECISION_UNAVAILABLE where nothing answers there."""
    async with reached(settings, audit, local=None) as stub:
        assert await refused(DecisionClient(stub).describe()) == "DECISION_ADDRESS_MISSING"
    gone = settings.model_copy(update={"decision_address": "127.0.0.1:1"})
    async with reached(gone, audit, local=None) as stub:
        assert await refused(DecisionClient(stub).describe()) == "DECISION_UNAVAILABLE"
