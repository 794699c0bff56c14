"""Report endpoints: absolute http and https URIs that cannot smuggle a directive (reliability.md A-13).

This module checks the syntax only. The sender of a report decides whether an address may be called (POL-9).
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_AUTHORITY = re.compile(r"[^/?#]*+")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]++\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*+))(?::([0-9]{1,5}))?+")
_REST = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+=:@/-]|%[0-9A-Fa-f]{2})*)?"
                   r"(?:\?(?:[A-Za-z0-9._~!$&'()*+=:@/?-]|%[0-9A-Fa-f]{2})*)?"
                   r"(?:#(?:[A-Za-z0-9._~!$&'()*+=:@/?-]|%[0-9A-Fa-f]{2})*)?")  # fmt: skip
"""Path, query and fragment of RFC 3986 §3 without ``;`` and ``,``, which separate directives and policies."""

HIGHEST_PORT = 65535


class UriError(ValueError):
    """A refused URI: the cause and its position."""

    def __init__(self, message: str, offset: int, expected: str) -> None:
        super().__init__(message)
        self.offset, self.expected = offset, expected


def check_uri(uri: str) -> None:
    """Raise ``UriError`` unless *uri* is an absolute http or https URI with a host and without user information."""
    scheme = _SCHEME.match(uri)
    if not scheme:
        raise UriError("the URI must be absolute", 0, "an absolute http or https URI")
    authority = _AUTHORITY.match(uri, scheme.end())
    end = authority.end() if authority else scheme.end()
    _check_authority(uri[scheme.end() : end], scheme.end())
    rest = _REST.match(uri, end)
    stop = rest.end() if rest else end
    if stop < len(uri):
        raise _unusable_character(uri, stop)


def _check_authority(authority: str, at: int) -> None:
    if "@" in authority:
        raise UriError("user information is not allowed in the URI", at, "a host without user information")
    found = _HOST.match(authority)
    if not found:
        raise UriError("the URI has no usable host", at, "a host name, an IPv4 address or [an IPv6 address]")
    if found.end() < len(authority):
        raise _unusable_character(authority, found.end(), at)
    if found[1].startswith("["):
        _check_ipv6(found[1][1:-1], at)
    if found[2] and not 0 < int(found[2]) <= HIGHEST_PORT:
        raise UriError("the port is out of range", at + found.start(2), f"a port from 1 to {HIGHEST_PORT}")


def _check_ipv6(host: str, at: int) -> None:
    try:
        IPv6Address(host)
    except AddressValueError:
        raise UriError("the IPv6 address is malformed", at, "an IPv6 address in brackets") from None


def _unusable_character(text: str, index: int, at: int = 0) -> UriError:
    if text[index] in ",;":
        message = "',' and ';' must be percent-encoded in the URI"
    elif text[index] == "%":
        message = "'%' must be followed by two hexadecimal digits in the URI"
    else:
        message = "the URI has a character that is not allowed there"
    return UriError(message, at + index, "a URI of RFC 3986 with ',' and ';' percent-encoded")
