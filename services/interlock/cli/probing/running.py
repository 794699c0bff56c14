"""The probes of ``interlock check`` that concern a mesh that runs: what the console's page of health shows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain

from interlock.cli.probing import probes
from interlock.cli.probing.groups import answering, blocking
from interlock.cli.probing.probes_audit import audit_store
from interlock.cli.probing.probes_checkpoint import checkpoint
from interlock.cli.probing.probes_files import second_place
from interlock.cli.probing.probes_parts import traces, triton
from interlock.cli.probing.probes_services import services
from interlock.runtime.rpc.health import ProbeFinding
from interlock.runtime.settings.model import Settings


async def running_parts(settings: Settings) -> Sequence[ProbeFinding]:
    """Return what is found of the parts that calls depend on now. The model provider is not asked: it would cost a request a look."""
    groups = [
        answering("redis", lambda: probes.redis(settings)),
        blocking("audit store", lambda: chain(audit_store(settings), second_place(settings))),
        answering("audit store", lambda: checkpoint(settings)),
        answering("services", lambda: services(settings)),
        answering("triton", lambda: triton(settings)),
        answering("traces", lambda: traces(settings)),
    ]
    return [finding for group in await asyncio.gather(*groups) for finding in group]
