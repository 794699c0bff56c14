"""A-34: an agent that goes around its sidecar. What the provider sees is the gateway's key alone, so the agent has none to use."""

from __future__ import annotations

import re

import pytest

from tests.support.sidecar.sidecar import running_sidecar, token_of
from tests.support.texts.canary import API_KEY

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("HDR-5")

AGENT = "sk-the-agents-own-key"
OURS = re.compile(r"crp|interlock", re.IGNORECASE)
ASKED = {
    "authorization": f"Bearer {AGENT}",
    "crp-safety-policy": "halt-on CRITICAL",
    "crp-accept-risk": "HIGH",
    "x-api-key": AGENT,
    "cookie": f"session={AGENT}",
    "proxy-authorization": f"Bearer {AGENT}",
    "x-forwarded-authorization": f"Bearer {AGENT}",
}


@pytest.fixture
async def gateway(tmp_path, upstream):
    """A sidecar that holds the provider's key."""
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api_key=API_KEY) as running:
        yield running


def seen(provider) -> str:
    """Everything that the provider was sent, in one text."""
    return "\n".join(str((one.path, one.headers, one.body)) for one in provider.received)


@pytest.mark.parametrize("stream", [False, True])
async def test_a34_the_provider_sees_the_gateways_key_alone(gateway, provider, stream):
    """Whatever the agent puts into its headers, the one key that reaches the provider is the gateway's."""
    await gateway.chat(headers=ASKED, stream=stream)

    assert provider.received
    assert {one.header("authorization") for one in provider.received} == {f"Bearer {API_KEY}"}
    assert AGENT not in seen(provider)


async def test_a34_no_session_token_or_header_of_ours_reaches_the_provider(gateway, provider):
    """Over three windows of a session nothing that is named after us, and no token, is in any request to the provider."""
    tokens, token = [], None
    for _ in range(3):
        answer = await gateway.chat(token=token, headers=ASKED)
        token = token_of(answer)
        tokens.append(token)

    assert len(provider.received) == 3
    assert not OURS.findall("\n".join(name for one in provider.received for name, _ in one.headers))
    assert "crp" not in seen(provider).lower()
    assert not any(part in seen(provider) for token in tokens for part in token.split("."))


async def test_a34_the_agent_never_sees_the_gateways_key(gateway, provider):
    """Neither answers nor errors nor the pages of the front show the key, also when the provider quotes it."""
    provider.fails(401, {"error": {"message": f"Incorrect API key provided: {API_KEY}", "type": "x", "code": "x"}})
    refused = await gateway.chat(headers=ASKED)
    provider.answers("fine")
    answered = await gateway.chat(headers=ASKED)
    pages = [await gateway.client.get(path) for path in ("/readyz", "/metrics", "/healthz", "/v1/models")]
    shown = "".join(f"{one.headers} {one.text}" for one in (refused, answered, *pages))

    assert refused.status_code >= 400
    assert answered.status_code == 200
    assert API_KEY not in shown
