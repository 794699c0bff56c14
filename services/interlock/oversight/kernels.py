"""Which kernels there are, and how each stands: for people, who find a kernel by looking and not by its name (OBS-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.api.audit.v1 import audit_pb2
from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.errors import Refused
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.rpc.peers import Peers

AT_ONCE = 8
"""Kernels of one page that are read at the same time."""


@dataclass(frozen=True)
class KernelRow:
    """A kernel of the list: how it began, and how it stands now."""

    listed: audit_pb2.ListedKernel
    described: kernel_pb2.DescribeResponse | None
    unread: str = ""
    """Why it cannot be described; empty where it is."""


@dataclass(frozen=True)
class KernelList:
    """Lists kernels."""

    peers: Peers
    kernels: Kernels

    async def page(
        self, scope: str, name: str, before: audit_pb2.ListedKernel | None, limit: int
    ) -> tuple[Sequence[KernelRow], bool]:
        """Return kernels of a caller or of all, the latest first, and whether there are more.

        One that cannot be read has the reason in its row: it hides no other.
        """
        request = audit_pb2.ListKernelsRequest(scope=scope, kernel=name, before=before, limit=limit)
        found = await self.peers.audit.list_kernels(request)
        turn = asyncio.Semaphore(AT_ONCE)

        async def row(one: audit_pb2.ListedKernel) -> KernelRow:
            async with turn:
                try:
                    return KernelRow(one, await self.kernels.read(one.kernel_id))
                except Refused as refused:
                    return KernelRow(one, None, refused.reason)

        return await asyncio.gather(*map(row, found.kernels)), found.more
