"""Who reaches a listener: this machine alone, or others too."""

from __future__ import annotations

import ipaddress
from enum import StrEnum


class Access(StrEnum):
    """To whom a page or a service that describes this process answers."""

    LOCAL = "local"
    ANYONE = "anyone"
    NOBODY = "nobody"


def is_open(access: str, host: str, *, known: bool = False) -> bool:
    """Return whether a listener on *host* answers. *known*: it knows its callers by file mode or certificate."""
    return access == Access.ANYONE or (access == Access.LOCAL and (known or is_loopback(host)))


def is_loopback(host: str) -> bool:
    """Return whether *host* is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
