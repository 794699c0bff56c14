"""The blocks of the pages that a reader runs beside a mesh: one `interlock serve` on embedded parts, and every block against it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interlock.client import Session
from tests.repo.run_blocks import BY_LINE, MESH
from tests.support.doc_blocks import Block, Desk, blocks
from tests.support.policy import agents
from tests.support.servers.processes import Processes, environment
from tests.support.servers.provider import Provider, RunningProvider

pytestmark = [pytest.mark.models, pytest.mark.long, pytest.mark.timeout(240)]

BLOCKS = {block.name: block for block in blocks(BY_LINE)}
REGISTRY = {
    "agents": {
        "orchestrator": agents.fields("sk-orchestrator", max_loop_depth=2, max_delegations=4),
        "legal": agents.fields("...", max_loop_depth=1, max_delegations=0),  # the dots are the key on the page
    }
}
AGENT = """
from openai import OpenAI
print(OpenAI(api_key="sk-agent").chat.completions.create(model="m", messages=[{"role": "user", "content": "Say hello."}]).choices[0].message.content)
"""
TEAM = "docs/kernel.md: from interlock.client.kernel import SafetyKernel, Invariant, State, ActionSpec, Effect"
"""The block that the other blocks of its page go on from."""
WORLD = """
note = ActionSpec("note", "Note", effects=(Effect("notes", "increment", 1),), cost=1.0)
kernel = SafetyKernel(budget=100.0, min_action_cost=1.0, name="trip")
state = State({"notes": 0, "booked": 0})
kernel.prepare(state, None)
def call_the_hotel(): return "booked"
def cancel_at_the_hotel(*_): return None
"""
"""What the block about sagas takes for granted: an action, and two functions of the reader's."""


