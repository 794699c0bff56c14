"""A ticket that comes to nothing is given back: others do not wait for its turn to run out (KRN-3)."""

from __future__ import annotations

import asyncio

import pytest

from interlock.client.kernel import ActionSpec, Effect, KernelCalls, SafetyKernel, State, turns
from tests.support.kernels import KernelClient
from tests.support.sidecar.sidecar import running_sidecar

pytestmark = pytest.mark.req("KRN-3")

TASK = ActionSpec("task", "A task", effects=(Effect("n", "increment", 1),), cost=1.0)
OTHER = ActionSpec("other", "Another", effects=(Effect("m", "increment", 1),), cost=1.0)


class Raised(Exception):
    """What the precondition of the test raises."""


@pytest.mark.parametrize("raises", [True, False])
async def test_a_precondition_that_fails_leaves_the_line_at_once(tmp_path, monkeypatch, raises):
    """It raises, or does not hold, while its process has the turn: another's action is decided without a wait."""
    monkeypatch.setattr(turns, "OPTIMISTIC", 1)
    async with running_sidecar(tmp_path) as sidecar:
        calls = KernelCalls(sidecar.http)
        mine, theirs = (SafetyKernel(50.0, min_action_cost=1.0, name="team", calls=calls) for _ in range(2))
        seen: list[State] = []

        def fails_in_turn(state: State, _action: ActionSpec) -> tuple[bool, str]:
            seen.append(state)
            if len(seen) == 1:
                theirs.execute(State({"n": 0, "m": 0}), OTHER)  # another changes the state meanwhile
            elif raises:
                raise Raised
            return len(seen) == 1, "not in turn"

        mine.add_precondition(fails_in_turn)

        def run() -> None:
            mine.prepare(State({"n": 0, "m": 0}), TASK)
            with pytest.raises(Raised if raises else RuntimeError):
                mine.execute(State({"n": 0, "m": 0}), TASK)

        await asyncio.to_thread(run)
        team = KernelClient(sidecar.client, "team")
        version = (await team.describe())["version"]
        after = await team.execute("other", "after", version=version)
        types = [one["type"] for one in await team.trace()]
        calls.close()

    assert len(seen) == 2
    assert after["verdict"]["approved"], "nobody stands in the line"
    assert types[-3:] == ["KERNEL_TICKET_TAKEN", "KERNEL_TICKET_RETURNED", "KERNEL_EXECUTED"]
