"""A real shared kernel for experiments, and experiments that reserve in it."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.json_format import ParseDict

from interlock.api.decision.v1 import decision_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.decision.definition import ExperimentRules, defined
from interlock.runtime.keys.api_keys import load_api_keys
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from tests.support.decision_service import DecisionClient
from tests.support.decisions import ML, STRATEGY

UNIT = 1_000_000
KERNEL = {
    "resources": [{"name": "trials", "limit_micros": 100 * UNIT}],
    "variables": [{"name": "open", "type": "VARIABLE_TYPE_NUMBER", "initial": {"number_micros": 0}}],
    "invariants": [{"name": "closed", "expression": "open <= 0"}],
    "actions": [
        {"id": "extend", "costs": [{"resource": "trials", "micros": 40 * UNIT}]},
        {"id": "mutate", "costs": [{"resource": "trials", "micros": UNIT}]},
        {
            "id": "break", "costs": [{"resource": "trials", "micros": UNIT}],
            "effects": [{"variable": "open", "mode": "EFFECT_MODE_INCREMENT", "value": {"number_micros": UNIT}}],
        },
    ],
}  # fmt: skip
AGENT = {**STRATEGY, "outputs": ["EXTEND_TRIALS", "MUTATE_SEARCH", "CONTINUE"]}


def kernel_definition(child: str = "", extend: str = "extend", **limits: Any) -> str:
    """The ML profile, whose trials are those of the kernel ``team``."""
    told = json.loads(ML)
    told["kernel"] = {"name": "team", **({"child": child} if child else {})}
    told["actions"]["EXTEND_TRIALS"] |= {
        "permit": extend, "cost": {"parameter": "trials", "per_unit": 1, "resource": "trials"}
    }  # fmt: skip
    told["actions"]["MUTATE_SEARCH"] = {"risk": "LOW", "permit": "mutate"}
    return json.dumps({**told, "limits": {"deadline_ms": 15_000, **limits}})


def kernel_rules(**more: Any) -> ExperimentRules:
    """The rules of that definition."""
    return defined(kernel_definition(**more))


class SharedKernel:
    """The kernel of one owner, as its owner sees it."""

    def __init__(self, settings: Settings, session: Any, audit: Any, key: str = "alice") -> None:
        mesh = Mesh.local(session=session, policy=None, dpe=None, audit=audit)
        self._kernels = Kernels(settings, Peers.over(mesh, settings))
        self._scope = load_api_keys(None).caller([f"Bearer {key}"]).scope

    async def open(self, **more: Any) -> None:
        request = ParseDict({"kernel": "team", "definition": {**KERNEL, **more}}, kernel_pb2.OpenRequest())
        await self._kernels.ask(self._scope, "", "open", request)

    async def child(self, name: str, trials: int) -> None:
        limits = [kernel_pb2.Cost(resource="trials", micros=trials * UNIT)]
        request = kernel_pb2.OpenChildRequest(kernel="team", child=name, limits=limits, key=f"child-{name}")
        assert (await self._kernels.ask(self._scope, "", "open_child", request)).verdict.approved

    async def left(self) -> float:
        """What is left of its trials."""
        found = await self._kernels.ask(self._scope, "", "describe", kernel_pb2.DescribeRequest(kernel="team"))
        return found.described.resources[0].remaining_micros / UNIT


class ReservingClient(DecisionClient):
    """An owner whose experiment reserves."""

    async def open(self, child: str = "", extend: str = "extend", **limits: Any) -> Any:
        definition = kernel_definition(child, extend, **limits)
        request = decision_pb2.OpenExperimentRequest(experiment=self.experiment, definition_json=definition)
        return await self.stub.OpenExperiment(request, metadata=self.metadata)

    async def settle(self, cycle: int, *, done: bool, **actual: int) -> Any:
        costs = [decision_pb2.ResourceCost(resource=name, micros=micros) for name, micros in actual.items()]
        request = decision_pb2.SettleDecisionRequest(experiment=self.experiment, cycle=cycle, done=done, actual=costs)
        return await self.stub.SettleDecision(request, metadata=self.metadata)
