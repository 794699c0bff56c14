"""What a recorded stop does to everything that goes through its sidecar: answers, calls in flight, sidecars beside it, trees (T8)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import grpc
import httpx
import pytest

from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.kernel.v1.kernel_pb2_grpc import KernelServiceStub
from interlock.domain.errors import Kind, Refused, unavailable
from tests.support.kernels import KernelClient, done
from tests.support.servers.provider import Provider, RunningProvider, completion, message, tool_call
from tests.support.sidecar.sidecar import Hooked, another_sidecar, reason_of, running_sidecar, token_of

pytestmark = pytest.mark.req("KRN-2", "KRN-11")

ALICE = {"authorization": "Bearer alice"}


class Links:
    """The ways to the session and audit services, which a test cuts."""

    def __init__(self) -> None:
        self.cut: set[str] = set()
        self.held: asyncio.Event | None = None
        self.begun = asyncio.Event()
        self.refusal: Refused | None = None

    def wrap(self, services):
        async def step(request):
            if request.execute.key == "held" and self.held:
                self.begun.set()
                await self.held.wait()
            self._pass("session")

        async def read(_request):
            self._pass("session")

        async def seal(_request):
            self._pass("audit")

        return {
            **services,
            "session": Hooked(services["session"], StepKernel=step, StepKernels=step, GetSession=read),
            "audit": Hooked(services["audit"], SealKernel=seal),
        }

    def _pass(self, name: str) -> None:
        if name in self.cut and self.refusal:
            raise self.refusal
        if name in self.cut:
            raise unavailable("CUT_BY_TEST", "the way is cut")


@asynccontextmanager
async def cuttable(folder, **more):
    links = Links()
    given = {"emergency_reach_s": 0.5, "rpc_timeout_s": 2, **more}
    async with running_sidecar(folder, wrap=links.wrap, **given) as sidecar:
        team = KernelClient(sidecar.client, "team", key="alice")
        await team.open()
        yield sidecar, team, links


async def stopped(team: KernelClient, key: str = "stop", **more) -> dict:
    return done(await team.post("emergency", action="leave", stop=True, key=key, **more))["verdict"]


async def sealed_by_itself(team: KernelClient, count: int = 1) -> list[dict]:
    """Wait until so many emergency actions are sealed; the trace is read past the kernel."""
    async with asyncio.timeout(20):
        while True:
            found = [one for one in await team.trace() if one["type"] == "KERNEL_EMERGENCY"]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.05)


async def test_an_answer_whose_tool_call_the_recorded_stop_forbids_is_not_released(tmp_path):
    """Store and provider answer, and the stop is not sealed yet: the answer stays here, as it does once it is sealed."""
    provider = Provider()
    with RunningProvider(provider) as upstream:
        async with cuttable(tmp_path, upstream=upstream.base_url, tool_kernel="team") as (sidecar, team, links):
            provider.completes(completion(message("I will.", tool_calls=[tool_call("small", "{}", "call_1")])))
            tools = [{"type": "function", "function": {"name": "small", "parameters": {"type": "object"}}}]
            before = await sidecar.chat(headers=ALICE, tools=tools)
            links.cut = {"audit"}
            told = await stopped(team)
            during = await sidecar.chat(headers=ALICE, tools=tools)
            links.cut = set()
            await sealed_by_itself(team)
            after = await sidecar.chat(headers=ALICE, tools=tools)

    assert before.status_code == 200
    assert told["recorded_at_ms"]
    assert (during.status_code, reason_of(during)) == (403, "KERNEL_STOPPED_HERE")
    assert "I will" not in during.text
    assert (after.status_code, reason_of(after)) == (403, "KERNEL_ACTION_REFUSED")


async def test_what_was_in_flight_when_the_stop_was_recorded_is_not_permitted(tmp_path):
    """The store approves it after the stop was answered: its caller is not told to act."""
    async with cuttable(tmp_path) as (_, team, links):
        links.held = asyncio.Event()
        acting = asyncio.create_task(team.post("execute", action="small", key="held"))
        await links.begun.wait()
        told = await stopped(team)
        links.held.set()
        answer = await acting

    assert told["recorded_at_ms"]
    assert reason_of(answer) == "KERNEL_STOPPED_HERE"


async def test_sidecars_of_one_folder_share_what_is_recorded(tmp_path):
    """A stop through one stands in the other too."""
    async with cuttable(tmp_path) as (sidecar, team, links), another_sidecar(sidecar) as other:
        links.cut = {"session"}
        await stopped(team)
        async with httpx.AsyncClient(base_url=other, trust_env=False, timeout=30) as client:
            refused = await KernelClient(client, "team", key="alice").post("execute", action="small", key="k")

    assert reason_of(refused) == "KERNEL_STOPPED_HERE"


async def test_a_kernel_of_a_session_tree_is_stopped_by_a_token_that_was_verified_for_it(tmp_path):
    """The session service cannot be asked whose token it is: one that was seen for this kernel is known, any other is not."""
    provider = Provider()
    with RunningProvider(provider) as upstream:
        async with cuttable(tmp_path, upstream=upstream.base_url) as (sidecar, team, links):
            provider.completes(completion(message("Yes.")))
            token = token_of(await sidecar.chat(headers=ALICE))
            other = token_of(await sidecar.chat(headers=ALICE))
            tree = KernelClient(sidecar.client, "team", key="alice", token=token)
            await tree.open()
            await tree.describe()
            links.cut = {"session"}
            told = await stopped(tree)
            foreign = await KernelClient(sidecar.client, "team", key="alice", token=other).post(
                "emergency", action="leave", key="k"
            )
            thief = await KernelClient(sidecar.client, "team", key="bob", token=token).post(
                "emergency", action="leave", key="k"
            )
            links.cut = set()
            await sealed_by_itself(tree)
            shown, beside = await tree.describe(), await team.describe()

    assert told["recorded_at_ms"]
    assert [reason_of(one) for one in (foreign, thief)] == ["KERNEL_EMERGENCY_UNKNOWN_HERE"] * 2
    assert shown["stopped"] and not beside["stopped"]


async def test_the_answer_says_that_it_is_not_sealed_over_grpc_too(tmp_path):
    """In the verdict, as over HTTP; of one that is sealed it says nothing."""
    async with cuttable(tmp_path) as (sidecar, _, links), grpc.aio.insecure_channel(sidecar.grpc) as channel:
        stub = KernelServiceStub(channel)

        async def asked(key: str) -> kernel_pb2.Verdict:
            request = kernel_pb2.EmergencyRequest(kernel="team", action="leave", key=key)
            return (await stub.Emergency(request, metadata=[("authorization", "Bearer alice")])).verdict

        sealed = await asked("a")
        links.cut = {"audit"}
        recorded = await asked("b")

    assert sealed.approved and not sealed.HasField("recorded_at_ms") and sealed.sequence
    assert recorded.approved and recorded.recorded_at_ms and not recorded.sequence


async def test_what_settles_waits_for_the_recorded_action_and_then_goes_on(tmp_path):
    """A permit is settled after the stop, as it is after one that was sealed at once; before it is sealed nothing is sent."""
    async with cuttable(tmp_path) as (_, team, links):
        await team.post("permit", action="small", key="permit")
        links.cut = {"audit"}
        await stopped(team)
        early = await team.post("confirm", permit="permit", key="early")
        links.cut = set()
        await sealed_by_itself(team)
        settled = done(await team.post("confirm", permit="permit", key="early"))["verdict"]
        kinds = [one["type"] for one in await team.trace()]

    assert early.status_code == 503
    assert settled["approved"]
    assert kinds == ["KERNEL_OPENED", "KERNEL_PERMITTED", "KERNEL_EMERGENCY", "KERNEL_CONFIRMED"]


async def test_a_key_that_was_used_for_something_else_needs_a_person(tmp_path):
    """The kernel refuses it for good; its stop stands here all the same, and the next one of its own key is sealed."""
    async with cuttable(tmp_path) as (_, team, links):
        await team.execute("small", "taken")
        links.cut = {"session"}
        await stopped(team, "taken")
        await stopped(team, "free")
        links.cut = set()
        sealed = await sealed_by_itself(team)
        refused = await team.post("execute", action="small", key="k")

    assert reason_of(refused) == "KERNEL_STOPPED_HERE"
    assert len(sealed) == 1 and '"key": "free"' in sealed[0]["data_json"]


async def test_a_refusal_that_says_nothing_of_the_action_is_no_end_of_it(tmp_path):
    """A certificate that is refused, say: it is tried again until somebody has set that right."""
    async with cuttable(tmp_path) as (_, team, links):
        links.cut = {"session"}
        await stopped(team)
        links.refusal = Refused(Kind.FORBIDDEN, "CALLER_DENIED", "not on the list")
        await asyncio.sleep(1.5)
        links.refusal, links.cut = None, set()
        sealed = await sealed_by_itself(team)

    assert len(sealed) == 1


async def test_a_kernel_that_others_opened_is_known_soon_after_its_first_use(tmp_path):
    """It is read in the background: what another sidecar registered is known here too."""
    async with cuttable(tmp_path) as (sidecar, team, links):
        settings = sidecar.settings.model_copy(update={"emergency_dir": tmp_path / "own"})
        async with another_sidecar(sidecar.__class__(**{**vars(sidecar), "settings": settings})) as url:
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
                other = KernelClient(client, "team", key="alice")
                await other.execute("small", "first")
                async with asyncio.timeout(10):
                    while not [*(tmp_path / "own" / "kernels").glob("*")]:
                        await asyncio.sleep(0.02)
                links.cut = {"session"}
                told = await stopped(other)
        refused_elsewhere = await team.post("execute", action="small", key="k")

    assert told["recorded_at_ms"]
    assert reason_of(refused_elsewhere) != "KERNEL_STOPPED_HERE", "each sidecar knows its own folder"
