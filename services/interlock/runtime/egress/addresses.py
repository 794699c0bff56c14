"""The rule of which addresses may be called: it checks URLs and resolved addresses, without network access (A-18)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network

from prometheus_client import Counter

from interlock.domain.errors import Refused, forbidden, invalid, unavailable

REFUSED = Counter(
    "interlock_egress_refused", "Outgoing calls that were refused before a connection, by reason.", ["reason"]
)

PORTS = frozenset({443, 8443})
LONGEST_URL = 2048

_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>[/?][!$-\[\]-~]*)?",
    re.ASCII,
)
"""Excludes user, password, fragment, backslash and control characters, which parsers interpret differently."""
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)+{_LABEL}", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ENTRY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})", re.ASCII)
_SPECIAL_4 = tuple(map(ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)))  # fmt: skip
"""IANA's special-purpose IPv4 addresses, multicast and the reserved rest."""
_GLOBAL_6 = ip_network("2000::/3")
_SPECIAL_6 = tuple(map(ip_network, ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20")))
_NAT64 = ip_network("64:ff9b::/96")
_6TO4 = ip_network("2002::/16")
_NEVER = tuple(map(ip_network, (
    "0.0.0.0/8", "169.254.0.0/16", "100.100.100.200/32", "224.0.0.0/4", "240.0.0.0/4", "fe80::/10", "ff00::/8", "::/128",
    "fd00:ec2::254/128",
)))  # fmt: skip
"""Networks that no setting can allow: metadata services, link-local, multicast, unspecified."""

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Target:
    """A parsed URL that may be resolved."""

    scheme: str
    host: str
    port: int
    path: str
    excepted: bool
    """Whether ``egress_allow`` names it. Then plain http and loopback or private addresses are accepted."""

    @property
    def origin(self) -> str:
        """Host and port as one text."""
        return f"{self.host}:{self.port}"


def allowed_origins(text: str) -> frozenset[tuple[str, int]]:
    """Return the exact HOST:PORT entries of ``egress_allow``. Refused with EGRESS_ALLOW_INVALID."""
    found = [_ENTRY.fullmatch(entry.strip()) for entry in text.split(",") if entry.strip()]
    if any(entry is None or not 0 < int(entry["port"]) < 65536 for entry in found):
        raise invalid("EGRESS_ALLOW_INVALID", "egress_allow is a comma-separated list of HOST:PORT")
    return frozenset((_host(entry["host"]), int(entry["port"])) for entry in found if entry)


def check_url(url: str, allowed: frozenset[tuple[str, int]] = frozenset()) -> Target:
    """Return the target of *url*, without network access.

    Refused with EGRESS_URL_REFUSED, EGRESS_HOST_REFUSED or EGRESS_PORT_REFUSED.
    """
    target = _read(url, allowed)
    if target is None:
        raise refused("EGRESS_URL_REFUSED", "a URL is https://, a host name, a port if wanted, and a path")
    if not target.excepted:
        _check_form(target)
    return target


def url_host(url: str) -> str:
    """Return the host of *url*, whether or not it may be called; empty for anything but a URL."""
    target = _read(url, frozenset())
    return target.host if target else ""


def _read(url: str, allowed: frozenset[tuple[str, int]]) -> Target | None:
    parts = _URL.fullmatch(url) if len(url) <= LONGEST_URL else None
    if parts is None:
        return None
    host = _host(parts["host"])
    port = int(parts["port"] or (443 if parts["scheme"] == "https" else 80))
    path = parts["path"] or "/"
    return Target(parts["scheme"], host, port, path if path[0] == "/" else "/" + path, (host, port) in allowed)


def _check_form(target: Target) -> None:
    if target.scheme != "https":
        raise refused("EGRESS_URL_REFUSED", "only https URLs are called")
    last = target.host.rpartition(".")[2]
    if not _NAME.fullmatch(target.host) or len(target.host) > 253 or _NUMBER.fullmatch(last):
        raise refused("EGRESS_HOST_REFUSED", "a host is a full name; addresses in any form are not called")
    if target.port not in PORTS:
        raise refused("EGRESS_PORT_REFUSED", f"a port is one of {', '.join(map(str, sorted(PORTS)))}")


def check_addresses(target: Target, texts: Iterable[str]) -> list[str]:
    """Return the addresses of a target, if all of them may be connected to. Refused with EGRESS_ADDRESS_REFUSED otherwise.

    One bad address among good ones is refused too: an attacker who returns both waits until the bad one is tried.
    """
    found = [_address(text) for text in texts]
    if not found:
        raise unavailable("EGRESS_UNRESOLVED", "the name has no address")
    for address in found:
        inner = _inner(address)
        public = not any(inner in net for net in _SPECIAL_4) if isinstance(inner, IPv4Address) else _is_public(inner)
        if any(one in net for one in (address, inner) for net in _NEVER) or not (public or target.excepted):
            raise refused("EGRESS_ADDRESS_REFUSED", "the name resolves to an address that is not public")
    return [str(address) for address in found]


def _address(text: str) -> Address:
    try:
        return ip_address(text.partition("%")[0])
    except (ValueError, AddressValueError):
        raise refused("EGRESS_ADDRESS_REFUSED", "the name does not resolve to an address") from None


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address embeds, or the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _6TO4:
        return IPv4Address((int(address) >> 80) & 0xFFFFFFFF)
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address


def _is_public(address: IPv6Address) -> bool:
    return address in _GLOBAL_6 and not any(address in net for net in _SPECIAL_6)


def _host(text: str) -> str:
    """Return a host in its canonical form: a name in lower case, an address as ``ipaddress`` writes it; empty for an invalid address."""
    if not text.startswith("["):
        return text.lower()
    try:
        return str(IPv6Address(text[1:-1]))
    except AddressValueError:
        return ""  # neither a name nor an address: refused


def refused(reason: str, message: str) -> Refused:
    """Count and return the refusal of an address."""
    REFUSED.labels(reason).inc()
    return forbidden(reason, message)
