"""``interlock run -- COMMAND``: an agent that knows nothing runs behind a mesh of its own (SVC-2, ATT-9)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from interlock.cli.run import SERVE
from tests.support.servers.provider import Provider, RunningProvider

pytestmark = [pytest.mark.models, pytest.mark.long, pytest.mark.timeout(240), pytest.mark.req("SVC-2", "ATT-9")]

RUN = (*SERVE[:3], "run")
AGENT = """
import sys
from openai import OpenAI
client = OpenAI(api_key="sk-agent", max_retries=0)
answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Context: The fee is 5 EUR.\\n\\nWhat is the fee?"}])
print(answer.choices[0].message.content)
sys.exit(7)
"""


@pytest.fixture
def provider():
    scripted = Provider()
    scripted.answers("The fee is 5 EUR.")
    with RunningProvider(scripted) as running:
        yield running


def run(folder, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "INTERLOCK_STATE_DIR": str(folder / "state")}
    env.pop("OPENAI_BASE_URL", None)
    return subprocess.run(
        [*RUN, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=200, check=False
    )


def test_an_agent_runs_behind_it_and_its_end_is_summed_up(tmp_path, provider):
    """Its output and its exit code are its own; the summary names the session and its judged answer."""
    ended = run(tmp_path, "--upstream", provider.base_url, "-o", "json", "--", sys.executable, "-c", AGENT)
    said, _, summary = ended.stdout.partition("\n")
    told = json.loads(summary)

    assert (ended.returncode, said) == (7, "The fee is 5 EUR."), ended.stderr
    assert told["exit_code"] == 7
    assert [(one["windows"], one["breaker"]) for one in told["sessions"]] == [(1, "CLOSED")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--", "/nothing/there"), 127, "FileNotFoundError"),
        (("--profile", "lenient", "--", "true"), 2, "MESH_NOT_STARTED: the mesh did not start: SETTINGS_INVALID"),
        (("--", "true"), 0, "does the agent read OPENAI_BASE_URL?"),
    ],
)
def test_what_does_not_run_says_why(tmp_path, arguments, code, said):
    """No such command, a mesh that cannot start, an agent that never called."""
    ended = run(tmp_path, *arguments)

    assert (ended.returncode, said in ended.stderr) == (code, True), ended.stderr