class Bench:
    """The mesh, a desk beside it, and a session of it for those blocks that name one."""

    def __init__(self, folder: Path, processes: Processes, provider: RunningProvider) -> None:
        self.folder, self.provider = folder, provider
        self.desk = Desk.laid(folder, environment(folder / "keys"))
        keys = folder / "reviewers.yaml"
        keys.write_text(self._keygen())
        (folder / "anchor").mkdir()
        registry = agents.write(folder / "agents.yaml", REGISTRY)
        self.mesh = processes.mesh(
            upstream_base_url=provider.base_url, reviewers_file=keys, agents_file=registry, agents_required="false",
            audit_anchor=folder / "anchor", audit_origin="example.com/interlock/audit",
        )  # fmt: skip
        self.http = f"127.0.0.1:{self.mesh.ports['sidecar_http']}"
        self.grpc = f"127.0.0.1:{self.mesh.ports['sidecar_grpc']}"
        env = {
            **self.mesh.env,
            "OPENAI_BASE_URL": f"http://{self.http}/v1",
            "OPENAI_API_KEY": "sk-orchestrator",
            "OPENAI_MODEL": "m",
        }
        self.desk = Desk(
            folder, {**env, **{name: self.desk.environment[name] for name in ("PATH", "PYTHONPATH", "HOME")}}
        )
        with Session(f"http://{self.http}/v1", api_key="sk-orchestrator", model="m") as session:
            session.chat("What does it cost?")
            session.chat("And for two offices?")  # the first window has nothing before it that could be verified
            self.session_id = session.session_id
        (folder / "agent.py").write_text(AGENT)
        (folder / "answer.json").write_text(json.dumps({"facts": [], "response": "The fee is 5 EUR."}))

    def _keygen(self) -> str:
        """Make a reviewer's key as the page says, and return the lines for the reviewers' file that the command prints."""
        block = BLOCKS["docs/oversight.md: interlock oversight keygen reviewer@company.com --out reviewer.key"]
        made = self.desk.run(block)
        return made.stdout[made.stdout.index("reviewers:") :]

    def run(
        self, name: str, given: Mapping[str, str] | None = None, *, before: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a block; *before* is what it goes on from."""
        block = BLOCKS[name]
        done = self.desk.run(Block(block.page, block.language, before + block.text), given, timeout_s=120)
        assert "Traceback" not in done.stderr, done.stderr
        return done


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """One mesh for all blocks."""
    folder = tmp_path_factory.mktemp("desk")
    scripted = Provider()
    scripted.answers("The Premium Package costs $1,500 per office.")
    with RunningProvider(scripted) as provider, Processes(folder) as processes:
        yield Bench(folder, processes, provider)


def named(first: str) -> str:
    """Return the one block of ``MESH`` whose name ends so, so that a table below can be short."""
    [found] = [name for name in MESH if name.endswith(first)]
    return found


TOLD = [
    ("README.md: from openai import OpenAI, APIStatusError", {"127.0.0.1:7070": "http"}, "1,500"),
    ("README.md: curl -i http://127.0.0.1:7070/v1/chat/completions", {"127.0.0.1:7070": "http"}, "crp-set-session"),
    ("README.md: from grpc_requests import Client", {"127.0.0.1:7071": "grpc"}, "CRP-Safety-Hallucination-Risk"),
    ("README.md: interlock dpe analyze answer.json", {}, "risk"),
    ("README.md: interlock top", {}, "orchestrator"),
    ("README.md: interlock session list", {}, "orchestrator"),
    ("README.md: interlock session show crp_sess_ID", {"crp_sess_ID": "session_id"}, "budget"),
    ("README.md: interlock session dag crp_sess_ID --tree", {"crp_sess_ID": "session_id"}, "crp_"),
    ("README.md: interlock audit verify crp_sess_ID", {"crp_sess_ID": "session_id"}, "VALID"),
    ("README.md: interlock audit export crp_sess_ID", {"crp_sess_ID": "session_id"}, "SESSION_CREATED"),
    ("README.md: interlock audit stream status", {}, ""),
    ('README.md: interlock policy simulate "halt-on HIGH" --last 24h', {}, "come out as they are recorded"),
    ('docs/policies.md: interlock policy simulate "halt-on HIGH" --last 24h', {}, "come out as they are recorded"),
    ("docs/console.md: interlock console", {}, "http://127.0.0.1:"),
]


@pytest.mark.parametrize(("name", "given", "said"), TOLD, ids=[name for name, *_ in TOLD])
def test_a_block_runs_beside_the_mesh(bench, name, given, said):
    """It ends well and says what it is for; ports and ids are this mesh's."""
    done = bench.run(name, {placeholder: getattr(bench, field) for placeholder, field in given.items()})

    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout


def test_an_agent_runs_behind_a_mesh_of_its_own(bench):
    """`interlock run` as the README has it, with a provider that is here."""
    alone = Desk(bench.folder, {**environment(bench.folder / "alone"), **{name: bench.desk.environment[name] for name in ("PATH", "PYTHONPATH", "HOME")},
                                "INTERLOCK_UPSTREAM_BASE_URL": bench.provider.base_url})  # fmt: skip
    done = alone.run(BLOCKS["README.md: .venv/bin/interlock run --profile enforce -- python agent.py"], timeout_s=120)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1,500" in done.stdout


def test_the_mesh_serves_as_the_readme_starts_it(bench):
    """The command is ready before anybody calls, and ends on SIGTERM."""
    env = {**bench.desk.environment, "INTERLOCK_STATE_DIR": str(bench.folder / "served")}
    env |= {name: "0" for name in env if name.endswith("_PORT")}
    text = BLOCKS["README.md: .venv/bin/interlock serve --upstream https://api.openai.com/v1"].text
    command = text.replace(".venv/bin/interlock", "exec .venv/bin/interlock")
    child = subprocess.Popen(
        ["bash", "-c", command], cwd=bench.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    ready: dict[str, Any] = json.loads(child.stdout.readline())
    child.send_signal(signal.SIGTERM)

    assert {"sidecar_http", "sidecar_grpc"} <= ready["ports"].keys()
    child.communicate(timeout=60)


@pytest.mark.req("KRN-8")
def test_the_blocks_about_kernels_go_on_from_one_another(bench):
    """The kernel of the first block is what the commands describe, and what the lease and the saga spend from."""
    first = bench.run(TEAM)
    commands = [bench.run(f"docs/kernel.md: interlock kernel {one}") for one in
                ("describe team", "evaluate team task", "execute team task --key order-17", "permits team", "emergencies",
                 'simulate team --limit budget=50 --invariant "few=active_tasks <= 3"')]  # fmt: skip
    named = bench.run("README.md: interlock kernel describe NAME", {"NAME": "team"})
    goes_on = BLOCKS[TEAM].text
    lease = bench.run("docs/kernel.md: with kernel.lease(wanted=5.0, lifetime_s=30.0) as lease:", before=goes_on)
    saga = bench.run('docs/kernel.md: UNBOOK = ActionSpec("unbook", "Unbook", effects=(Effect("booked", "decrement", 1),))', before=goes_on + WORLD)  # fmt: skip

    shop = bench.run(
        "docs/kernel.md: from interlock.client.kernel import ActionSpec, Effect, Invariant, SafetyKernel, State"
    )

    for done in (first, *commands, named, lease, saga, shop):
        assert done.returncode == 0, done.stdout + done.stderr
    assert "active_tasks" in commands[0].stdout


def test_the_auditors_way_is_walked_from_bundle_to_proof(bench):
    """Bundle, verification, an edit that is found, and a proof that Python alone verifies, in the order of the page."""
    (bench.folder / "log.pub").write_bytes((bench.folder / "state" / "checkpoint.key.pub").read_bytes())
    bundle, whole = bench.run(named("bundle --out bundle")), bench.run(named("--anchor anchor --public-key log.pub"))
    other = bench.run(named("bundle --out DIR"))
    verified = bench.run(named("--offline DIR --public-key log.pub"))
    edited, broken = bench.run(named("bundle/entries.ndjson")), bench.run(named("--anchor anchor --public-key log.pub"))
    example = "crp_sess_0123456789abcdef0123456789abcdef"
    proof = bench.run(named("proof.json"), {example: bench.session_id})
    proved = bench.run(named("import hashlib, json, pathlib"))

    assert [done.returncode for done in (bundle, whole, other, verified, edited, proof)] == [0] * 6, whole.stdout + whole.stderr + proof.stderr  # fmt: skip
    assert (whole.stdout.split()[0], broken.returncode, broken.stdout.split()[0]) == ("VALID", 1, "BROKEN")
    assert proved.stdout == "proved\n"


def test_a_reviewer_lists_what_waits(bench):
    """The key that the page makes, registered by the lines that it prints, signs in."""
    for page in ("README.md", "docs/oversight.md"):
        done = bench.run(f"{page}: interlock oversight list --key reviewer.key")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.req("HDR-1")
def test_the_example_of_a_delegation_runs(bench):
    """An orchestrator and its specialist, by the client of the page."""
    done = bench.run("docs/trees.md: from interlock.client import Session")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("crp_win_") >= 2 or "window" in done.stdout
