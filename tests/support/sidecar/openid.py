"""A console with sign-in by a provider that does as the test says, and a browser that goes there and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.support.servers.openid import CLIENT, SECRET, OpenIdProvider
from tests.support.sidecar.oversight import Reviewed, reviewed_world

ROLES: dict[str, Any] = {
    "interlock-viewers": {"role": "viewer"},
    "interlock-reviewers": {"role": "reviewer"},
    "interlock-admins": {"role": "admin"},
    "interlock-support": {"role": "reviewer", "sees": {"keys": ["support-desk"]}},
}


def write_roles(path: Path, groups: Any = None) -> Path:
    """Write the file of what groups may do."""
    path.write_text(yaml.safe_dump({"groups": ROLES if groups is None else groups}))
    return path


def oidc_settings(provider: OpenIdProvider, roles: Path, **more: Any) -> dict[str, Any]:
    """The settings that sign people in by *provider*."""
    return {
        "oidc_issuer": provider.issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET, "oidc_roles_file": roles,
        "oidc_timeout_s": 5, **more,
    }  # fmt: skip


@dataclass
class Entered:
    """A console, its provider, and the file of roles."""

    reviewed: Reviewed
    provider: OpenIdProvider
    roles: Path

    @property
    def http(self) -> str:
        return self.reviewed.oversight.http

    def browser(self) -> httpx.AsyncClient:
        """A browser of its own, without cookies."""
        return httpx.AsyncClient(base_url=self.http, trust_env=False, timeout=30, headers={"accept": "text/html"})

    async def away(self, browser: httpx.AsyncClient, to: str = "/sessions") -> str:
        """Begin to sign in, and return where the browser is sent."""
        answer = await browser.get("/oidc/start", params={"to": to})
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def back(self, browser: httpx.AsyncClient, to: str = "/sessions") -> httpx.Response:
        """Go to the provider and come back."""
        return await browser.get(self.provider.authorize(await self.away(browser, to)))


@asynccontextmanager
async def entered_world(folder: Path, reviewers: Any = None, **settings: Any) -> AsyncIterator[Entered]:
    """Serve all of it below *folder*."""
    roles = write_roles(folder / "roles.yaml")
    with OpenIdProvider() as provider:
        async with reviewed_world(folder, reviewers, **oidc_settings(provider, roles, **settings)) as reviewed:
            yield Entered(reviewed, provider, roles)
