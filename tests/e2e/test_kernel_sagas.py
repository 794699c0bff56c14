"""Sagas over real processes: undone in the kernel, compensated in the world, rebuilt from the chain, told to a person (KRN-5)."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest
import typer

from interlock.cli.main import app
from interlock.client.errors import InterlockError
from interlock.client.kernel import ActionSpec, Effect, Invariant, KernelCalls, SafetyKernel, State
from tests.support.kernels import UNIT, KernelClient
from tests.support.paths import ROOT
from tests.support.sidecar.sidecar import running_sidecar

UNBOOK = ActionSpec("unbook", "Unbook", effects=(Effect("booked", "decrement", 1),))
BOOK = ActionSpec("book", "Book", effects=(Effect("booked", "increment", 1),), cost=2.0, compensation=UNBOOK)
FEW = Invariant("few", expression="booked <= 3", variables={"booked": "n"})
NOTE = ActionSpec("note", "Note", effects=(Effect("notes", "append", "x"),), cost=1.0)


@pytest.fixture
async def sidecar(tmp_path, redis_url):
    async with running_sidecar(tmp_path, redis_url=redis_url) as running:
        yield running


@pytest.fixture
async def kernel(sidecar):
    calls = KernelCalls(sidecar.http)
    kernel = SafetyKernel(20.0, [FEW], min_action_cost=1.0, name="trip", calls=calls)
    await asyncio.to_thread(kernel.prepare, State({"booked": 0, "notes": []}), None)
    yield kernel
    calls.close()


async def types(sidecar) -> list[str]:
    trace = await KernelClient(sidecar.client, "trip").trace()
    return [one["type"].removeprefix("KERNEL_") for one in trace]


@pytest.mark.req("KRN-5", "KRN-7")
async def test_a_saga_that_fails_is_undone_and_made_up_for(sidecar, kernel, valkey):
    """The note is undone at once; the bookings stay charged until their compensations ran, the last one first, over a lost store."""
    made: list[str] = []

    def run() -> None:
        with pytest.raises(OSError, match="no seat"), kernel.saga() as saga:
            saga.execute(State({"booked": 0, "notes": []}), NOTE)
            saga.perform(BOOK, lambda: made.append("first"))

            def full() -> None:
                raise OSError("no seat")

            saga.perform(BOOK, full)

    await asyncio.to_thread(run)
    assert await asyncio.to_thread(kernel.state) == State({"booked": 2, "notes": []})
    budget = (await KernelClient(sidecar.client, "trip").describe())["resources"][0]
    assert (budget["gross_micros"], budget["refunded_micros"]) == (str(5 * UNIT), str(UNIT))
    valkey.flush()
    undone: list[str] = []
    assert await asyncio.to_thread(kernel.compensate, {"unbook": undone.append}) == 2
    assert len(set(undone)) == 2
    assert await asyncio.to_thread(kernel.state) == State({"booked": 0, "notes": []})
    assert await KernelClient(sidecar.client, "trip").spent("budget") == 4 * UNIT, (
        "what was done in the world was paid for"
    )
    told = await types(sidecar)
    assert told[-5:] == ["SAGA_ROLLED_BACK", *["COMPENSATION_CLAIMED", "COMPENSATED"] * 2]


@pytest.mark.req("KRN-5")
async def test_what_stays_done_cannot_be_undone_alone(kernel):
    """A saga that ended is past; a step with a compensation is not undone without its saga; a late step is refused."""

    def run() -> None:
        with kernel.saga() as saga:
            saga.execute(State({"booked": 0}), BOOK)
        with pytest.raises(RuntimeError, match="roll its saga back"):
            kernel.rollback(State({}), State({}), BOOK)
        with pytest.raises(InterlockError) as refused:
            saga.execute(State({}), BOOK)
        assert refused.value.reason == "KERNEL_SAGA_UNKNOWN"
        with pytest.raises(InterlockError) as refused:
            kernel.calls.post("trip", "rollback", {"saga": saga.key, "key": "late"})
        assert refused.value.reason == "KERNEL_SAGA_UNKNOWN"
        assert kernel.compensate({}) == 0
        with pytest.raises(ValueError, match="costs nothing"):
            ActionSpec("a", "A", compensation=ActionSpec("b", "B", cost=1.0))

    await asyncio.to_thread(run)
    assert await asyncio.to_thread(kernel.state) == State({"booked": 1, "notes": []})


@pytest.mark.long
@pytest.mark.req("KRN-5")
async def test_the_saga_of_a_process_that_was_killed_is_rolled_back_by_another(sidecar, kernel):
    """kill -9 in the middle: when its time is over, whoever asks for compensations makes up for it."""
    command = [sys.executable, "-m", "tests.support.kernel_saga", "trip", sidecar.http]
    agent = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=subprocess.PIPE)
    assert (await agent.stdout.readline()) == b"booked\n"
    agent.send_signal(signal.SIGKILL)
    await agent.wait()
    undone: list[str] = []
    while not undone:
        await asyncio.to_thread(kernel.compensate, {"unbook": undone.append})
        await asyncio.sleep(0.05)

    assert len(undone) == 1
    assert await asyncio.to_thread(kernel.state) == State({"booked": 0, "notes": []})
    assert (await types(sidecar))[-3:] == ["SAGA_ROLLED_BACK", "COMPENSATION_CLAIMED", "COMPENSATED"]


@pytest.mark.req("KRN-5")
async def test_what_was_handed_out_to_nobody_is_not_done(sidecar, kernel):
    """Until somebody claimed it nobody can have made up for the step; a handler that outlives its claim does not end the others' work."""
    made: list[str] = []

    def run() -> int:
        with pytest.raises(OSError, match="later"), kernel.saga() as saga:
            saga.execute(State({"booked": 0}), BOOK)
            raise OSError("later")
        step = kernel.calls.describe("trip")["compensations"][0]["execution"]
        body = {"execution": step, "outcome": "OUTCOME_DONE", "key": "early"}
        with pytest.raises(InterlockError) as refused:
            kernel.calls.post("trip", "settle-compensation", body)
        assert refused.value.reason == "KERNEL_COMPENSATION_FENCED"

        def slow(execution: str) -> None:
            made.append(execution)
            kernel.calls.post("trip", "settle-compensation", body | {"key": "person"})

        assert kernel.compensate({"unbook": slow}) == 0, "a person noted it while the handler ran"
        return kernel.compensate({"unbook": made.append})

    assert await asyncio.to_thread(run) == 0
    assert len(made) == 1
    assert await asyncio.to_thread(kernel.state) == State({"booked": 0, "notes": []})


