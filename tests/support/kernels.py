"""Kernels of tests: a definition in JSON, and calls over HTTP and gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

UNIT = 1_000_000

DEFINITION: Mapping[str, Any] = {
    "resources": [
        {"name": "usd", "limit_micros": 100 * UNIT, "min_cost_micros": UNIT},
        {"name": "mails", "limit_micros": 50 * UNIT},
    ],
    "variables": [
        {"name": "active", "type": "VARIABLE_TYPE_NUMBER", "initial": {"number_micros": 0}},
        {"name": "log", "type": "VARIABLE_TYPE_LIST"},
    ],
    "invariants": [
        {"name": "few", "expression": "active <= 10", "suggestion": "finish a task first"},
        {"name": "watched", "expression": "active <= 2", "enforcement": "ENFORCEMENT_MONITORING"},
    ],
    "actions": [
        {
            "id": "task", "name": "A task", "costs": [{"resource": "usd", "micros": 10 * UNIT}],
            "effects": [{"variable": "active", "mode": "EFFECT_MODE_INCREMENT", "value": {"number_micros": UNIT}}],
        },
        {
            "id": "mail", "costs": [{"resource": "usd", "micros": UNIT}, {"resource": "mails", "micros": UNIT}],
            "effects": [{"variable": "log", "mode": "EFFECT_MODE_APPEND", "value": {"text": "sent"}}],
        },
        {"id": "small", "costs": [{"resource": "usd", "micros": UNIT}]},
        {"id": "leave", "emergency": True},
    ],
    "open_registry": True,
}  # fmt: skip


def definition(**more: Any) -> dict[str, Any]:
    """The definition, with parts of it replaced."""
    return {**DEFINITION, **more}


class KernelClient:
    """Calls of one caller to one kernel, over HTTP."""

    def __init__(self, client: httpx.AsyncClient, name: str, *, key: str = "", token: str = "") -> None:
        self.client, self.name = client, name
        self.headers = {
            **({"Authorization": f"Bearer {key}"} if key else {}), **({"CRP-Session-Token": token} if token else {})
        }  # fmt: skip

    async def post(self, ask: str, **body: Any) -> httpx.Response:
        return await self.client.post(f"/crp/v3/kernel/{self.name}/{ask}", json=body, headers=self.headers)

    async def open(self, **more: Any) -> dict[str, Any]:
        return done(await self.post("open", definition=definition(**more)))

    async def describe(self) -> dict[str, Any]:
        return done(await self.client.get(f"/crp/v3/kernel/{self.name}", headers=self.headers))

    async def execute(self, action: str, key: str, **more: Any) -> dict[str, Any]:
        return done(await self.post("execute", action=action, key=key, **more))

    async def trace(self, after: int = 0) -> list[dict[str, Any]]:
        path = f"/crp/v3/kernel/{self.name}/trace?after={after}"
        return done(await self.client.get(path, headers=self.headers))["records"]

    async def spent(self, resource: str = "usd") -> int:
        """Net spending, millionths."""
        one = next(one for one in (await self.describe())["resources"] if one["name"] == resource)
        return int(one["gross_micros"]) - int(one["refunded_micros"])


def done(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return response.json()


def failed(verdict: Mapping[str, Any]) -> Sequence[str]:
    """Codes of the checks that rejected an action."""
    return [one["code"] for one in verdict["checks"] if not one["passed"] and not one["monitoring"]]
