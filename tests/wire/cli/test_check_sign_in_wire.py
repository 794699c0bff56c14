"""`interlock check` and sign-in by an OpenID provider: what is missing, wrong or out of step is named with what mends it (OBS-4)."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.cli.check.probes_sign_in import sign_in
from interlock.runtime.rpc.health import ProbeFinding
from interlock.runtime.settings.model import Settings
from tests.support.servers.openid import OpenIdProvider
from tests.support.servers.ports import free_port
from tests.support.sidecar.openid import oidc_settings, write_roles

pytestmark = pytest.mark.req("SVC-9", "OBS-4")


@pytest.fixture
def openid():
    with OpenIdProvider() as running:
        yield running


async def findings(openid: OpenIdProvider, folder, **changes: Any) -> dict[str, ProbeFinding]:
    wanted = {**oidc_settings(openid, write_roles(folder / "roles.yaml")), **changes}
    return {one.name: one async for one in sign_in(Settings(**wanted))}


async def test_a_sign_in_that_works_is_told(openid, tmp_path):
    """The provider with its keys, the file of roles, and the clocks; a redirect URI of loopback is worth a word."""
    found = await findings(openid, tmp_path)

    assert {name: str(one.status) for name, one in found.items()} == {
        "oidc_roles_file": "OK", "redirect URI": "WARN", "provider": "OK", "clock": "OK",
    }  # fmt: skip
    assert "redirect URI" not in await findings(openid, tmp_path, oversight_base_url="https://console.example")


NOBODY = "http://nobody.example"
"""Stands for an address at which nothing listens when the test runs: names of tests must not change."""


@pytest.mark.parametrize("changes", [{"oidc_issuer": ""}, {"sign_in_ways": "key,link"}])
async def test_nothing_is_asked_where_nobody_signs_in_so(openid, tmp_path, changes):
    """Without an issuer, or with that way switched off, the provider is left alone."""
    found = await findings(openid, tmp_path, **changes)

    assert [str(one.status) for one in found.values()] == ["SKIP"]
    assert openid.asked == []


@pytest.mark.parametrize(
    ("changes", "name", "told"),
    [
        ({"oidc_issuer": NOBODY}, "provider", "does not answer"),
        ({"oidc_issuer": "http://idp.example"}, "provider", "has to be an https URL"),
        ({"oidc_client_id": ""}, "provider", "needs oidc_client_id"),
        ({"oidc_client_secret": None, "oidc_client_secret_file": "missing"}, "provider", "FileNotFoundError"),
        ({"oidc_ca_file": "missing"}, "provider", "FileNotFoundError"),
        ({"oidc_roles_file": None}, "oidc_roles_file", "nobody has a role"),
        ({"oidc_roles_file": "missing"}, "oidc_roles_file", "FileNotFoundError"),
    ],
    ids=str,
)
async def test_what_is_missing_is_named(openid, tmp_path, changes, name, told):
    """A provider that does not answer, an address without TLS, a client, a secret or a file that is not there."""
    given = {key: tmp_path / value if value and key.endswith("_file") else value for key, value in changes.items()}
    if given.get("oidc_issuer") == NOBODY:
        given["oidc_issuer"] = f"http://127.0.0.1:{free_port()}"
    found = (await findings(openid, tmp_path, **given))[name]

    assert found.status == "FAIL"
    assert told in found.detail
    assert found.hint


@pytest.mark.parametrize(
    ("does", "name", "told"),
    [
        ({"metadata": {"issuer": "https://another.example"}}, "provider", "of another issuer"),
        ({"status": 404}, "provider", "cannot be used"),
        ({"hangs": True}, "provider", "no answer within"),
        ({"keys": []}, "provider", "keys"),
        ({"ahead_s": 90}, "clock", "provider's is +"),
        ({"ahead_s": -90}, "clock", "provider's is -"),
    ],
    ids=str,
)
async def test_a_provider_that_is_another_or_out_of_step_is_named(openid, tmp_path, does, name, told):
    """Another issuer, no discovery document, no answer, no keys, a clock that is off."""
    openid.behave(**does)
    found = (await findings(openid, tmp_path, oidc_timeout_s=0.5))[name]

    assert found.status == "FAIL"
    assert told in found.detail
    assert found.hint
