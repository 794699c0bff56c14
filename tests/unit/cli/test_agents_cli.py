"""``interlock agents`` on a file, and ``interlock oversight``: output, exit codes, and what is never shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from interlock.cli.agents import app
from interlock.cli.oversight.commands import app as oversight
from interlock.domain.errors import Refused
from interlock.policy import agents_file
from interlock.policy.reviewers import read_reviewers
from interlock.runtime.clock import system_clock
from tests.support.policy.agents import SESSION, SPECIFICATION, digest, write

HASH = f"sha256:{digest('tax')}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "agents.yaml", SPECIFICATION)


def run(*arguments: str, **options) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)


@pytest.mark.req("AGT-1")
def test_check_lists_a_good_registry(file):
    """Every agent type with its fields."""
    result = run("check", str(file))

    assert result.exit_code == 0
    assert result.stdout.splitlines()[:3] == [
        "orchestrator",
        f"  api_key            sha256:{digest('crp_gw_prod_orch_1')}",
        "  max_loop_depth     3",
    ]
    assert json.loads(run("check", str(file), "-o", "json").stdout)["agents"].keys() == SPECIFICATION["agents"].keys()


@pytest.mark.req("AGT-1")
def test_check_names_what_is_wrong(file):
    """The place, what is expected, and how to mend a key that was written plainly. Exit 2."""
    file.write_text("agents: {orchestrator: {api_key: crp_gw_secret}}")
    result = run("check", str(file))

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: AGENTS_INVALID: agents.orchestrator.api_key: expected sha256:<64 lower-case hex digits>, never the key "
        "itself\nhint: hash it with `interlock agents hash-key`\n"
    )


def test_check_of_no_file_exits_2(tmp_path):
    """One line, no traceback."""
    assert "FILE_UNREADABLE" in run("check", str(tmp_path / "no.yaml")).stderr


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize("text", ["tax\n", "tax", "tax\r\n"])
def test_a_key_is_hashed_from_standard_input(text):
    """Without the line's end, as the service hashes what a caller sends."""
    assert run("hash-key", input=text).stdout == f"{HASH}\n"


@pytest.mark.parametrize("text", ["", "\n", "a b\n", "ä\n"])
def test_what_cannot_be_a_key_is_not_hashed(text):
    """A header could not carry it."""
    result = run("hash-key", input=text)

    assert result.exit_code == 2
    assert "API_KEY_INVALID" in result.stderr


@pytest.mark.req("AGT-1")
def test_an_agent_is_added_replaced_and_removed(file):
    """In the file, without a service."""
    where = ("--file", str(file))
    terms = ("--max-loop-depth", "1", "--max-delegations", "0", "--strategy", "push", "--policy", "halt-on HIGH")
    added = run("add", "specialist_tax", "--api-key", HASH, *terms, *where)
    replaced = run("add", "specialist_tax", "--api-key", HASH, *where, "-o", "json")
    inside = agents_file.load(file).by_name
    removed = [run("remove", "specialist_tax", *where) for _ in range(2)]

    assert (added.exit_code, added.stdout) == (0, "specialist_tax added\n")
    assert json.loads(replaced.stdout) == {"agent_type": "specialist_tax", "replaced": True}
    assert inside["specialist_tax"].max_loop_depth is None
    assert [(r.exit_code, r.stdout) for r in removed] == [
        (0, "specialist_tax removed\n"),
        (1, "specialist_tax was not registered\n"),
    ]
    assert agents_file.load(file).by_name.keys() == SPECIFICATION["agents"].keys()


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "x", "--api-key", "crp_gw_secret"),
        ("add", "a b", "--api-key", HASH),
        ("add", "x"),
        ("add", "x", "--api-key", HASH, "--max-loop-depth", "101"),
        ("add", "x", "--api-key", HASH, "--max-delegations", "99999999999"),
        ("add", "x", "--api-key", HASH, "--strategy", "pushy"),
        ("add", "x", "--api-key", HASH, "--policy", "halt-on"),
        ("add", "x", "--api-key", f"sha256:{digest('crp_gw_prod_orch_1')}"),
    ],
)
def test_a_bad_agent_is_refused_and_nothing_is_changed(file, arguments):
    """Exit 2; a key that was given plainly is not repeated."""
    before = file.read_bytes()
    result = run(*arguments, "--file", str(file))

    assert result.exit_code == 2
    assert "secret" not in result.output
    assert file.read_bytes() == before


