"""Where the services behind the fronts listen, and where their callers find them (SVC-6).

A port on loopback is open to every process of the machine, so to the agents too, and these services take their callers' word. So
without certificates they listen on a Unix socket that only its owner may open. A whole mesh in one process has no other listener
than its fronts and such sockets.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import tempfile
from pathlib import Path

from interlock.runtime.settings.access import is_loopback
from interlock.runtime.settings.declarations import SettingDeclarations
from interlock.runtime.settings.model import Settings

INNER = ("session", "policy", "dpe", "audit", "oversight")
"""Services that members of the mesh and operators call, and no agent."""

UNIX = "unix:"
LONGEST_SOCKET_PATH = 100
SHORT_TEMP = Path("/tmp")  # noqa: S108 - the folder in it is this user's alone
CONNECT_LIMIT_S = 0.5


def address(host: str, port: int) -> str:
    """Return HOST:PORT, with brackets around an IPv6 host."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def socket_to_serve(settings: Settings, name: str, *, alone: bool) -> Path | None:
    """Return the path of the socket that the service *name* is served on; ``None``: its port.

    *alone*: the process serves this one service. A port needs certificates or ``allow_plaintext``, so one that was asked for
    without them is refused when it is bound, and not replaced by a socket that nobody asked for.
    """
    if path := _given_socket(settings, name):
        return path
    if alone and (_networked(settings) or _wants_port(settings, name)):
        return None
    return own_socket(settings, name)


def address_to_call(settings: Settings, name: str) -> str:
    """Return the gRPC target at which callers find the service *name*."""
    if given := str(getattr(settings, f"{name}_address")):
        path = _given_socket(settings, name)
        return f"{UNIX}{path}" if path else given
    path = own_socket(settings, name)
    if not _networked(settings) or _listens(path):
        return f"{UNIX}{path}"
    field = f"{name}_port"
    return address("127.0.0.1", getattr(settings, field) or SettingDeclarations.model_fields[field].default)


def address_to_ask(settings: Settings, name: str) -> str:
    """Return the gRPC target at which a command finds the service *name*: a port that its user named counts by itself.

    The mesh trusts what answers, so it takes a port with certificates or ``allow_plaintext`` alone. A socket that answers
    comes before the port: a mesh in one process binds none.
    """
    port = getattr(settings, f"{name}_port")
    named = f"{name}_port" in settings.model_fields_set and port and not getattr(settings, f"{name}_address")
    if named and not _listens(own_socket(settings, name)):
        return address("127.0.0.1", port)
    return address_to_call(settings, name)


def own_socket(settings: Settings, name: str) -> Path:
    """Return the path of a service's socket below ``state_dir``; where that would be too long, in a folder of this user."""
    state = settings.state_dir.absolute()
    path = state / "run" / f"{name}.sock"
    if len(os.fsencode(path)) < LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:16]
    ours = Path(f"interlock-{os.geteuid()}-{digest}") / f"{name}.sock"
    path = tempfile.gettempdir() / ours
    # A folder for temporary files may be too deep itself.
    return path if len(os.fsencode(path)) < LONGEST_SOCKET_PATH else SHORT_TEMP / ours


def is_socket(target: str) -> bool:
    """Return whether a gRPC target is a Unix socket. No certificate is shown there: the file's mode decides who may call."""
    return target.startswith(UNIX)


def _given_socket(settings: Settings, name: str) -> Path | None:
    given = str(getattr(settings, f"{name}_address"))
    return Path(given.removeprefix(UNIX)).absolute() if is_socket(given) else None


def _networked(settings: Settings) -> bool:
    return settings.tls_cert_file is not None or settings.allow_plaintext


def _wants_port(settings: Settings, name: str) -> bool:
    return f"{name}_port" in settings.model_fields_set or not is_loopback(settings.host)


def _listens(path: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CONNECT_LIMIT_S)
        probe.connect(str(path))
        return True
    return False
