"""The names that a request gives its session: in headers, a cookie, a trace, its body (requirements.md, ATT-1).

A name is worth something within one caller's scope alone. One that cannot be used is left out and told, never an error: the
header that this protocol defines is the exception, and ``headers.read`` has refused a malformed one before this is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from interlock.domain.binding import cookie
from interlock.domain.binding.digests import Digests
from interlock.domain.binding.rank import Rank

LONGEST_NAME = 256
MOST_NAMES = 24
"""Names that are asked for, the strongest first; a deployment that reads more fields than that has the rest for nothing."""

HINT = "crp-context-session-id"
RESPONSE_FIELDS = ("previous_response_id", "conversation")
BAGGAGE_KEY = "session.id"

_OWN_ID = re.compile(r"crp_sess_[0-9a-f]{32}", re.ASCII)
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?", re.ASCII)


@dataclass(frozen=True)
class EvidenceSources:
    """Which evidence a deployment reads."""

    ranks: frozenset[Rank]
    headers: tuple[str, ...]
    """Headers besides ``HINT`` whose value names a session, in lower case."""
    fields: tuple[str, ...]
    """Fields of the body whose value names a session, such as metadata.session_id."""


@dataclass(frozen=True)
class EvidenceName:
    """One name of a session."""

    rank: Rank
    digest: str
    begins: bool
    """Whether a session starts under it where it names none yet."""


@dataclass(frozen=True)
class Names:
    """What a request says about its session."""

    names: tuple[EvidenceName, ...]
    """The strongest first."""
    session_id: str
    """The session that ``HINT`` names by an id of ours; empty where it names none so."""
    cookie: str | None
    """Our cookie, if it is this caller's."""
    unusable: tuple[Rank, ...]
    """Ranks of what cannot be used: forged, too long, sent twice, not printable."""


NOTHING = Names((), "", None, ())


def read(
    sources: EvidenceSources,
    digests: Digests,
    lines: Iterable[tuple[str, str]],
    body: Mapping[str, Any],
    *,
    cookies: bool,
) -> Names:
    """Return the names in the header *lines* and in the chat *body*. Only a front that sets *cookies* reads them."""
    by_name = _wanted(sources, lines)
    reading = _Reading(sources.ranks, digests)
    session_id = reading.hints(by_name, sources.headers)
    held = reading.cookie(by_name.get("cookie", ())) if cookies else None
    reading.field(Rank.RESPONSE, "response", (body.get(name) for name in RESPONSE_FIELDS), begins=False)
    reading.trace(by_name)
    for field in sources.fields:
        reading.field(Rank.BODY, field, [_at(body, field)], begins=True)
    return Names(tuple(reading.names[:MOST_NAMES]), session_id, held, tuple(dict.fromkeys(reading.unusable)))


def response_digest(digests: Digests, response_id: str) -> str:
    """Return the digest by which the index knows one of our answers."""
    return digests.of(Rank.RESPONSE.word, "response", response_id)


def session_digest(digests: Digests, session_id: str) -> str:
    """Return the digest by which the index knows a session's own id. No other name has the same."""
    return digests.of("session", session_id)


class _Reading:
    """Collects the names of one request."""

    def __init__(self, ranks: frozenset[Rank], digests: Digests) -> None:
        self._ranks, self._digests = ranks, digests
        self.names: list[EvidenceName] = []
        self.unusable: list[Rank] = []

    def hints(self, by_name: Mapping[str, Sequence[str]], headers: Iterable[str]) -> str:
        """Read the headers that name a session; return the id where ``HINT`` gives one of ours."""
        own = ""
        for header in (HINT, *headers):
            value = self._one(Rank.HINT, by_name.get(header, ()))
            if value:
                ours = header == HINT and _OWN_ID.fullmatch(value) is not None
                own = value if ours else own
                digest = session_digest(self._digests, value) if ours else self._digests.of(Rank.HINT.word, value)
                self.names.append(EvidenceName(Rank.HINT, digest, begins=not ours))
        return own

    def cookie(self, lines: Sequence[str]) -> str | None:
        """Read our cookie and return it."""
        values = cookie.received(lines) if Rank.COOKIE in self._ranks else []
        if not values:
            return None
        held = cookie.genuine(self._digests, values)
        if held is None:
            self.unusable.append(Rank.COOKIE)
        else:
            self.names.append(EvidenceName(Rank.COOKIE, cookie.digest_of(self._digests, held), begins=False))
        return held

    def trace(self, by_name: Mapping[str, Sequence[str]]) -> None:
        """Read the session in the W3C baggage, then the trace itself."""
        self.field(Rank.TRACE, "baggage", _in_baggage(by_name.get("baggage", ())), begins=False)
        value = self._one(Rank.TRACE, by_name.get("traceparent", ()))
        found = _TRACE.fullmatch(value) if value else None
        if value and (found is None or (value.startswith("00-") and len(value) != len("00-") + 32 + 1 + 16 + 3)):
            self.unusable.append(Rank.TRACE)
        elif found:
            self._add(Rank.TRACE, "trace", found[1], begins=False)

    def field(self, rank: Rank, kind: str, values: Iterable[Any], *, begins: bool) -> None:
        """Read the one value of a field; absent, null and empty are no evidence."""
        value = self._one(rank, [value for value in values if value not in (None, "")])
        if value:
            self._add(rank, kind, value, begins=begins)

    def _add(self, rank: Rank, kind: str, value: str, *, begins: bool) -> None:
        self.names.append(EvidenceName(rank, self._digests.of(rank.word, kind, value), begins=begins))

    def _one(self, rank: Rank, values: Sequence[Any]) -> str:
        """Return the only value, if it can be a name; empty where there is none, and told where there is more."""
        if not values or rank not in self._ranks:
            return ""
        value = values[0].strip() if isinstance(values[0], str) else ""
        if len(values) > 1 or not 1 <= len(value) <= LONGEST_NAME or not value.isprintable():
            self.unusable.append(rank)
            return ""
        return value


def _wanted(sources: EvidenceSources, lines: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the values of the headers that are read, by their name in lower case."""
    wanted = {HINT, "cookie", "traceparent", "baggage", *sources.headers}
    by_name: dict[str, list[str]] = {}
    for name, value in lines:
        if (lower := name.lower()) in wanted:
            by_name.setdefault(lower, []).append(value)
    return by_name


def _in_baggage(lines: Iterable[str]) -> Iterator[str]:
    """Yield the values that the baggage gives for the session (W3C Baggage §3.2)."""
    for line in lines:
        for member in line.split(","):
            name, _, value = member.partition(";")[0].partition("=")
            if name.strip() == BAGGAGE_KEY:
                yield unquote(value.strip())


def _at(body: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted *path* of the body; ``None`` where there is none."""
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
