"""Receivers of audit events: the sinks of a YAML file, and the hosts of violation reports (AUD-4, POL-9)."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from interlock.domain.chain.audit_events import SEVERITIES, TYPES
from interlock.domain.chain.chain import EventRecord
from interlock.domain.errors import Refused, invalid, unavailable
from interlock.runtime.egress.addresses import allowed_origins, check_url
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import read_content

FORMATS = ("cloudevents", "comply", "report")
REPORT = "report"
REPORTED = "POLICY_VIOLATION"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_BEARER = re.compile(r"[A-Za-z0-9._~+/=-]{8,4096}", re.ASCII)
_SECRET_BYTES = range(24, 65)
"""Lengths of a signing key that Standard Webhooks allows, bytes."""


@dataclass(frozen=True)
class Sink:
    """One receiver. For ``report-uri`` the event names the address, and ``host`` is the only host that it may name."""

    name: str
    url: str
    secrets: tuple[bytes, ...] = field(repr=False)
    """Keys that sign each message: two during a rotation."""
    bearer: str = field(default="", repr=False)
    least: int = 2
    types: frozenset[str] = frozenset()
    format: str = "cloudevents"
    beginning: bool = True
    """Whether a new sink starts at the beginning of the log; otherwise it starts with new entries."""
    batch: int = 100
    timeout_s: float = 10.0
    max_age_s: float = 86_400.0
    retry_first_s: float = 1.0
    retry_most_s: float = 300.0
    required: bool = False
    max_lag: int = 10_000
    host: str = ""

    def takes(self, event: EventRecord) -> bool:
        """Return whether an event goes to this sink."""
        if self.format == REPORT:
            return event.event_type == REPORTED
        if self.types:
            return event.event_type in self.types
        return event.severity >= self.least


def report_sinks(settings: Settings) -> dict[str, Sink]:
    """Return a sink for each host that violations may be reported to, each with a cursor of its own."""
    secret = settings.report_secret.get_secret_value() if settings.report_secret else ""
    hosts = [host for host in settings.report_uri_hosts.split(",") if host]
    keys = _keys("report_secret", secret) if hosts else ()
    return {f"report-uri:{host}": Sink(f"report-uri:{host}", "", keys, format=REPORT, host=host) for host in hosts}


def load_sinks(settings: Settings) -> dict[str, Sink]:
    """Return the sinks in the settings' file, with secrets.

    Refused with SINKS_INVALID or SINKS_NOT_READABLE, and with KEY_FILE_EXPOSED where everyone may read a file of a secret.
    """
    path = settings.sinks_file
    if path is None:
        return {}
    try:
        document = yaml.safe_load(_text(path))
    except (yaml.YAMLError, ValueError, RecursionError):  # an impossible date or number is a ValueError
        raise _bad("the file", "YAML") from None
    if not isinstance(document, Mapping) or document.keys() != {"sinks"} or not isinstance(document["sinks"], Mapping):
        raise _bad("the file", "a mapping with sinks, name to fields, and nothing else")
    allowed = allowed_origins(settings.egress_allow)
    return {name: _sink(name, fields, allowed, path.parent) for name, fields in document["sinks"].items()}


def _text(path: Path, *, secret: bool = False) -> str:
    try:
        return read_content(path, secret=True).decode() if secret else path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise unavailable(
            "SINKS_NOT_READABLE", f"{path}: {type(error).__name__}", retry_after_ms=0, hint="see sinks_file"
        ) from None


_PLAIN: Mapping[str, tuple[bool, float, float]] = {
    "batch": (True, 1, 1000),
    "timeout_s": (False, 0.1, 60),
    "max_age_s": (False, 1, 31_536_000),
    "retry_first_s": (False, 0.05, 3600),
    "retry_most_s": (False, 0.05, 86_400),
    "max_lag": (True, 1, 1_000_000_000),
}
"""Numeric fields: whether whole, least, most."""
_FIELDS = {
    "url", "secret", "secret_file", "secret_env", "bearer_file", "bearer_env", "min_severity", "event_types", "format",
    "start", "required", *_PLAIN,
}  # fmt: skip


def _sink(name: Any, fields: Any, allowed: frozenset[tuple[str, int]], folder: Path) -> Sink:
    place = f"sinks.{name}"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _bad("sinks", "names of small letters, digits and hyphens, 32 at most")
    if not isinstance(fields, Mapping) or not fields.keys() <= _FIELDS:
        raise _bad(place, f"a mapping of {', '.join(sorted(_FIELDS))}")
    values: dict[str, Any] = {key: _plain(place, key, fields[key]) for key in _PLAIN if key in fields}
    kind = fields.get("format", "cloudevents")
    if kind not in FORMATS:
        raise _bad(f"{place}.format", f"one of {', '.join(FORMATS)}")
    secret = _secret(place, "secret", fields, folder)
    bearer = _secret(place, "bearer", fields, folder)
    if bearer and not _BEARER.fullmatch(bearer):
        raise _bad(f"{place}.bearer", "a token of RFC 6750, 8 characters or more")
    return Sink(
        name, _url(place, fields.get("url"), allowed), _keys(f"{place}.secret", secret), bearer,
        least=_least(place, kind, fields), types=_types(place, kind, fields),
        format=kind, beginning=_word(place, "start", fields, "beginning", "now") == "beginning",
        required=_flag(place, fields), **values,
    )  # fmt: skip


def _url(place: str, value: Any, allowed: frozenset[tuple[str, int]]) -> str:
    try:
        check_url(value if isinstance(value, str) else "", allowed)
    except Refused:
        raise _bad(
            f"{place}.url", "an https:// URL with a full host name, or one whose HOST:PORT egress_allow names"
        ) from None
    return str(value)


def _plain(place: str, key: str, value: Any) -> int | float:
    whole, least, most = _PLAIN[key]
    number = isinstance(value, int | float) and not isinstance(value, bool) and (isinstance(value, int) or not whole)
    if not number or not least <= value <= most:
        raise _bad(f"{place}.{key}", f"a {'whole ' if whole else ''}number from {least:g} to {most:g}")
    return value  # type: ignore[no-any-return]


def _least(place: str, kind: str, fields: Mapping[str, Any]) -> int:
    """Return the lowest severity to send. WARN and CRITICAL are always sent (SPEC-011 §6); Comply gets whole chains."""
    named = _word(place, "min_severity", fields, "DEBUG" if kind == "comply" else "INFO", "DEBUG", "INFO", "WARN")
    if kind == "comply" and named != "DEBUG":
        raise _bad(f"{place}.min_severity", "nothing: Comply verifies the chain, which needs every event")
    return SEVERITIES.index(named) + 1


def _types(place: str, kind: str, fields: Mapping[str, Any]) -> frozenset[str]:
    listed = fields.get("event_types", [])
    if not isinstance(listed, list) or not all(isinstance(one, str) and one in TYPES for one in listed):
        raise _bad(f"{place}.event_types", "a list of types of docs/events.md")
    if listed and kind != "cloudevents":
        raise _bad(f"{place}.event_types", "nothing, unless the format is cloudevents")
    return frozenset(listed)


def _word(place: str, key: str, fields: Mapping[str, Any], default: str, *others: str) -> str:
    value = fields.get(key, default)
    if not isinstance(value, str) or value not in {default, *others}:
        raise _bad(f"{place}.{key}", f"one of {', '.join(dict.fromkeys((default, *others)))}")
    return value


def _flag(place: str, fields: Mapping[str, Any]) -> bool:
    value = fields.get("required", False)
    if not isinstance(value, bool):
        raise _bad(f"{place}.required", "true or false")
    return value


def _secret(place: str, what: str, fields: Mapping[str, Any], folder: Path) -> str:
    """Return a secret from the sinks file, from a file of its own or from the environment; empty if none is named."""
    given = [key for key in (what, f"{what}_file", f"{what}_env") if key in fields]
    if len(given) > 1:
        raise _bad(place, f"one of {', '.join(given)}")
    value = fields.get(given[0], "") if given else ""
    if not isinstance(value, str):
        raise _bad(f"{place}.{given[0]}", "a text")
    if given == [f"{what}_file"]:
        return _text(folder / value, secret=True).strip()
    if given == [f"{what}_env"]:
        if not _VARIABLE.fullmatch(value) or value not in os.environ:
            raise _bad(f"{place}.{what}_env", "the name of an environment variable that is set")
        return os.environ[value].strip()
    return value


def _keys(place: str, secret: str) -> tuple[bytes, ...]:
    """Return the keys of a secret; during a rotation there are two, separated by a space."""
    keys = []
    for part in secret.split():
        try:
            key = base64.b64decode(part.removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not part.startswith("whsec_") or len(key) not in _SECRET_BYTES:
            raise _bad(place, "whsec_ and the base64 of 24 to 64 random bytes")
        keys.append(key)
    if not 1 <= len(keys) <= 2:
        raise _bad(place, "one secret, or two separated by a space")
    return tuple(keys)


def _bad(place: str, expected: str) -> Refused:
    return invalid("SINKS_INVALID", f"{place}: expected {expected}", place=place, expected=expected)