def test_without_a_service_the_hint_says_so():
    """Nothing listens on that port."""
    result = run("list", env={"INTERLOCK_POLICY_ADDRESS": "127.0.0.1:1", "INTERLOCK_RPC_TIMEOUT_S": "2"})

    assert result.exit_code == 2
    assert "POLICY_UNAVAILABLE" in result.stderr
    assert "INTERLOCK_POLICY_ADDRESS" in result.stderr


# --- oversight


def review(*arguments: str) -> Result:
    return CliRunner().invoke(oversight, list(arguments))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "reviewer.key"
    assert review("keygen", "reviewer@company.com", "--out", str(path)).exit_code == 0
    return path


@pytest.mark.req("OVR-3")
def test_what_keygen_prints_registers_the_reviewer_whose_approvals_hold(tmp_path):
    """From the key pair to a verified approval, as a reviewer does it."""
    path = tmp_path / "reviewer.key"
    printed = review("keygen", "reviewer@company.com", "--out", str(path)).stdout
    registered = read_reviewers(yaml.safe_load(printed))

    result = review(
        "approve-delegation", "--session", SESSION, "--agent", "legal", "--key", str(path), "--minutes", "1"
    )
    found = registered.verified(
        result.stdout.strip(), "delegate", {"session": SESSION, "agent": "legal"}, now_s=system_clock() // 1_000_000
    )

    assert found.reviewer == "reviewer@company.com"
    assert found.expires_at - found.issued_at == 60


@pytest.mark.req("OVR-3")
def test_two_approvals_are_never_the_same(key):
    """Each can be used once, so each has an id of its own."""
    tokens = {
        json.loads(review("approve-delegation", "--session", SESSION, "--key", str(key), "-o", "json").stdout)[
            "approval_id"
        ]
        for _ in range(2)
    }

    assert len(tokens) == 2


@pytest.mark.req("OVR-3")
def test_a_private_key_is_for_its_owner_and_is_never_overwritten(key):
    """Nor is it printed."""
    before = key.read_bytes()
    again = review("keygen", "someone", "--out", str(key))

    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert (again.exit_code, key.read_bytes()) == (2, before)
    assert yaml.safe_load(before)["private_key"] not in review("keygen", "x", "--out", f"{key}.2").output


@pytest.mark.req("OVR-3")
def test_a_key_that_others_can_read_is_refused(key):
    """What it signs would prove nothing."""
    key.chmod(0o640)
    result = review("approve-delegation", "--session", SESSION, "--key", str(key))

    assert result.exit_code == 2
    assert "KEY_FILE_OPEN" in result.stderr
    assert "chmod 600" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--session", "crp_sess_x"),
        ("--session", SESSION, "--agent", "a b"),
        ("--session", SESSION, "--minutes", "0"),
        ("--session", SESSION, "--minutes", "1441"),
    ],
)
def test_a_bad_approval_is_not_made(key, arguments):
    """Exit 2, nothing printed that could be presented."""
    result = review("approve-delegation", *arguments, "--key", str(key))

    assert result.exit_code == 2
    assert "approved:" not in result.output


@pytest.mark.parametrize("text", ["", "reviewer: a\nprivate_key: ed25519:x\n", "reviewer: a\n", "[]", "x: [\n"])
def test_a_file_that_is_no_key_is_refused(tmp_path, text):
    """With a constant reason."""
    path = tmp_path / "x.key"
    path.write_text(text)
    path.chmod(0o600)

    assert review("approve-delegation", "--session", SESSION, "--key", str(path)).exit_code == 2


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 129])
def test_a_reviewer_has_a_plain_name(tmp_path, name):
    """It stands in tokens, files and the audit trail."""
    assert review("keygen", name, "--out", str(tmp_path / "x.key")).exit_code == 2
    assert not (tmp_path / "x.key").exists()


def test_the_error_of_the_registry_is_the_file_readers(file):
    """The command refuses exactly what the service would refuse at its start."""
    file.write_text("agents: 7")
    with pytest.raises(Refused) as refused:
        agents_file.load(file)

    assert refused.value.message in run("check", str(file)).stderr