@pytest.mark.req("KRN-5")
async def test_a_person_is_told_of_what_nobody_can_make_up_for(sidecar, kernel, capsys):
    """An action that cannot be undone and has no compensation is stuck at once; the command line shows it and settles it."""
    send = ActionSpec("send", "Send", cost=1.0, reversible=False)

    def run() -> None:
        with pytest.raises(OSError, match="later"), kernel.saga() as saga:
            saga.execute(State({"booked": 0}), send)
            raise OSError("later")

    await asyncio.to_thread(run)

    async def command(*arguments: str) -> tuple[int, str]:
        def call() -> int:
            try:
                return (
                    app(["kernel", *arguments, "--url", sidecar.http], prog_name="interlock", standalone_mode=False)
                    or 0
                )
            except typer.Exit as ended:
                return ended.exit_code

        code = await asyncio.to_thread(call)
        return code, capsys.readouterr().out

    assert (await types(sidecar))[-1] == "COMPENSATION_STUCK"
    code, said = await command("compensations", "trip")
    assert (code, "send" in said, "STUCK" in said) == (1, True, True)
    step = (await KernelClient(sidecar.client, "trip").describe())["compensations"][0]["execution"]
    assert (await command("settle", "trip", step, "--again"))[0] == 2, "there is no action to try again"
    assert (await command("settle", "trip", step))[0] == 0
    assert await command("compensations", "trip") == (0, "nothing is to be made up for\n")


BAD = [
    ("begin-saga", {"lifetime_ms": 1, "key": "k"}, "KERNEL_LIFETIME_INVALID"),
    ("begin-saga", {"lifetime_ms": 1000}, "KERNEL_KEY_INVALID"),
    ("end-saga", {"saga": "none", "key": "k"}, "KERNEL_SAGA_UNKNOWN"),
    ("end-saga", {"saga": "a b", "key": "k"}, "KERNEL_KEY_INVALID"),
    ("rollback", {"saga": "none", "key": "k"}, "KERNEL_SAGA_UNKNOWN"),
    ("rollback", {"saga": "none", "executions": ["x"], "key": "k"}, "KERNEL_EXECUTIONS_INVALID"),
    ("claim-compensation", {"lifetime_ms": 10**9, "key": "k"}, "KERNEL_LIFETIME_INVALID"),
    ("settle-compensation", {"execution": "x", "key": "k"}, "KERNEL_OUTCOME_INVALID"),
    ("settle-compensation", {"execution": "x", "outcome": 1, "fence": -1, "key": "k"}, "KERNEL_OUTCOME_INVALID"),
    ("settle-compensation", {"execution": "x", "outcome": 1, "key": "k"}, "KERNEL_COMPENSATION_UNKNOWN"),
    ("execute", {"action": "small", "saga": "none", "key": "k"}, "KERNEL_SAGA_UNKNOWN"),
]


@pytest.mark.req("KRN-5", "KRN-13")
async def test_what_is_wrong_with_a_saga_is_refused_with_a_reason(sidecar):
    """Nothing is recorded of a refusal; a compensation that costs something, or is not there, cannot be registered."""
    team = KernelClient(sidecar.client, "team")
    await team.open()
    for ask, body, reason in BAD:
        assert (await team.post(ask, **body)).json()["reason"] == reason, (ask, body)
    costly = [{"id": "a", "compensation": "b"}, {"id": "b", "costs": [{"resource": "usd", "micros": 1}]}]
    for actions in (costly, costly[:1]):
        refused = await KernelClient(sidecar.client, "other").post("open", definition={
            "resources": [{"name": "usd", "limit_micros": 1}], "actions": actions,
        })  # fmt: skip
        assert refused.json()["reason"] == "KERNEL_COMPENSATION_INVALID"
    assert len(await team.trace()) == 1
