"""The compliance kit against agents in processes of their own: good ones pass, and each broken one fails at its own test (DEC-9, DEC-11)."""

from __future__ import annotations

import json
import sys

import pytest

from interlock.client.decision.reference.agents import AGENTS
from tests.support.certified.broken import RULES
from tests.support.servers.processes import environment, run

pytestmark = [pytest.mark.req("DEC-9"), pytest.mark.long]

CLI = [sys.executable, "-m", "interlock.cli.main"]


def certified(env, *arguments: str, command=(), code: int) -> dict:
    """Run the kit; return its report."""
    said = run("decision", "certify", *arguments, "-o", "json", "--", *command, env=env, timeout_s=110)
    assert said.returncode == code, said.stdout + said.stderr
    return json.loads(said.stdout)


def failed(report) -> list[str]:
    return [one["test"] for one in report["tests"] if not one["passed"]]


@pytest.fixture
def env(tmp_path):
    return environment(tmp_path / "state")


@pytest.fixture
def descriptor(tmp_path):
    """What the broken agents declare: the same as the protocol agent."""
    path = tmp_path / "agent.json"
    path.write_text(json.dumps(AGENTS["protocol"].descriptor.told()))
    return path


@pytest.mark.req("DEC-11")
@pytest.mark.parametrize("name", AGENTS)
def test_each_reference_agent_passes(env, name):
    """All seven tests, and it was asked every scenario."""
    report = certified(env, command=[*CLI, "decision", "agent", name], code=0)

    assert report["passed"]
    assert len(report["tests"]) == 7
    assert report["scenarios"] >= 17


@pytest.mark.parametrize("rule", RULES)
def test_a_broken_agent_fails_at_its_own_test_alone(env, descriptor, rule):
    """One rule broken, one test failed, and the report says where."""
    command = [sys.executable, "-m", "tests.support.certified.broken", rule]
    report = certified(env, "--descriptor", str(descriptor), "--deadline-ms", "1500", command=command, code=1)

    assert failed(report) == [rule]
    assert next(one["findings"] for one in report["tests"] if one["test"] == rule)


def test_the_same_agent_unbroken_passes(env, descriptor):
    """What the broken ones fail at is the broken rule, and not the way they are written."""
    command = [sys.executable, "-m", "tests.support.certified.broken", "none"]

    assert certified(env, "--descriptor", str(descriptor), command=command, code=0)["passed"]


def test_a_certificate_is_verified_and_a_changed_or_foreign_one_is_not(env, tmp_path):
    """Signed with the key of the mesh's log; a changed letter, another key or another mesh is told."""
    path, command = tmp_path / "trainer.cert", [*CLI, "decision", "agent", "trainer"]
    certified(env, "--certificate", str(path), command=command, code=0)
    key = json.loads(path.read_text())["key"]
    here = run("decision", "certify", "--verify", str(path), env=env)
    elsewhere = environment(tmp_path / "other")
    with_key = run("decision", "certify", "--verify", str(path), "--key", key, env=elsewhere)
    foreign = run("decision", "certify", "--verify", str(path), env=elsewhere)
    path.write_text(path.read_text().replace("trainer", "trainee"))
    bent = run("decision", "certify", "--verify", str(path), env=env)

    assert (here.returncode, with_key.returncode) == (0, 0)
    assert "valid: trainer 1 (TRAINER) passed" in here.stdout
    assert (foreign.returncode, bent.returncode) == (2, 2)
    assert "CERTIFICATE_INVALID" in foreign.stderr
    assert "not the one that was signed" in bent.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "CERTIFY_COMMAND_MISSING"),
        (["--", "no-such-program"], "CERTIFY_DESCRIPTOR_MISSING"),
        (["--descriptor", "none.json", "--", "true"], "CERTIFY_FILE_INVALID"),
        (["--profile", "none", "--", "true"], "DECISION_PROFILE_UNKNOWN"),
        (["--verify", "none.cert"], "CERTIFICATE_UNREADABLE"),
        (["--verify", "none.cert", "--key", "x"], "CERTIFY_KEY_INVALID"),
    ],
)
def test_what_cannot_be_certified_is_refused_by_name(env, arguments, reason):
    """Nothing is started, and the reason is constant."""
    said = run("decision", "certify", *arguments, env=env)

    assert said.returncode == 2
    assert reason in said.stderr


def test_a_command_that_is_no_agent_is_refused(env, descriptor):
    """It ends without opening a stream, and the kit does not wait longer."""
    arguments = ("--descriptor", str(descriptor), "--", sys.executable, "-c", "print('hello')")
    said = run("decision", "certify", *arguments, env=env)

    assert said.returncode == 2
    assert "CERTIFY_NOT_CONNECTED" in said.stderr
    assert "hello" in said.stderr
