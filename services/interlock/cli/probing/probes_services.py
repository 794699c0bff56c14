"""Probe of ``interlock check`` for the services of the mesh, each at its configured address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import Any

from interlock.cli.probing.probes import broken
from interlock.domain.errors import Refused
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.rpc.mesh import NAMES, Peer, hint_for, peer
from interlock.runtime.rpc.places import UNIX, address, address_to_call
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.mutual import channel_to, open_tls

CONNECT_LIMIT_S = 1.0


async def services(settings: Settings) -> AsyncIterator[ProbeFinding]:
    """Check every service at its configured address: running, an Interlock service, and ready."""
    try:
        open_tls(settings)
    except Refused as refused:
        yield ProbeFinding("services", "all", ProbeStatus.SKIP, refused.message, "correct the certificates first")
        return
    places = {name: address_to_call(settings, name) for name in NAMES}
    places["sidecar"] = address(settings.host, settings.sidecar_grpc_port)
    places["decision"] = settings.decision_address or address(settings.host, settings.decision_port)
    states = await asyncio.gather(*(_peer_at(name, where, settings) for name, where in places.items()))
    mute = await asyncio.gather(*map(_accepts, places.values()))
    for (name, where), found, accepts in zip(places.items(), states, mute, strict=True):
        if isinstance(found, Exception):
            yield broken(partial(ProbeFinding, "services"), name, found)
            continue
        state, missing = found
        if state is Peer.READY:
            yield ProbeFinding("services", name, ProbeStatus.OK, f"ready on {where}")
        elif state is Peer.SILENT and accepts:
            hint = "it hangs, wants other certificates, or is no Interlock service: see the log of the process that listens there"
            yield ProbeFinding(
                "services", name, ProbeStatus.FAIL, f"{where} takes connections and does not answer", hint
            )
        elif state is Peer.SILENT and name == "decision" and not settings.decision_address:
            # Only who runs experiments needs it, and no call waits for it.
            yield ProbeFinding("services", name, ProbeStatus.SKIP, f"not running on {where}", _start_hint(name, where))
        elif state is Peer.SILENT:
            yield ProbeFinding("services", name, ProbeStatus.WARN, f"not running on {where}", _start_hint(name, where))
        else:
            detail = "misses " + ", ".join(missing) if missing else state.value
            hint = "; ".join(missing.values()) or hint_for(state, name, where)
            yield ProbeFinding("services", name, ProbeStatus.FAIL, f"{detail} on {where}", hint)


def _start_hint(name: str, where: str) -> str:
    if name == "sidecar":
        return "start everything with `interlock serve`, or this one with `interlock serve sidecar`"
    return hint_for(Peer.SILENT, name, where)


async def _peer_at(name: str, where: str, settings: Settings) -> tuple[Peer, dict[str, str]] | Exception:
    try:
        async with channel_to(name, settings, where, [("grpc.enable_http_proxy", 0)]) as channel:
            return await peer(name, channel)
    except Exception as error:  # noqa: BLE001 - a certificate that only one of them needs hides no other
        return error


async def _accepts(where: str) -> bool:
    """Tell whether anything takes a connection there."""
    if where.startswith(UNIX):
        opening: Awaitable[tuple[Any, asyncio.StreamWriter]] = asyncio.open_unix_connection(where.removeprefix(UNIX))
    else:
        host, _, port = where.rpartition(":")
        if not port.isdigit() or port == "0":
            return False
        opening = asyncio.open_connection(host.removeprefix("dns:///").strip("[]"), int(port))
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            _, writer = await opening
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
