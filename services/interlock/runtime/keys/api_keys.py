"""Who is calling: the caller's key becomes a scope, and never anything else (SPEC-007 §5.4; reliability.md A-08)."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from interlock.domain.errors import Refused, invalid, unauthenticated, unavailable
from interlock.runtime.settings.access import is_loopback
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread
from interlock.runtime.settings.strict_yaml import parse_yaml

log = structlog.get_logger()

ANONYMOUS = "anonymous"
UNVERIFIED = "unverified"
"""Stands for all callers whose keys nobody verifies where a budget is spent: a made-up key must not bring a full one (ATT-2)."""
INVALID = "API_KEYS_FILE_INVALID"

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
_KEY = re.compile(r"[\x21-\x7e]{1,4096}", re.ASCII)


@dataclass(frozen=True)
class Caller:
    """A caller: the scope of its sessions, and its key for the provider. The key is never logged or stored."""

    scope: str
    key: str | None = field(repr=False)
    verified: bool = True
    """Whether anybody vouches for the key: a list of keys here, or the provider that it is passed on to."""
    digest: str = ""
    """Hash of the key where the key itself never came here, or digest of the pod's service account."""

    @property
    def known_by(self) -> tuple[str, ...]:
        """Digests by which agent types are registered, the most certain first: of the service account, of the key; empty without any."""
        hashed = hashlib.sha256(self.key.encode()).hexdigest() if self.key else ""
        return tuple(filter(None, (self.digest, hashed))) or ("",)

    @property
    def sharing(self) -> str:
        """As whom it shares what there is not enough of: all whom nobody vouches for count as one (A-38)."""
        return self.scope if self.verified else ""


class ApiKeys:
    """Turns an Authorization header into a caller, with or without a list of accepted keys.

    Keys are found by their hash, so that looking one up takes the same time however much of it is right (A-11). A list
    that changes is in force within a second: a key is added, or taken away, without a restart.
    """

    def __init__(self, listed: Reread[Mapping[str, str]] | None, *, passed_on: bool = True) -> None:
        self._listed, self._passed_on = listed, passed_on

    def caller(self, authorization: Sequence[str]) -> Caller:
        """Return the caller of a request with these Authorization header values.

        Refused with API_KEY_INVALID: two headers, another scheme, a malformed key, or one that is not accepted.
        """
        if len(authorization) > 1:
            raise _rejected("the Authorization header was sent more than once")
        if not authorization:
            if self._listed is not None:
                raise _rejected("an API key is needed: Authorization: Bearer <key>")
            return Caller(ANONYMOUS, None)
        scheme, _, key = authorization[0].partition(" ")
        if scheme.lower() != "bearer" or not _KEY.fullmatch(key):
            raise _rejected("the Authorization header must be: Bearer <key>")
        digest = hashlib.sha256(key.encode()).hexdigest()
        if self._listed is None:
            return Caller(_unlisted(digest), key, verified=self._passed_on)
        return Caller(_named(self._listed.now(), digest), key)

    def unready(self) -> Mapping[str, str]:
        """Return what is missing to tell who calls: nothing, of keys."""
        return {}

    async def close(self) -> None:
        """End what keeps them current: nothing, of keys."""

    def vouched(self, known_by: str) -> Caller:
        """Return the caller that a gateway has verified, by the hash of its key or another name of the gateway's; empty: by none.

        The same key has the same scope here and there. Refused with API_KEY_INVALID where a list does not have it.
        """
        if not known_by and self._listed is None:
            return Caller(ANONYMOUS, None)
        digest = known_by if _SHA256.fullmatch(known_by) else hashlib.sha256(known_by.encode()).hexdigest()
        if self._listed is None:
            return Caller(_unlisted(digest), None, digest=digest)
        return Caller(_named(self._listed.now(), digest), None, digest=digest)


def load_api_keys(path: Path | None, *, passed_on: bool = True) -> ApiKeys:
    """Return the accepted keys of a YAML file of name to SHA-256, or to several while a key is changed; without a file every key is its own scope.

    *passed_on*: the provider gets the caller's key, and refuses one that is made up.

    Refused with API_KEYS_FILE_INVALID, naming what is wrong; nothing starts on a list that cannot be read, or that everybody
    on the machine may change. One that everybody may read is told: a weak key could be found from its hash.
    """
    if path is None:
        return ApiKeys(None, passed_on=passed_on)

    def read(contents: Sequence[bytes]) -> Mapping[str, str]:
        _check_access(path)
        return _names_of(_document(contents[0], path), path)

    try:
        return ApiKeys(Reread([path], read, setting="api_keys_file"))
    except Refused as refused:
        if refused.reason == INVALID:
            raise
        raise _broken(path, refused.message.removeprefix(f"{path}: ")) from None


def require_keys(settings: Settings) -> None:
    """Refuse a front that other machines reach and that serves whoever comes, with API_KEYS_REQUIRED."""
    registered = settings.agents_file is not None and settings.require_registered_agents
    if settings.api_keys_file or registered or settings.allow_unlisted_keys or is_loopback(settings.host):
        return
    raise invalid(
        "API_KEYS_REQUIRED",
        f"the front on {settings.host} would serve everyone who reaches it, with this deployment's key and budget",
        hint="list the accepted keys in api_keys_file, bind 127.0.0.1, or set allow_unlisted_keys where something else "
        "checks them",
    )


def _document(content: bytes, path: Path) -> Any:
    try:
        return parse_yaml(content, path)
    except Refused as refused:
        raise _broken(path, refused.message.removeprefix(f"{path}: ")) from None


def _check_access(path: Path) -> None:
    mode = path.stat().st_mode
    if mode & stat.S_IWOTH:
        raise _broken(path, "everybody on this machine may change it")
    if mode & stat.S_IROTH:
        log.warning("api_keys.readable", path=str(path), hint=f"chmod o= {path}")


def _names_of(listed: Any, path: Path) -> Mapping[str, str]:
    if not isinstance(listed, dict) or not listed:
        raise _broken(path, "it must map at least one name to the SHA-256 of its key")
    names: dict[str, str] = {}
    for name, given in listed.items():
        if (
            not isinstance(name, str)
            or not _NAME.fullmatch(name)
            or name in {ANONYMOUS, UNVERIFIED}
            or name.startswith("key_")
        ):
            raise _broken(path, "a name must be 1 to 64 letters, digits, dots, hyphens or underscores, and not key_…")
        for digest in given if isinstance(given, list) and given else [given]:
            if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
                raise _broken(path, f"the value of {name} must be 64 lower-case hex digits, or a list of such")
            if digest in names:
                raise _broken(path, f"{names[digest]} and {name} have the same key")
            names[digest] = name
    return names


def _unlisted(digest: str) -> str:
    return f"key_{digest[:24]}"


def _named(listed: Mapping[str, str], digest: str) -> str:
    name = listed.get(digest)
    if name is None:
        raise _rejected("this API key is not accepted")
    return name


def _rejected(message: str) -> Refused:
    return unauthenticated("API_KEY_INVALID", message)


def _broken(path: Path, why: str) -> Refused:
    return unavailable(INVALID, f"{path}: {why}", retry_after_ms=0)
