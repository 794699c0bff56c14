"""Probes of who can reach this deployment, and how: certificates, keys of callers, sockets and ports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from interlock.cli.probing.probes import broken, refusable
from interlock.domain.errors import Refused
from interlock.runtime.http.server import listen
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from interlock.runtime.rpc.places import INNER, socket_to_serve
from interlock.runtime.settings.access import is_loopback
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.fronts import open_front_tls
from interlock.runtime.tls.mutual import open_tls, require_private

SOON_DAYS = 7


def certificates(settings: Settings) -> Iterator[ProbeFinding]:
    """Check the certificates of the mesh and of the fronts: matching, valid, and present where other machines can connect."""
    line = partial(ProbeFinding, "certificates")
    for name, look in (("mesh", open_tls), ("fronts", open_front_tls)):
        try:
            held = look(settings)
        except Exception as error:  # noqa: BLE001 - one broken pair hides no other
            yield broken(line, name, error)
            continue
        if held:
            yield _certificate(line, name, held.now().expires_at)
        elif name == "fronts":
            yield refusable(line, name, partial(require_private, settings, front=True), "plain text")
        else:
            yield _inner_places(line, settings)
    yield refusable(line, "callers", partial(_require_keys, settings), "the fronts serve those who may reach them")


def _inner_places(line: Callable[..., ProbeFinding], settings: Settings) -> ProbeFinding:
    """Tell where services behind the fronts listen without certificates. A whole mesh in one process uses no port anyway."""
    if all(socket_to_serve(settings, name, alone=True) for name in INNER):
        return line("mesh", ProbeStatus.OK, "none: services behind the fronts listen on sockets of their owner")
    found = refusable(line, "mesh", partial(require_private, settings, front=False), "plain text, by allow_plaintext")
    alone = found.status is ProbeStatus.FAIL and is_loopback(settings.host)
    return replace(found, status=ProbeStatus.WARN) if alone else found


def _require_keys(settings: Settings) -> None:
    from interlock.runtime.keys.api_keys import require_keys

    require_keys(settings)


def _certificate(line: Callable[..., ProbeFinding], name: str, ends: datetime) -> ProbeFinding:
    days = (ends - datetime.now(UTC)).days
    status = ProbeStatus.OK if days >= SOON_DAYS else ProbeStatus.WARN
    return line(name, status, f"valid until {ends:%Y-%m-%d}, {days} days", "replace it; no restart is needed")


def ports(settings: Settings, found: Mapping[str, ProbeStatus]) -> Iterator[ProbeFinding]:
    """Check the ports of ``interlock serve``: free, or taken by the service that belongs there."""
    on_ports = [name for name in INNER if socket_to_serve(settings, name, alone=True) is None]
    for name in ("sidecar_http", "sidecar_grpc", "oversight_http", "decision", *on_ports, "metrics"):
        port = getattr(settings, f"{name}_port")
        line = partial(ProbeFinding, "ports", f"{name}_port")
        try:
            listen(settings, port, name).close()
        except Refused:
            ours = name in {"sidecar_http", "oversight_http", "oversight", "metrics"} or found.get(
                name.removesuffix("_grpc")
            ) in {
                ProbeStatus.OK,
                ProbeStatus.FAIL,
            }
            if ours and any(status in {ProbeStatus.OK, ProbeStatus.FAIL} for status in found.values()):
                yield line(ProbeStatus.OK, f"{port} is taken by a running Interlock")
            else:
                hint = f"end that process, or choose another port with INTERLOCK_{name.upper()}_PORT"
                yield line(ProbeStatus.WARN, f"{port} is taken by another process", hint)
        else:
            yield line(ProbeStatus.OK, f"{port or 'any'} is free")
