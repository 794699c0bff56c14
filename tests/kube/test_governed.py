"""A stock agent's pod in the cluster: its sidecar is injected, what it may not say is halted, and the record verifies."""

from __future__ import annotations

import pytest

from tests.kube.agents import FALSE, TRUE, job, pod
from tests.kube.operators import command
from tests.kube.release import AGENTS, Release

pytestmark = [pytest.mark.req("KUB-4"), pytest.mark.long, pytest.mark.timeout(900)]


def test_a_stock_agents_call_is_halted_and_its_record_verifies(release: Release):
    """The agent knows OPENAI_BASE_URL alone; the Job ends although its sidecar never does."""
    release.stage.provider.answers(FALSE)
    said = job(release, "halted", pod())[0]
    session = said["headers"]["crp-context-session-id"]
    verified = command(release, "audit", "verify", session)

    assert 451 == said["status"], said
    assert "9,700" not in said["said"]
    assert session in verified
    assert "BROKEN" not in verified


def test_a_call_that_is_grounded_passes(release: Release):
    """The answer is the provider's, and the key that it saw is the agent's."""
    release.stage.provider.reset()
    release.stage.provider.answers(TRUE)
    said = job(release, "grounded", pod())[0]

    assert (200, TRUE) == (said["status"], said["said"])
    assert "Bearer sk-of-the-provider" == release.stage.provider.received[0].header("authorization")


def test_the_sidecar_holds_the_key_that_was_taken_from_the_agent(release: Release):
    """The provider is shown the key, and the agent has none."""
    release.stage.provider.reset()
    release.stage.provider.answers(TRUE)
    taken = {"interlock.dev/take-secret": "provider/api-key"}
    said = job(release, "taken", pod(annotations=taken))[0]
    made = next(one for one in release.objects("pods", AGENTS).values() if one["metadata"]["name"].startswith("taken"))
    agent = made["spec"]["containers"][0]["env"]

    assert 200 == said["status"], said
    assert "Bearer sk-of-the-provider" == release.stage.provider.received[0].header("authorization")
    assert ["held-by-the-sidecar"] == [one.get("value") for one in agent if one["name"] == "OPENAI_API_KEY"]
