"""`interlock serve --profile` and `interlock check`: which profile, what it does, what it lacks."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import httpx
import pytest

from interlock.cli.check.command import examine
from tests.support.policy import agents
from tests.support.servers.processes import COMMAND, environment, run
from tests.support.servers.provider import Provider, RunningProvider

pytestmark = pytest.mark.req("ATT-9")


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No setting of the machine, and state of this test."""
    for name in [name for name in os.environ if name.upper().startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path / "state"))
    return monkeypatch


def started(tmp_path, *arguments: str, **settings: object) -> str:
    """Serve the policy service until it is ready, end it, and return what it said to people and to the log."""
    env = environment(tmp_path / "state", settings)
    child = subprocess.Popen(
        [*COMMAND, "serve", "policy", *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline()
    child.send_signal(signal.SIGTERM)
    return child.communicate(timeout=30)[1]


def test_serve_says_which_profile_and_what_it_takes_to_enforce(tmp_path):
    """One line at the start, and a warning in the log where nobody could review."""
    said = started(tmp_path, profile="observe").splitlines()

    [line] = [line for line in said if "profile observe" in line]
    assert line.strip().endswith("are watched, not stopped; to enforce: --profile enforce")
    logged = [json.loads(line) for line in said if line.startswith("{")]
    assert [one["profile"] for one in logged if one["event"] == "serve.profile"] == ["observe"]
    assert [one["level"] for one in logged if one["event"] == "serve.no_reviewers"] == ["warning"]


def test_the_flag_wins_over_the_environment(tmp_path):
    """`--profile enforce` enforces whatever INTERLOCK_PROFILE says; with reviewers there is no warning."""
    reviewers = agents.write(tmp_path / "reviewers.yaml", agents.reviewers())
    said = started(tmp_path, "--profile", "enforce", profile="observe", reviewers_file=reviewers)

    assert "profile enforce: every caller is held to the policy and the budget" in said
    assert "serve.no_reviewers" not in said


@pytest.mark.models
def test_serve_asks_the_provider_that_it_is_given(tmp_path):
    """`--upstream` wins over the environment; what is no address ends the start."""
    ports = dict.fromkeys(("sidecar_http_port", "sidecar_grpc_port", "oversight_http_port"), 0)
    env = environment(tmp_path / "state", {**ports, "upstream_base_url": "http://127.0.0.1:1/v1"})
    provider = Provider()
    with RunningProvider(provider) as upstream:
        command = [*COMMAND, "serve", "-o", "json", "--upstream", upstream.base_url]
        child = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = json.loads(child.stdout.readline())
        answer = httpx.get(f"http://127.0.0.1:{ready['ports']['sidecar_http']}/v1/models", trust_env=False)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    refused = run("serve", "--upstream", "nowhere", "-o", "json", env=env)

    assert answer.status_code == 200, answer.text
    assert len(provider.received) == 1
    assert json.loads(refused.stdout)["error"]["reason"] == "SETTINGS_INVALID"


def test_regulated_refuses_to_start_without_what_it_needs(tmp_path):
    """It ends before it listens, and names both."""
    refused = run("serve", "--profile", "regulated", "-o", "json", env=environment(tmp_path / "state"))
    error = json.loads(refused.stdout)["error"]

    assert (refused.returncode, error["reason"]) == (2, "SETTINGS_INVALID")
    assert "reviewers_file" in error["message"]
    assert "audit_anchor" in error["message"]


async def found(name: str, group: str = "profile"):
    [finding] = [one for one in await examine() if (one.group, one.name) == (group, name)]
    return finding


@pytest.mark.parametrize(
    ("name", "status", "told"), [("observe", "WARN", "watched"), ("enforce", "OK", "every caller")]
)
async def test_check_says_the_profile(bare, name, status, told):
    """observe is a warning, since a first start protects nobody who does not ask."""
    bare.setenv("INTERLOCK_PROFILE", name)
    finding = await found("profile")

    assert (finding.status, told in finding.detail) == (status, True)
    assert "--profile enforce" in finding.hint or status == "OK"


async def test_check_warns_that_nobody_reviews(bare, tmp_path):
    """Without a reviewer, with one who may not release, with one who may."""
    listed = agents.reviewers()
    seen = [await found("reviewers")]
    for actions in (["erase"], ["release"]):
        for fields in listed["reviewers"].values():
            fields["actions"] = actions
        bare.setenv("INTERLOCK_REVIEWERS_FILE", str(agents.write(tmp_path / "reviewers.yaml", listed)))
        seen.append(await found("reviewers"))

    assert [one.status for one in seen] == ["WARN", "WARN", "OK"]
    assert "HUMAN_REVIEW_UNAVAILABLE" in seen[0].detail
    assert "INTERLOCK_REVIEWERS_FILE" in seen[0].hint


async def test_check_names_what_differs_from_the_profile(bare):
    """A value of one's own that undoes the profile's is told."""
    bare.setenv("INTERLOCK_PROFILE", "enforce")
    bare.setenv("INTERLOCK_UNAWARE_CALLERS", "observe")
    finding = await found("unaware_callers")

    assert (finding.status, "profile enforce" in finding.detail) == ("WARN", True)


@pytest.mark.req("ATT-2")
async def test_check_tells_the_budget_of_callers(bare):
    """What each key has; that it has none is a warning where callers are stopped."""
    seen = [await found("callers")]
    bare.setenv("INTERLOCK_PROFILE", "enforce")
    seen.append(await found("callers"))
    bare.setenv("INTERLOCK_CALLER_BUDGET", "0")
    seen.append(await found("callers"))

    assert [one.status for one in seen] == ["SKIP", "OK", "WARN"]
    assert "a budget of 1 in 3600 s" in seen[1].detail


async def test_check_names_what_regulated_lacks(bare):
    """The refusal of a start is the finding."""
    bare.setenv("INTERLOCK_PROFILE", "regulated")
    finding = await found("settings", "configuration")

    assert (finding.status, "reviewers_file" in finding.detail, "audit_anchor" in finding.detail) == (
        "FAIL",
        True,
        True,
    )
