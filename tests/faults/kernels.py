"""Clients of a kernel that has children: they execute, book in sagas that end, fail or are forgotten, and make up for what failed.

Whatever is asked is asked again under its key while nothing certain came of it. What was done in the world is kept beside it.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from tests.faults.facts import Kernel, Record, Told
from tests.faults.parts.cluster import Cluster

UNIT = 1_000_000
KEY = "key-of-kernels"
LIFETIME_MS, CLAIM_MS = 1500, 500
TRIES, PAUSE_S = 6, 0.1
ASK_S = 20
CHILDREN = (("a", "", 900), ("b", "", 30), ("c", "a", 400), ("d", "c", 12))
"""Name, parent and limit of each child, whole units; two of them are soon spent."""
_MAY_WAIT, _IN_NEED = frozenset({"execute", "permit", "begin-saga", "rollback"}), 0.7
STOPPED = "d"
"""The child that is stopped."""

DEFINITION: Mapping[str, Any] = {
    "resources": [{"name": "usd", "limit_micros": 1000 * UNIT, "min_cost_micros": UNIT}],
    "variables": [{"name": "booked", "type": "VARIABLE_TYPE_NUMBER", "initial": {"number_micros": 0}}],
    "invariants": [{"name": "few", "expression": "booked <= 6"}],
    "actions": [
        {"id": "small", "costs": [{"resource": "usd", "micros": UNIT}]},
        {
            "id": "unbook",
            "effects": [{"variable": "booked", "mode": "EFFECT_MODE_DECREMENT", "value": {"number_micros": UNIT}}],
        },
        {
            "id": "book", "costs": [{"resource": "usd", "micros": 2 * UNIT}], "compensation": "unbook",
            "effects": [{"variable": "booked", "mode": "EFFECT_MODE_INCREMENT", "value": {"number_micros": UNIT}}],
        },
        {"id": "leave", "emergency": True},
        {"id": "send", "costs": [{"resource": "usd", "micros": UNIT}], "irreversible": True},
    ],
}  # fmt: skip


@dataclass
class KernelClient:
    """One kernel of a run, and all that its clients did with it."""

    cluster: Cluster
    rng: random.Random
    name: str = ""
    key: str = KEY
    """API key of its owner."""
    told: list[Told] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    """Steps that were made in the world."""
    unmade: list[str] = field(default_factory=list)
    """Steps that were made up for in the world, each time that it was done."""
    begun: bool = False

    def __post_init__(self) -> None:
        self.name = self.name or f"team-{self.rng.getrandbits(64):016x}"

    def _key(self) -> str:
        return f"{self.rng.getrandbits(96):024x}"

    async def post(self, ask: str, *, tries: int = TRIES, **body: Any) -> dict[str, Any]:
        """Ask until something certain comes of it; empty where nothing did. Who waits for an answer may ask for an emergency action meanwhile."""
        for tried in range(tries):
            if tried == 1 and ask in _MAY_WAIT and self.rng.random() < _IN_NEED:
                await self.emergency()
            number, began = self.rng.randrange(len(self.cluster.fronts)), time.monotonic()
            try:
                answer = await self.cluster.fronts[number].post(
                    f"/crp/v3/kernel/{self.name}/{ask}", json=body, headers={"authorization": f"Bearer {self.key}"}, timeout=self.cluster.limit_s
                )  # fmt: skip
            except httpx.HTTPError:
                await asyncio.sleep(PAUSE_S)
                continue
            if answer.status_code == 200:
                return self._heard(ask, body, answer.json(), number, began)
            if answer.status_code < 500 and answer.status_code not in {409, 429}:
                return {}
            await asyncio.sleep(PAUSE_S)
        return {}

    def _heard(
        self, ask: str, body: Mapping[str, Any], said: dict[str, Any], front: int, began: float
    ) -> dict[str, Any]:
        if verdict := said.get("verdict"):
            self.told.append(
                Told(
                    ask, str(body["key"]), bool(verdict["approved"]), int(verdict["sequence"]), str(body.get("action", "")),
                    child=str(body.get("child", "")), stop=bool(body.get("stop")), recorded="recorded_at_ms" in verdict,
                    replayed=bool(verdict["replayed"]), front=front, began=began, ended=time.monotonic(),
                )
            )  # fmt: skip
        return said

    async def open(self) -> bool:
        """Open the kernel with its children."""
        if not self.begun:
            self.begun = bool(await self.post("open", definition=dict(DEFINITION)))
            for child, parent, limit in CHILDREN if self.begun else ():
                limits = [{"resource": "usd", "micros": limit * UNIT}]
                opened = await self.post("open-child", child=child, parent=parent, limits=limits, key=f"open-{child}")
                self.begun = self.begun and bool(opened)
        return self.begun

    async def step(self) -> None:
        """Do one of the things that clients of kernels do."""
        chance = self.rng.random()
        if not await self.open():
            return
        if chance < 0.12:
            await self.emergency()
        elif chance < 0.4:
            await self._done("execute", "small")
        elif chance < 0.8:
            await self.saga()
        else:
            await self.compensate()

    async def _done(self, ask: str, action: str, **more: Any) -> str:
        """Ask for an action in some part of the kernel, and return its key where it was approved."""
        child, key = self.rng.choice(("", *(name for name, _, _ in CHILDREN))), self._key()
        said = await self.post(ask, action=action, key=key, **({"child": child} if child else {}), **more)
        return key if said and said["verdict"]["approved"] else ""

    async def emergency(self) -> None:
        """Do an emergency action, which is possible at any time; one in a few stops the lowest child for good."""
        stop = {"stop": True, "child": STOPPED} if self.rng.random() < 0.2 else {}
        await self.post("emergency", action="leave", key=self._key(), **stop)

    async def saga(self) -> None:
        """Book a few things together; end that, roll it back, or never come back to it."""
        key = self._key()
        begun = await self.post("begin-saga", lifetime_ms=LIFETIME_MS, key=key)
        if not begun or not begun["verdict"]["approved"]:
            return
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < 0.1:
                await self._done("execute", self.rng.choice(("small", "send")), saga=key)
            elif booked := await self._done("permit", "book", saga=key):
                self.made.add(booked)
                await self.post("confirm", permit=booked, key=self._key())
        how = self.rng.choice(("end-saga", "end-saga", "rollback", "forgotten"))
        if how != "forgotten":
            await self.post(how, saga=key, key=self._key())

    async def compensate(self) -> bool:
        """Make up for one thing in the world, where there is one; tell whether there may be more."""
        said = await self.post("claim-compensation", lifetime_ms=CLAIM_MS, key=self._key())
        given = said.get("compensation")
        if not given:
            return bool(said.get("again"))
        if self.rng.random() < 0.2:
            return True  # its process died with the claim
        self.unmade.append(given["execution"])
        settled = {"execution": given["execution"], "fence": given["fence"], "outcome": "OUTCOME_DONE"}
        await self.post("settle-compensation", **settled, key=self._key())
        return True

    async def finish(self, limit_s: float) -> None:
        """Make up for all there is, until nothing is open that can be closed."""
        end = time.monotonic() + limit_s
        while self.begun and time.monotonic() < end:
            while await self.compensate():
                pass
            shown = await self._described()
            closed = not shown.get("sagas") and all(one["stuck"] for one in shown.get("compensations", ()))
            if shown and closed and await self._emergencies_are_sealed():
                return
            await asyncio.sleep(PAUSE_S)

    async def _emergencies_are_sealed(self) -> bool:
        """Tell whether all that was recorded somewhere is on record; the sidecars see to it by themselves."""
        due, after = {one.key for one in self.told if one.recorded}, 0
        while due:
            try:
                answer = await self.cluster.fronts[0].get(
                    f"/crp/v3/kernel/{self.name}/trace?after={after}", headers={"authorization": f"Bearer {self.key}"}
                )
            except httpx.HTTPError:
                return False
            page = answer.json()["records"] if answer.status_code == 200 else []
            if not page:
                return False
            due -= {str(json.loads(one["data_json"])["key"]) for one in page}
            after = int(page[-1]["sequence"])
        return True

    async def _described(self) -> dict[str, Any]:
        try:
            answer = await self.cluster.fronts[0].get(
                f"/crp/v3/kernel/{self.name}", headers={"authorization": f"Bearer {self.key}"}
            )
        except httpx.HTTPError:
            return {}
        return dict(answer.json()) if answer.status_code == 200 else {}

    async def facts(self) -> Kernel | None:
        """Return what is known of the kernel at the end; ``None`` where it never came to be."""
        shown = await self._described()
        if not shown:
            return None
        audit, kernel_id = self.cluster.audit_stub(), str(shown["kernel_id"])
        exported = audit.Export(audit_pb2.ExportRequest(session_id=kernel_id), timeout=ASK_S)
        records = [
            Record(one.event.sequence, one.event.event_type, json.loads(one.event.data_json)) async for one in exported
        ]
        verdict = await audit.Verify(audit_pb2.VerifyRequest(session_id=kernel_id), timeout=ASK_S)
        return Kernel(
            kernel_id, tuple(records), common_pb2.ChainIntegrity.Name(verdict.integrity).removeprefix("CHAIN_INTEGRITY_"),
            shown, tuple(self.told), frozenset(self.made), tuple(self.unmade),
        )  # fmt: skip
