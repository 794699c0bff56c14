"""Triton killed and started again under load: refusals, then answers again, and never a mild verdict in between."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.cli.local.tritonserver import TritonServer
from interlock.domain.errors import Refused
from interlock.dpe.inference.models import manifest
from interlock.dpe.inference.serving import served
from interlock.dpe.wiring import open_service
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.settings.model import Settings
from tests.support.dpe import own_model
from tests.support.servers import triton
from tests.support.servers.fake_triton import fake_triton

pytestmark = [pytest.mark.models, pytest.mark.req("SVC-9", "DPE-18"), pytest.mark.asyncio(loop_scope="module")]
LABELS = ("entailment", "neutral", "contradiction")
LOAD = 4
FACT = "The Eiffel Tower is 330 metres tall."


NUMBERS = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory) -> AsyncIterator[TritonServer]:
    """A tritonserver of these tests alone. Each leaves it running, but for the last that uses it."""
    with triton.running(tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(server: TritonServer) -> AsyncIterator[Service]:
    """The dpe service on it, as a process opens it."""
    opened = await open_service(Settings(triton_url=server.address, triton_timeout_s=5))
    yield opened
    await opened.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stub(service: Service) -> AsyncIterator[dpe_pb2_grpc.DpeServiceStub]:
    """A client over a socket."""
    front = RpcServer([service], Settings(allow_plaintext=True), port=0)
    port = await front.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield dpe_pb2_grpc.DpeServiceStub(channel)
    await front.drain()


def wrong() -> dpe_pb2.AnalyzeRequest:
    """An answer that is wrong, in words that were never asked before: no remembered vector answers for the model."""
    text = f"The Eiffel Tower is 390 metres tall. Visitor {next(NUMBERS)} saw it in Berlin."
    return dpe_pb2.AnalyzeRequest(
        outputs=[dpe_pb2.Output(text=text)], facts=[common_pb2.Fact(id="f1", content=FACT, importance=0.5)]
    )


async def served_again(server: TritonServer, stub: dpe_pb2_grpc.DpeServiceStub) -> None:
    """Wait until answers are judged; a server that a pause cost one of its models (docs/models.md) is started anew, as a supervisor does."""
    for limit_s in (10, 60):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while not (await stub.Analyze(wrong(), timeout=30)).HasField("report"):
                    await asyncio.sleep(0.1)
                return
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
    pytest.fail("Triton was started anew, and no answer is judged")


class Load:
    """Callers that ask without a pause, and what they heard."""

    def __init__(self, stub: dpe_pb2_grpc.DpeServiceStub) -> None:
        self.stub, self.heard = stub, list[dpe_pb2.AnalyzeResponse]()

    async def caller(self) -> None:
        while True:
            self.heard.append(await self.stub.Analyze(wrong(), timeout=30))
            await asyncio.sleep(0)

    async def until(self, wanted: str, count: int = 3) -> list[dpe_pb2.AnalyzeResponse]:
        """Wait for *count* more reports or refusals, as *wanted*, and return all that was heard meanwhile."""
        begin = len(self.heard)
        async with asyncio.timeout(60):
            while sum(answer.HasField(wanted) for answer in self.heard[begin:]) < count:
                await asyncio.sleep(0.05)
        return self.heard[begin:]


async def test_a_kill_under_load_is_refusals_then_recovery_and_never_low(server, service, stub):
    """kill -9 of the server and its interpreters; it comes back on its port, and the dpe service is not restarted."""
    load = Load(stub)
    callers = [asyncio.create_task(load.caller()) for _ in range(LOAD)]
    await load.until("report")

    await asyncio.to_thread(server.kill)
    await load.until("refusal", 2 * LOAD)
    assert "triton" in await service.unready_dependencies()
    down = await load.until("refusal", 2 * LOAD)
    assert not any(answer.HasField("report") for answer in down)

    await asyncio.to_thread(server.start)
    await load.until("report", 2 * LOAD)
    assert dict(await service.unready_dependencies()) == {}
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)

    refusals = [answer.refusal for answer in load.heard if answer.HasField("refusal")]
    assert {r.kind for r in refusals} <= {common_pb2.REFUSAL_KIND_UNAVAILABLE, common_pb2.REFUSAL_KIND_TIMEOUT}
    assert "TRITON_UNAVAILABLE" in {r.reason for r in refusals}
    assert all(a.HasField("refusal") or a.report.risk_level > common_pb2.RISK_LEVEL_LOW for a in load.heard)


async def test_a_server_that_hangs_is_a_refusal_in_time(server, stub):
    """A stopped process keeps its connections: the deadline ends the wait."""
    await stub.Analyze(wrong(), timeout=30)
    os.killpg(server.pid, signal.SIGSTOP)
    try:
        answer = await stub.Analyze(wrong(), timeout=3)
    finally:
        os.killpg(server.pid, signal.SIGCONT)

    assert answer.refusal.kind == common_pb2.REFUSAL_KIND_TIMEOUT
    assert (await stub.Analyze(wrong(), timeout=30)).HasField("report")


@pytest.mark.req("DPE-17")
async def test_a_server_that_comes_back_with_other_bytes_is_refused(server, stub, tmp_path):
    """A-39, a model swap: the same address with another file is found out, over real servers."""
    await served_again(server, stub)
    address = server.address
    await asyncio.to_thread(server.kill)
    swapped = manifest("nli", own_model(tmp_path / "own", [9.0, 0.0, 0.0], LABELS))
    other = triton.server_of(tmp_path / "other", [swapped, manifest("embed"), manifest("ner")])
    other._port = int(address.rpartition(":")[2])
    await asyncio.to_thread(other.start)
    try:
        heard = []
        async with asyncio.timeout(30):
            while not heard or heard[-1] == "TRITON_UNAVAILABLE":
                answer = await stub.Analyze(wrong(), timeout=30)
                assert not answer.HasField("report")
                heard.append(answer.refusal.reason)
        assert heard[-1] == "MODEL_HASH_MISMATCH"
    finally:
        await asyncio.to_thread(other.kill)


@pytest.mark.req("DPE-17")
async def test_a_service_on_a_server_of_other_bytes_does_not_start():
    """DPE-17: a mismatch refuses to start, with Triton as with files."""
    async with fake_triton() as fake:
        fake.spoil_config = lambda config: config.ClearField("parameters")
        with pytest.raises(Refused, match="MODEL_HASH_MISMATCH"):
            await open_service(Settings(triton_url=fake.address))


async def test_a_service_whose_server_is_away_starts_and_becomes_ready(tmp_path):
    """SVC-9: it says what is missing, and is ready by itself once Triton is there."""
    server = triton.server_of(tmp_path, served())
    service = await open_service(Settings(triton_url=f"127.0.0.1:{server._port}"))
    before = await service.unready_dependencies()
    await asyncio.to_thread(server.start)
    try:
        async with asyncio.timeout(20):
            while after := await service.unready_dependencies():
                await asyncio.sleep(0.1)
    finally:
        await service.close()
        await asyncio.to_thread(server.kill)

    assert list(before) == ["triton"]
    assert "INTERLOCK_TRITON_URL" in before["triton"]
    assert not after


@pytest.mark.req("DPE-17")
async def test_a_server_does_not_serve_a_file_that_is_not_the_pinned_one(tmp_path):
    """The bytes are hashed where they are loaded: a repository that was changed after it was laid out does not come up."""
    server = triton.server_of(tmp_path, [manifest("embed")])
    model = tmp_path / "repository" / "embed" / manifest("embed").served_version / "model.onnx"
    changed = model.read_bytes() + b"\0"
    model.unlink()
    model.write_bytes(changed)

    with pytest.raises(Refused, match="TRITON_FAILED"):
        await asyncio.to_thread(server.start)
    assert server.pid is None
    assert "MODEL_HASH_MISMATCH" in server.log.read_text(errors="replace")
