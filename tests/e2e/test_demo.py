"""``interlock demo`` as a person runs it, and as a program does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from urllib.parse import parse_qsl

import httpx
import psutil
import pytest

from interlock.demo.mesh import COMMAND
from interlock.demo.promises import FEWEST_WINDOWS

STAGES = ("1", "2", "3a", "3b", "3c", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13")

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]


def start(folder: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """Start the demonstration in *folder*, in a pipe and without colour."""
    env = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "TMPDIR": str(folder), **more}
    return subprocess.Popen(
        [*COMMAND, "demo", *arguments], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one run with ``-o json``: the text is on standard error."""
    process = start(tmp_path_factory.mktemp("demo"), "-o", "json")
    out, err = process.communicate(timeout=220)
    return process.returncode, out, err


@pytest.mark.req("SVC-1", "SVC-2", "BUD-1", "PRV-2")
def test_the_demonstration_keeps_every_promise(shown):
    """It ends with exit code 0 and names no broken promise."""
    code, out, err = shown

    assert code == 0, err
    assert json.loads(out)["broken"] == []


@pytest.mark.req("ATT-2")
def test_an_agent_that_starts_anew_is_stopped_by_its_spent_budget(shown):
    """The second agent sends no token: its key has a budget, and the conversations after it are not even asked for."""
    text = shown[2]

    assert "451 CALLER_BUDGET_DEPLETED" in text
    assert re.search(r"^plain-agent +0\.00 +1\.00 ", text, re.MULTILINE)


@pytest.mark.req("BRK-3", "BUD-4")
def test_it_begins_with_a_full_budget_and_ends_in_a_halt(shown):
    """The first answer costs nothing, the budget never rises, the last call is a 451 with a reason."""
    windows = json.loads(shown[1])["windows"]
    budgets = [window["safety_budget_micros"] for window in windows]

    assert windows[0]["risk"] == "LOW"
    assert budgets[0] == 1_000_000
    assert budgets == sorted(budgets, reverse=True)
    assert windows[-1]["status"] == 451
    assert windows[-1]["halt"]["crp_halt_reason"]


def test_every_window_shows_what_a_person_needs(shown):
    """Question, risk, budget, breaker, decision and chain stand in the text of each window."""
    windows = shown[2].split("--- window ")[1:]

    assert len(windows) >= FEWEST_WINDOWS
    for text in windows:
        for label in (
            "agent",
            "asked",
            "stages",
            "quality",
            "risk",
            "grounding",
            "budget",
            "breaker",
            "decision",
            "chain",
        ):
            assert label in text


def test_unsupported_claims_are_marked_without_colour(shown):
    """Brackets mark them, and no escape sequence is in the text."""
    assert "[[" in shown[2]
    assert "\x1b" not in shown[2]


def test_no_line_is_wider_than_eighty_columns_but_those_to_copy(shown):
    """The text fits a plain terminal; the command at the end and the JSON of the 451 body stay as they are."""
    lines = [line for line in shown[2].splitlines() if "http" not in line and not line.lstrip().startswith('"')]
    wide = [line for line in lines if len(line) > 80]

    assert not wide


def test_it_ends_with_the_line_that_attaches_an_agent(shown):
    """The last line is to be copied."""
    last = shown[2].strip().splitlines()[-1]

    assert "INTERLOCK_UPSTREAM_BASE_URL=" in last
    assert "OPENAI_BASE_URL=http://127.0.0.1:7070/v1" in last


def test_a_stop_leaves_nothing_behind(tmp_path):
    """Stopped while the mesh starts, it ends its processes and removes its folder."""
    process = start(tmp_path)
    me = psutil.Process(process.pid)
    deadline = time.monotonic() + 60
    while not me.children(recursive=True) and time.monotonic() < deadline:
        time.sleep(0.002)
    children = me.children(recursive=True)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=20)

    assert children
    assert process.returncode == 130, said
    assert not alive
    assert not list(tmp_path.glob("interlock-demo-*"))


@pytest.mark.long
@pytest.mark.req("OBS-5")
def test_left_open_it_is_looked_at_until_it_is_stopped(tmp_path):
    """The printed link signs in to a console with the conversation in it; Ctrl-C ends everything, with every promise kept."""
    process = start(tmp_path, "--open", "-o", "json", BROWSER="true")
    assert process.stderr
    said = ""
    while (line := process.stderr.readline()) and "#viewer=" not in line:
        said += line
    origin, _, given = line.strip().partition("/sign-in#")
    with httpx.Client(base_url=origin, follow_redirects=True, trust_env=False) as browser:
        browser.post("/sign-in", data=dict(parse_qsl(given)), headers={"origin": origin}).raise_for_status()
        sessions = browser.get("/sessions").text
        halted = browser.get("/sessions?outcome=halted").text
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=20)

    assert process.returncode == 0, said
    assert json.loads(out)["broken"] == []
    assert sessions.count('href="/sessions/crp_sess_') >= 2
    assert 'href="/sessions/crp_sess_' in halted
    assert children and not alive


def test_only_the_conversation_stays_open(tmp_path):
    """Another demonstration with --open is refused before anything starts."""
    process = start(tmp_path, "--tree", "--open")
    _, said = process.communicate(timeout=60)

    assert process.returncode == 2
    assert "--open" in said


@pytest.mark.req("DPE-16", "BUD-5")
def test_one_window_is_remedied(shown):
    """The answer that repeated was not released; the better one was, free of charge, by a reflexive dispatch."""
    remedied = [window for window in json.loads(shown[1])["windows"] if window["remedied"]]

    assert [window["strategy"] for window in remedied] == ["reflexive"]
    assert remedied[0]["safety_budget_micros"] == 1_000_000
    assert "REMEDIED" in shown[2]
    assert "window 2, round 1: repetition" in shown[2]


@pytest.mark.req("DPE-17", "DPE-20")
def test_every_stage_ran_and_the_judge_is_named(shown):
    """Thirteen stages in every window; each model with its version, the hash of its file and where it ran."""
    windows = json.loads(shown[1])["windows"]

    assert {tuple(window["stages"]) for window in windows} == {STAGES}
    for model in windows[0]["models"]:
        assert model["hash"].startswith("sha256:")
        assert f"{model['name']}, {model['runtime']}" in shown[2]
    assert {model["slot"] for model in windows[0]["models"]} == {"nli", "embed", "ner", "parser"}
