"""Opens sign-in by OpenID Connect from the settings, or says what they lack."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from interlock.domain.errors import Refused, invalid, unavailable
from interlock.domain.policy.group_roles import GroupRoles, read_group_roles
from interlock.oversight.oidc.calls import checked_url
from interlock.oversight.oidc.provider import Client, Provider
from interlock.oversight.oidc.sign_in import OidcSignIn
from interlock.runtime.clock import Clock
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread, read_content
from interlock.runtime.settings.strict_yaml import parse_yaml


@dataclass(frozen=True)
class Oidc:
    """Sign-in by one provider, and what role each group has now."""

    sign_in: OidcSignIn
    roles: Callable[[], GroupRoles]


def open_oidc(settings: Settings, clock: Clock) -> Oidc | None:
    """Return sign-in by OpenID Connect; ``None`` where it is not set up.

    Refused with SETTINGS_INVALID, OIDC_URL_INVALID, OIDC_ROLES_INVALID or the reasons of a file: nothing starts half open.
    """
    if not settings.oidc_issuer or "oidc" not in settings.sign_in_ways.split(","):
        if settings.sign_in_ways == "oidc":
            raise _incomplete("sign_in_ways is oidc alone, and needs oidc_issuer")
        return None
    client, path = client_of(settings), settings.oidc_roles_file
    if path is None:
        raise _incomplete("oidc_issuer needs oidc_roles_file: nobody has a role without it")
    roles = Reread([path], lambda contents: _roles(path, contents[0]), setting="oidc_roles_file")
    return Oidc(OidcSignIn(Provider(client, clock), clock, os.urandom), roles.now)


def client_of(settings: Settings) -> Client:
    """Return this console as the provider knows it. Refused with SETTINGS_INVALID, OIDC_URL_INVALID, or for an unreadable secret."""
    if not settings.oidc_client_id:
        raise _incomplete("oidc_issuer needs oidc_client_id")
    if settings.oidc_client_secret is not None and settings.oidc_client_secret_file is not None:
        raise _incomplete("oidc_client_secret and oidc_client_secret_file are two secrets; set one")
    secret = _secret_of(settings)
    secret()
    return Client(
        issuer=checked_url(settings.oidc_issuer, "oidc_issuer"), client_id=settings.oidc_client_id, secret=secret,
        scopes=settings.oidc_scopes.split(","), groups_claim=settings.oidc_groups_claim, name_claim=settings.oidc_name_claim,
        ca_file=settings.oidc_ca_file, timeout_s=settings.oidc_timeout_s,
    )  # fmt: skip


def load_roles(path: Path) -> GroupRoles:
    """Return the roles of groups in *path* as it is now."""
    return _roles(path, read_content(path))


def _secret_of(settings: Settings) -> Callable[[], str | None]:
    path, given = settings.oidc_client_secret_file, settings.oidc_client_secret
    if path is not None:
        return lambda: read_content(path, secret=True).decode("utf-8", "replace").strip()
    return lambda: given.get_secret_value() if given is not None else None


def _roles(path: Path, content: bytes) -> GroupRoles:
    """Return the roles of groups. A file that everyone may change is refused: whoever writes it says who is an admin."""
    if path.stat().st_mode & stat.S_IWOTH:
        raise unavailable(
            "FILE_UNSAFE", f"{path}: everyone on this machine may change it", retry_after_ms=0, hint="chmod o-w it"
        )
    return read_group_roles(parse_yaml(content, path, secret=False))


def _incomplete(message: str) -> Refused:
    return invalid("SETTINGS_INVALID", message)
