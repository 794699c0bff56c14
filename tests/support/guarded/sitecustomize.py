"""Loaded by every Python process that has this folder on its path: any way out of this machine is noted and refused.

Names are not resolved, and nothing but loopback and local sockets is connected to. The note goes to the file that
NETWORK_GUARD_LOG names; the exception alone would not do, for a library may swallow it.
"""

import ipaddress
import os
import sys

_CALLS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


def _is_local(target: object) -> bool:
    if isinstance(target, tuple):
        target = target[0] if target else ""
    if target is None or isinstance(target, bytes) or target in {"", "localhost"} or str(target).startswith("/"):
        return True
    try:
        address = ipaddress.ip_address(str(target).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _guard(event: str, arguments: tuple[object, ...]) -> None:
    place = _CALLS.get(event)
    if place is None or _is_local(arguments[place]):
        return
    with open(os.environ["NETWORK_GUARD_LOG"], "a", encoding="utf-8") as log:  # noqa: PTH123 - pathlib would slow every start
        log.write(f"{event} {arguments[place]}\n")
    raise PermissionError(f"{event} leaves this machine")


sys.addaudithook(_guard)
