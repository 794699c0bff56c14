"""The port to the state of kernels, and its in-memory twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from interlock.domain.ids import SessionId
from interlock.domain.kernel import rule
from interlock.domain.kernel.state import Fields, KernelRecord, Stepped, unsealed

UNSAID = {"have": "0", "have_link": "", "sealed": "0", "sealed_link": ""}
"""What a caller can tell with the first of its asks: the last record that it has in hand, the last one that it knows to be sealed."""
_ANSWERED = frozenset({"OK", "FULL"})


class KernelStore(Protocol):
    """Each method is one atomic step."""

    async def open(self, kernel_id: SessionId, fields: Fields, record: KernelRecord) -> str:
        """Keep a new kernel and return CREATED, or EXISTS or KERNEL_STATE_UNVERIFIED where one is there."""
        ...

    async def step(self, kernel_id: SessionId, ask: Mapping[str, Any], now_ms: int) -> Stepped:
        """Decide what is asked (``domain.kernel.rule``)."""
        ...

    async def steps(self, kernel_id: SessionId, asks: Sequence[Mapping[str, Any]], now_ms: int) -> Sequence[Stepped]:
        """Decide what is asked, one after the other, as so many calls of ``step`` would; nobody else's step comes between.

        The records that are not sealed are the same for all that are answered. What the caller has in hand, and what it
        knows to be sealed, is told with the first (``UNSAID``).
        """
        ...

    async def read(self, kernel_id: SessionId) -> Stepped:
        """Return the fields of a kernel as the answer."""
        ...

    async def contract(self, kernel_id: SessionId) -> str:
        """Return the text of what a kernel was opened with; empty where there is none."""
        ...

    async def conditions(self, kernel_id: SessionId) -> str:
        """Return the text of its conditions in CEL; empty where there are none."""
        ...

    async def sealed(self, kernel_id: SessionId, sequence: int, link: str) -> bool:
        """Note that records are sealed up to this one; false where the store does not have it."""
        ...

    async def restore(self, kernel_id: SessionId, fields: Fields, sequence: int) -> bool:
        """Replace what is known of a kernel by what is sealed; false where the store knows as much."""
        ...


class MemoryKernels:
    """Kernels of this one process: ``memory://``. It runs the domain's rule as it is."""

    def __init__(self) -> None:
        self._kernels: dict[SessionId, Fields] = {}

    async def open(self, kernel_id: SessionId, fields: Fields, record: KernelRecord) -> str:
        """Keep a new kernel."""
        if kernel_id in self._kernels:
            return "EXISTS"
        self._kernels[kernel_id] = {**fields, "seq": "1", "sealed": "0", "o:1": record.stored}
        return "CREATED"

    async def step(self, kernel_id: SessionId, ask: Mapping[str, Any], now_ms: int) -> Stepped:
        """Decide what is asked."""
        return (await self.steps(kernel_id, [ask], now_ms))[0]

    async def steps(self, kernel_id: SessionId, asks: Sequence[Mapping[str, Any]], now_ms: int) -> Sequence[Stepped]:
        """Decide what is asked, one after the other."""
        known = {name: asks[0].get(name, unsaid) for name, unsaid in UNSAID.items()}
        if known["sealed"] != "0":
            await self.sealed(kernel_id, int(known["sealed"]), known["sealed_link"])
        fields = self._kernels.get(kernel_id, {})
        found = [rule.step(fields, {**ask, **known}, now_ms) for ask in asks]
        answered = [one for one in found if one.status in _ANSWERED]
        return [replace(one, unsealed=answered[-1].unsealed) if one.status in _ANSWERED else one for one in found]

    async def read(self, kernel_id: SessionId) -> Stepped:
        """Return the fields of a kernel."""
        fields = self._kernels.get(kernel_id)
        return Stepped("OK", dict(fields), unsealed=unsealed(fields)) if fields else Stepped("KERNEL_NOT_FOUND", {})

    async def contract(self, kernel_id: SessionId) -> str:
        """Return what a kernel was opened with."""
        return self._kernels.get(kernel_id, {}).get("def", "")

    async def conditions(self, kernel_id: SessionId) -> str:
        """Return the text of its conditions in CEL."""
        return self._kernels.get(kernel_id, {}).get("cel", "")

    async def sealed(self, kernel_id: SessionId, sequence: int, link: str) -> bool:
        """Note that records are sealed."""
        fields = self._kernels.get(kernel_id)
        if fields is None:
            return False
        before = int(fields["sealed"])
        if sequence <= before:
            return True
        held = fields.get(f"o:{sequence}")
        if held is None or KernelRecord.of(held).link != link:
            return False
        for number in range(before + 1, sequence + 1):
            del fields[f"o:{number}"]
        fields["sealed"] = str(sequence)
        return True

    async def restore(self, kernel_id: SessionId, fields: Fields, sequence: int) -> bool:
        """Replace a kernel by what is sealed."""
        known = self._kernels.get(kernel_id)
        if known is not None and int(known["sealed"]) >= sequence:
            return False
        self._kernels[kernel_id] = {**fields, "seq": str(sequence), "sealed": str(sequence)}
        return True
