"""Variables that Kubernetes makes for the Services beside a pod, told apart from settings.

A Service called ``interlock-session`` gives each pod of its namespace INTERLOCK_SESSION_PORT=tcp://ADDRESS:PORT and others beside it,
unless the pod says ``enableServiceLinks: false``. What a pod with an injected sidecar says is its author's affair, so such a variable
stands in nobody's way: it is no setting.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_URL = re.compile(r"(?:tcp|udp|sctp)://\S+", re.IGNORECASE)


def linked_ports(environment: Mapping[str, str | None]) -> frozenset[str]:
    """Return the names that end in _PORT and hold a URL, in the case that they have: no port of ours is written that way.

    These alone are kept from the settings, so that no Service's name can take away what an operator has set.
    """
    return frozenset(name for name, value in environment.items() if _is_port(name) and _URL.fullmatch(value or ""))


def service_links(environment: Mapping[str, str | None]) -> frozenset[str]:
    """Return the names of all INTERLOCK_ variables that Kubernetes has made of Services."""
    ports = linked_ports(environment)
    services = tuple(name[: -len("PORT")].upper() for name in ports)
    beside = tuple(f"{service}{part}" for service in services for part in ("PORT_", "SERVICE_HOST", "SERVICE_PORT"))
    return ports | {name for name in environment if beside and name.upper().startswith(beside)}


def _is_port(name: str) -> bool:
    return name.upper().startswith("INTERLOCK_") and name.upper().endswith("_PORT")
