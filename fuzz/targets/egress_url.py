"""Addresses that somebody else chose: what is accepted is read the same by everybody, and is no address (A-18)."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx

from fuzz.reading import split_off, told
from interlock.runtime.egress import addresses

WORDS = (
    b"https://", b"http://", b"localhost", b"127.0.0.1", b"0x7f.1", b"2130706433", b"0177.0.0.1", b"[::1]", b"[::ffff:127.0.0.1]",
    b"169.254.169.254", b"@", b"\\", b"#", b"?", b":443", b":8443", b":0443", b"%2e", b"\xe3\x80\x82", b".", b"..", b"\t", b"\r\n",
    b"example.com", b"[fd00:ec2::254]", b"64:ff9b::7f00:1",
)  # fmt: skip


def TestOneInput(data: bytes) -> None:
    """A URL leads where two other readers say that it leads, to a name; an address that passes is public."""
    first, second = split_off(data, 2)
    url = first.decode("utf-8", "replace")
    target = told(lambda: addresses.check_url(url))
    if target is not None:
        parts, other = urlsplit(url), httpx.URL(url)
        assert parts.hostname == other.host == target.host, url
        assert (parts.port or 443) == (other.port or 443) == target.port, url
        assert parts.username is None and not other.userinfo and not parts.fragment, url  # noqa: PT018 - one thought
        assert target.port in addresses.PORTS
        assert not _is_address(target.host), url
        told(lambda: addresses.check_addresses(target, second.decode("utf-8", "replace").split("\n")))
    _addresses(second.decode("utf-8", "replace").split("\n"))
    told(lambda: addresses.allowed_origins(url))


def _addresses(texts: list[str]) -> None:
    """No address passes that Python knows to be anything but public."""
    target = addresses.Target("https", "example.com", 443, "/", excepted=False)
    for text in told(lambda: addresses.check_addresses(target, texts)) or ():
        found = ip_address(text)
        inner = getattr(found, "ipv4_mapped", None) or found
        assert inner.is_global, text
        assert not any((inner.is_private, inner.is_loopback, inner.is_link_local, inner.is_multicast)), text


def _is_address(host: str) -> bool:
    """Whether the C library would read the host as an address without asking anybody."""
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True


def seeds() -> dict[str, bytes]:
    """Good ones, and every spelling of a loopback address that is known."""
    urls = [
        b"https://hooks.example.com/a?b=c", b"https://hooks.example.com:8443", b"https://127.0.0.1/", b"https://0x7f.1/",
        b"https://2130706433/", b"https://[::ffff:7f00:1]/", b"https://a@b.example/", b"https://b.example\\@c.example/",
        b"https://localhost.:443/", b"http://example.com/", b"https://example.com:22/", b"https://example.com/#x",
    ]  # fmt: skip
    addresses = b"93.184.216.34\n2606:2800:220:1::1\n::ffff:10.0.0.1\n64:ff9b::a00:1\n2002:7f00:1::\n100.100.100.200"
    return {f"url_{number}": url + b"\x00" + addresses for number, url in enumerate(urls)}
