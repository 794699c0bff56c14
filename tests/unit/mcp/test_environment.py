"""What a tool server gets of the environment: nothing with which it could act as the agent (KRN-10)."""

from __future__ import annotations

import pytest

from interlock.mcp.serving import environment_of

pytestmark = pytest.mark.req("KRN-10")


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "INTERLOCK_MASTER_KEY"]
)
def test_keys_and_addresses_of_the_agent_stay_with_it(monkeypatch, name):
    """Unless they are passed by name."""
    monkeypatch.setenv(name, "x")
    monkeypatch.setenv("PATH_OF_TOOL", "y")

    assert name not in environment_of([])
    assert environment_of([])["PATH_OF_TOOL"] == "y"
    assert environment_of([name])[name] == "x"
