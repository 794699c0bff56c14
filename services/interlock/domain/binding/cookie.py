"""The cookie that names a session: one value for each session of a caller, worth nothing without the caller's key.

Its value says nothing by itself: it is a keyed digest of the session's id, and a second digest shows that it was made here.
So every replica sets the same cookie for a session, and nothing has to be remembered before it is set.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from interlock.domain.binding.digests import Digests

NAME = "crp_session"

_FORM = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})", re.ASCII)


@dataclass(frozen=True)
class CookieTerms:
    """How a deployment sets the cookie: for how long, and whether over TLS alone."""

    max_age_s: int
    secure: bool


def value_of(digests: Digests, session_id: str) -> str:
    """Return the value of a session's cookie."""
    tag = digests.of("cookie-of", session_id)
    return f"{tag}.{digests.of('cookie-signature', tag)}"


def set_cookie(value: str, terms: CookieTerms) -> str:
    """Return the Set-Cookie header. No script of a page reads the cookie, and no other site's page sends it."""
    plain = f"{NAME}={value}; Max-Age={terms.max_age_s}; Path=/; HttpOnly; SameSite=Strict"
    return f"{plain}; Secure" if terms.secure else plain


def digest_of(digests: Digests, value: str) -> str:
    """Return the digest by which the index knows the cookie *value*."""
    return digests.of("cookie", value)


def received(lines: Iterable[str]) -> list[str]:
    """Return the values that the Cookie header *lines* give for our cookie."""
    pairs = (pair.partition("=") for line in lines for pair in line.split(";"))
    return [value.strip() for name, _, value in pairs if name.strip() == NAME]


def without(lines: Iterable[str]) -> str:
    """Return the other cookies of the Cookie header *lines*, as one line; empty where there is none."""
    pairs = (pair.strip() for line in lines for pair in line.split(";"))
    return "; ".join(pair for pair in pairs if pair and pair.partition("=")[0].strip() != NAME)


def genuine(digests: Digests, values: list[str]) -> str | None:
    """Return the cookie if it was sent once and was set here for this caller; ``None`` otherwise.

    One that is forged, cut off, or set for another caller's key is none.
    """
    found = _FORM.fullmatch(values[0]) if len(values) == 1 else None
    if found is None or not hmac.compare_digest(found[2], digests.of("cookie-signature", found[1])):
        return None
    return values[0]
