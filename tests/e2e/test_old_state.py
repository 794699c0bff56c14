"""Today's code on what an older version left: settings file, state folder, tokens, held responses, audit log.

The state is ``tests/data/state_4423755``. Every test of a served mesh runs twice: on the session store as it was left, and
without it, so that the sessions are rebuilt from the audit log.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from interlock.policy.reviewers import key_text
from interlock.runtime.settings.loading import load
from tests.faults.parts.processes import skewed
from tests.support.paths import ROOT
from tests.support.policy import agents
from tests.support.servers.processes import Process, environment, run, run_here
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import reason_of, token_of

pytestmark = [pytest.mark.timeout(240)]

DATA = ROOT / "tests" / "data" / "state_4423755"
RECORDED = json.loads((DATA / "recorded.json").read_text(encoding="utf-8"))
SESSIONS: Mapping[str, Mapping[str, Any]] = RECORDED["sessions"]
LATER_S = 60
"""How long after the old version's end today's starts, by its clock."""

CHARGED_MICROS = 360_000
QUESTION = "How tall is the Eiffel Tower, and when was it completed?"
FACTS = [
    {"id": "tower", "content": "The Eiffel Tower is 330 metres tall and stands in Paris.", "importance": 0.9},
    {"id": "year", "content": "The Eiffel Tower was completed in 1889.", "importance": 0.8},
]
FALSE = "The Eiffel Tower is 990 metres tall. It was moved to Berlin by Otto Krause in 1953."


class OldState:
    """A copy of the old state, today's commands over it, and today's mesh where one is served."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.http = folder, ""
        with tarfile.open(DATA / "state.tar.gz") as packed:
            how: Any = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}  # Python 3.11.2 knows no filters
            packed.extractall(folder, **how)  # keeps the modes: keys are their owner's alone
        for name in ("settings.yaml", "agents.yaml", "reviewers.yaml"):
            shutil.copy(DATA / name, folder)
        env = environment(folder / "state", {"config_file": "settings.yaml"})
        del env["INTERLOCK_STATE_DIR"]  # the old settings file names it
        self.env = env | skewed(RECORDED["written_at"] + LATER_S - int(time.time()))

    def command(self, *arguments: str) -> str:
        """Run an ``interlock`` command by the old version's clock, as a process. It must succeed; return what it prints."""
        done = run(*arguments, env=self.env, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def audit(self, *arguments: str) -> str:
        """Run an ``interlock audit`` command that must succeed, and return what it prints. It looks at no clock: no process is needed."""
        done = run_here("audit", *arguments, env=self.env, cwd=self.folder)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def printed(self, *arguments: str) -> dict[str, Any]:
        """Run an ``interlock audit`` command with JSON output, and return that."""
        return json.loads(self.audit(*arguments, "-o", "json"))

    def request(self, method: str, path: str, name: str, **more: Any) -> httpx.Response:
        """Ask the sidecar as the client of an old session does."""
        session = SESSIONS[name]
        sent = {"authorization": f"Bearer {session['api_key']}", "crp-session-token": session["token"]}
        headers = sent | more.pop("headers", {})
        return httpx.request(method, f"{self.http}{path}", headers=headers, timeout=60, trust_env=False, **more)

    def chat(self, name: str, **headers: str) -> httpx.Response:
        """Ask the model in an old session, with its last token."""
        asked = {"messages": [{"role": "user", "content": QUESTION}], "interlock": {"facts": FACTS}}
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        return self.request("POST", "/v1/chat/completions", name, json={"model": "test-model", **asked}, headers=sent)

    def shown(self, name: str) -> dict[str, Any]:
        """The session as its client is shown it."""
        return self.request("GET", f"/crp/v3/session/{SESSIONS[name]['session_id']}", name).json()


@pytest.fixture
def left(tmp_path: Path) -> OldState:
    """The old state with nothing running on it."""
    return OldState(tmp_path)


@pytest.fixture(scope="module", params=["store kept", "store lost"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldState]:
    """Today's ``interlock serve`` on the old state, with the old settings file."""
    old = OldState(tmp_path_factory.mktemp("old"))
    if request.param == "store lost":
        shutil.rmtree(old.folder / "state" / "valkey")
    with RunningProvider(Provider()) as upstream:
        upstream.provider.answers("The Eiffel Tower is 330 metres tall and was completed in 1889.")
        old.env["INTERLOCK_UPSTREAM_BASE_URL"] = upstream.base_url
        mesh = Process(old.folder, None, old.env, cwd=old.folder).start()
        try:
            mesh.wait()
            old.http = f"http://127.0.0.1:{mesh.ports['sidecar_http']}"
            old.env["INTERLOCK_OVERSIGHT_ADDRESS"] = mesh.address("oversight")
            yield old
        finally:
            assert mesh.stop() == 0, mesh.log()


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    """The reviewer's private key."""
    path = tmp_path / "reviewer.key"
    private = key_text(agents.private_key().private_bytes_raw())
    path.write_text(yaml.safe_dump({"reviewer": agents.REVIEWER, "private_key": private}))
    path.chmod(0o600)
    return str(path)


NEW_DEFAULTS = {
    "max_dag_nodes": 800,
    "max_in_flight": 1024,
    "dpe_timeout_s": 50.0,
    "dpe_threads": 0,
    **{f"{name}_address": "" for name in ("session", "policy", "dpe", "audit", "oversight")},
}
"""Defaults that were changed on purpose: sessions are conversations now, and places follow from what is measured (ADR 24)."""


def test_an_old_settings_file_says_what_it_said(monkeypatch, tmp_path):
    """Every setting has the value that the old version read, the defaults of those that are not in the file too."""
    for name in [*environment(tmp_path), "INTERLOCK_CONFIG_FILE"]:
        if name.startswith("INTERLOCK_"):
            monkeypatch.delenv(name, raising=False)
    read = dict(load(DATA / "settings.yaml"))

    assert json.loads(json.dumps({name: read.get(name) for name in RECORDED["settings"]}, default=str)) == (
        RECORDED["settings"] | NEW_DEFAULTS
    )


def test_an_old_log_verifies_as_it_did(left):
    """fsck, the tree, and each session's chain: word for word what the old version found, from the same bytes."""
    old = RECORDED["audit"]
    ids = {name: session["session_id"] for name, session in SESSIONS.items()}

    assert left.printed("fsck") == json.loads(old["fsck"]["stdout"])
    assert left.printed("verify", "--tree", ids["root"]) == json.loads(old["tree"]["stdout"])
    verified = {name: left.printed("verify", one) for name, one in ids.items()}
    assert verified == {name: json.loads(one["stdout"]) for name, one in old["verify"].items()}
    assert {one["integrity"] for name, one in verified.items() if name not in {"approved", "ended"}} == {"VALID"}


def test_old_events_are_exported_as_they_were(left):
    """Contents are decrypted with the old master key; every line of every session is the same."""
    exported = {name: left.audit("export", one["session_id"]) for name, one in SESSIONS.items()}

    assert exported == RECORDED["audit"]["export"]


def test_an_auditor_verifies_the_old_log_offline(left):
    """A bundle that today's code writes of it holds against the old anchor and the old public key, without server or key."""
    left.audit("bundle", "--out", "bundle")
    public = ("--public-key", "state/checkpoint.key.pub")
    found = left.printed("verify", "--offline", "bundle", "--anchor", "anchor", *public)

    assert found["verdict"] == "VALID"
    assert found["entries"] == json.loads(RECORDED["audit"]["fsck"]["stdout"])["entries"]


def without_children(windows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The windows without their links to later ones: those of the last window grow."""
    return [{**one, "child_ids": None} for one in windows]


def as_recorded(windows):
    """Windows with the fields that the old version knew."""
    return [{name: value for name, value in one.items() if name != "hmac_chain_tip"} for one in windows]


@pytest.mark.models
@pytest.mark.req("TOK-2", "BUD-4")
@pytest.mark.parametrize("name", ["root", "child", "single"])
def test_an_old_token_continues_its_session(served, name):
    """The budget that was left, the windows as they were, the next number, and a chain from the last window."""
    before, last = RECORDED["shown"][name]["body"], SESSIONS[name]["answers"][-1]["headers"]
    number = int(last["crp-context-window"].partition("/")[0])
    shown = served.shown(name)
    answer = served.chat(name)
    after = served.shown(name)
    newest = after["windows"][-1]

    assert shown["safety_budget_micros"] == before["safety_budget_micros"]
    assert as_recorded(shown["windows"]) == before["windows"]
    assert [one["hmac_chain_tip"] for one in shown["windows"]] == [one["hmac"] for one in before["windows"]]
    assert answer.status_code == 200, answer.text
    assert answer.headers["crp-context-session-id"] == SESSIONS[name]["session_id"]
    assert answer.headers["crp-context-window"] == f"{number + 1}/12"
    assert answer.headers["crp-provenance-chain-integrity"] == "VALID"
    assert without_children(as_recorded(after["windows"][:-1])) == without_children(before["windows"])
    assert newest["parent_ids"] == [before["windows"][-1]["window_id"]]
    assert after["safety_budget_micros"] == before["safety_budget_micros"] - newest.get("charge_micros", 0)


@pytest.mark.models
@pytest.mark.req("PRV-2")
def test_old_reports_are_readable(served):
    """The URI of every sealed report answers with the very text that it answered with, once its session is in the store."""
    for name in {one["session"] for one in RECORDED["reports"].values()}:
        served.shown(name)
    read = {path: served.request("GET", path, one["session"]) for path, one in RECORDED["reports"].items()}

    assert {path: one.status_code for path, one in read.items()} == dict.fromkeys(read, 200)
    assert {path: one.text for path, one in read.items()} == {
        path: one["body"] for path, one in RECORDED["reports"].items()
    }


@pytest.mark.models
@pytest.mark.req("OVR-4", "OVR-5")
def test_an_old_held_response_is_listed_approved_and_released(served, key_file):
    """What the old version held, a reviewer finds and approves today, and its client gets it byte for byte."""
    window = SESSIONS["held"]["answers"][-1]["body"]["metadata"]["window_id"]
    listed = served.command("oversight", "list", "--key", key_file)
    token = served.command("oversight", "approve", window, "--key", key_file, "--reason", "SOURCES_CHECKED").strip()
    answer = served.chat("held", crp_oversight_token=token)

    assert window in listed
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == FALSE
    assert answer.headers["crp-provenance-hmac"] == SESSIONS["held"]["answers"][-1]["headers"]["crp-provenance-hmac"]


@pytest.mark.models
@pytest.mark.req("OVR-4")
def test_an_old_approval_releases_the_response(served):
    """A decision that was made in the old version, and its token, are worth today what they were."""
    answer = served.chat("approved", crp_oversight_token=RECORDED["approved"])

    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == FALSE


@pytest.mark.models
@pytest.mark.req("TOK-2")
def test_a_session_that_ended_stays_ended(served):
    """Its token was valid when its client ended it; it continues nothing."""
    answer = served.chat("ended")

    assert (answer.status_code, reason_of(answer)) == (409, "SESSION_TERMINATED")


@pytest.mark.models
@pytest.mark.req("BUD-4", "BUD-5", "BUD-8")
def test_a_window_that_the_old_version_sealed_is_settled_today(served):
    """The old process died between seal and settlement: charged once, by the settlement that stands in the old log."""
    first = served.chat("doubtful")
    deadline = time.monotonic() + 60
    while first.status_code != 409 and time.monotonic() < deadline:  # the lease of the dead process runs out first
        time.sleep(1)
        first = served.chat("doubtful")
    answer = served.chat("doubtful", crp_session_token=token_of(first))
    windows = served.shown("doubtful")["windows"]

    assert first.status_code == 409, first.text
    assert first.headers["crp-agent-safety-budget"] == "0.64"
    assert answer.status_code == 200, answer.text
    assert answer.headers["crp-context-window"] == "3/12"
    assert windows[1]["charge_micros"] == CHARGED_MICROS
    assert windows[1]["safety_budget_micros"] == 1_000_000 - CHARGED_MICROS


@pytest.mark.models
@pytest.mark.req("AUD-1", "PRV-4")
def test_old_and_new_events_are_one_chain(served):
    """After today's windows every session verifies, the tree too, and the old checkpoints hold in the longer log."""
    served.chat("single")
    found = {name: served.printed("verify", one["session_id"]) for name, one in SESSIONS.items()}
    tree = served.printed("verify", "--tree", SESSIONS["root"]["session_id"])
    whole = served.printed("fsck")
    before = json.loads(RECORDED["audit"]["fsck"]["stdout"])

    assert not [name for name, one in found.items() if one["faults"]]
    assert found["single"]["integrity"] == "VALID"
    assert tree["integrity"] == "VALID"
    assert (whole["verdict"], whole["faults"]) == ("VALID", 0)
    assert whole["entries"] > before["entries"]
