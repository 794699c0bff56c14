"""The settings of sign-in to the console, beside the others: one flat model in several files."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from interlock.runtime.settings.spending import SpendingDeclarations
from interlock.runtime.settings.values import HttpUrl, ScopeNames, Seconds, SignInWays


class SignInDeclarations(SpendingDeclarations):
    """The settings that say how people sign in to the console and the reviewers' page."""

    # == Sign-in to the console

    sign_in_ways: SignInWays = "key,link,oidc"
    """How people may sign in to the console, by commas: key (a reviewer's own, in the browser and on the command line; the only
    one that decides), link (the operator's) and oidc (where oidc_issuer is set). What is not named is refused with SIGN_IN_WAY_OFF."""
    oidc_issuer: HttpUrl = ""
    """Issuer of the OpenID provider that people sign in with, exactly as its discovery document has it: https, or http on loopback.
    Needs oidc_client_id and oidc_roles_file. Absent: no sign-in by OpenID Connect."""
    oidc_client_id: str = Field(default="", max_length=256)
    """Id of this console at the provider, whose only redirect URI is oversight_base_url with /oidc/callback behind it."""
    oidc_client_secret: SecretStr | None = None
    """Secret of this console at the provider. Absent, and oidc_client_secret_file too: a public client, which PKCE alone protects."""
    oidc_client_secret_file: Path | None = None
    """File of that secret instead, read at each sign-in. Only owner and group may read it."""
    oidc_scopes: ScopeNames = "openid,profile,email"
    """Scopes that are asked for, by commas; openid always is. Some providers give groups for a scope groups only."""
    oidc_groups_claim: str = Field(default="groups", min_length=1, max_length=256)
    """Claim of the ID token, or else of userinfo, that holds a person's groups: its name, or a path of names with dots, such as
    realm_access.roles. A claim that is missing lets nobody in."""
    oidc_name_claim: str = Field(default="email", min_length=1, max_length=64)
    """Claim that names a person in the record. email counts only with email_verified; preferred_username and sub are others."""
    oidc_roles_file: Path | None = None
    """YAML file of what role each group has, and which sessions it covers (docs/console.md). Read again when it changes; a person
    without a group of it gets in nowhere."""
    oidc_ca_file: Path | None = None
    """PEM file of the authorities that the provider's certificate is checked by. Absent: this machine's."""
    oidc_timeout_s: Seconds = 10
    """Deadline of one call to the provider, seconds."""
