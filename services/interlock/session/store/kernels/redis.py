"""Kernels in Redis or Valkey: one hash each, ``il:{<kernel>}:kernel``, changed by one script per step (docs/adr/0031)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlock.domain.ids import SessionId, check
from interlock.domain.kernel.state import Fields, KernelRecord, Stepped, unsealed
from interlock.session.store.batcher import Batcher, LuaScript, readable
from interlock.session.store.kernels.store import UNSAID


def kernel_key_of(kernel_id: SessionId) -> str:
    """Return the key of a kernel. Only ids get into a key (reliability.md A-36)."""
    return f"il:{{{check('crp_sess_', kernel_id)}}}:kernel"


class RedisKernels:
    """Kernels that all processes share."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher = batcher
        names = ("kernel_open", "kernel_step", "kernel_sealed", "kernel_restore")
        self._open, self._step, self._sealed, self._restore = map(LuaScript.load, names)

    async def open(self, kernel_id: SessionId, fields: Fields, record: KernelRecord) -> str:
        """Keep a new kernel."""
        reply = await self._batcher.run(self._open, [kernel_key_of(kernel_id)], record.stored, *_flat(fields))
        with readable():
            return str(reply[0].decode())

    async def step(self, kernel_id: SessionId, ask: Mapping[str, Any], now_ms: int) -> Stepped:
        """Decide what is asked."""
        return (await self.steps(kernel_id, [ask], now_ms))[0]

    async def steps(self, kernel_id: SessionId, asks: Sequence[Mapping[str, Any]], now_ms: int) -> Sequence[Stepped]:
        """Decide what is asked, one after the other, in one call."""
        known = [asks[0].get(name, unsaid) for name, unsaid in UNSAID.items()]
        reply = await self._batcher.run(self._step, [kernel_key_of(kernel_id)], now_ms, *known, *map(json.dumps, asks))
        with readable():
            texts = [one.decode() for one in reply]
            count = 2 * len(asks)
            records = [KernelRecord.of(one) for one in texts[count:]]
            return [_stepped(*one, records) for one in zip(texts[:count:2], texts[1:count:2], strict=True)]

    async def read(self, kernel_id: SessionId) -> Stepped:
        """Return the fields of a kernel."""
        reply, epoch = await self._batcher.read("HGETALL", kernel_key_of(kernel_id))
        if not reply:
            return Stepped("KERNEL_NOT_FOUND", {})
        with readable():
            texts = [one.decode() for one in reply]
            fields = dict(zip(texts[::2], texts[1::2], strict=True))
            if fields.pop("epoch") != epoch:
                return Stepped("KERNEL_STATE_UNVERIFIED", {})
            return Stepped("OK", fields, unsealed=unsealed(fields))

    async def contract(self, kernel_id: SessionId) -> str:
        """Return what a kernel was opened with."""
        return await self._field(kernel_id, "def")

    async def conditions(self, kernel_id: SessionId) -> str:
        """Return the text of its conditions in CEL."""
        return await self._field(kernel_id, "cel")

    async def _field(self, kernel_id: SessionId, name: str) -> str:
        reply = await self._batcher.command("HGET", kernel_key_of(kernel_id), name)
        with readable():
            return str(reply.decode()) if reply else ""

    async def sealed(self, kernel_id: SessionId, sequence: int, link: str) -> bool:
        """Note that records are sealed."""
        reply = await self._batcher.run(self._sealed, [kernel_key_of(kernel_id)], sequence, link)
        with readable():
            return bool(reply[0])

    async def restore(self, kernel_id: SessionId, fields: Fields, sequence: int) -> bool:
        """Replace a kernel by what is sealed."""
        reply = await self._batcher.run(self._restore, [kernel_key_of(kernel_id)], sequence, *_flat(fields))
        with readable():
            return bool(reply[0])


def _stepped(status: str, told: str, records: Sequence[KernelRecord]) -> Stepped:
    if status in {"OK", "FULL"}:
        return Stepped(status, json.loads(told or "{}"), unsealed=records)
    return Stepped(status, {}, told)


def _flat(fields: Mapping[str, str]) -> Iterator[str]:
    return (each for field in fields.items() for each in field)
