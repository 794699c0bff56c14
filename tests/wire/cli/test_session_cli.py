"""``interlock session show`` against a running session service."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from typing import Any

import pytest

from interlock.api.session.v1 import session_pb2
from interlock.runtime.settings.model import Settings
from tests.support.servers.ports import free_port
from tests.support.servers.processes import run, run_here
from tests.support.session.session_client import (
    HIGH,
    MASTER,
    POLICY,
    SCOPE,
    asking,
    serving,
    sha,
)


@pytest.fixture
def settings(redis_url, tmp_path):
    return Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), session_port=0)


@pytest.fixture
async def served(settings):
    async with serving(settings) as address:
        yield address


@pytest.fixture
async def client(served):
    async with asking(served) as made:
        yield made


async def shown(address: str, *arguments: str, how: Any = run_here, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the real command, as a user does."""
    env = {**os.environ, "INTERLOCK_SESSION_ADDRESS": address, **more}
    return await asyncio.to_thread(how, "session", "show", *arguments, env=env)


@pytest.mark.finding("F-30")
async def test_the_command_line_honours_the_port_of_its_environment(client, served, tmp_path):
    """Only the port is named: the command finds the service there, and says where nothing answers."""
    session = await client.session(token=(await client.line(HIGH)).token)
    port = served.rsplit(":", 1)[1]
    found = await shown(
        "", session.session_id, how=run, INTERLOCK_SESSION_PORT=port, INTERLOCK_STATE_DIR=str(tmp_path / "other")
    )
    closed = free_port()
    missed = await shown(
        "", session.session_id, INTERLOCK_SESSION_PORT=str(closed), INTERLOCK_STATE_DIR=str(tmp_path / "other")
    )

    assert found.returncode == 0, found.stderr
    assert session.session_id in found.stdout
    assert (missed.returncode, f"127.0.0.1:{closed}" in missed.stdout + missed.stderr) == (2, True)


@pytest.mark.req("DAG-11", "BRK-2")
async def test_the_command_line_shows_a_session(client, served):
    """Budget with its warning, breaker, every window, lineage, and that the graph is sound."""
    done = await client.line(350_000, HIGH, HIGH)
    session = await client.session(token=done.token)
    result = await shown(served, session.session_id)
    first, second, third = (window.window_id for window in session.windows)

    assert result.returncode == 0
    for expected in (
        "0.35 of 1.00 (caution), breaker HALF_OPEN",
        "3 of 200",
        f"{first} -> {second} -> {third}",
        "dag      sound",
        POLICY,
    ):
        assert expected in result.stdout
    assert [line.split()[:3] for line in result.stdout.splitlines() if line.startswith(("1 ", "2 ", "3 "))] == [
        [str(n), window.window_id, "HIGH"] for n, window in enumerate(session.windows, 1)
    ]


async def test_the_command_line_prints_json_for_programs(client, served):
    """One JSON document with integers in millionths."""
    done = await client.line(HIGH)
    session = await client.session(token=done.token)
    result = await shown(served, session.session_id, "-o", "json")
    found = json.loads(result.stdout)

    assert (found["session_id"], found["status"], found["breaker"]) == (session.session_id, "ACTIVE", "CLOSED")
    assert (found["safety_budget_micros"], found["safety_budget"]) == (850_000, "0.85")
    assert found["windows"][0]["continuation_id"] == done.continuation_id
    assert (found["dag_violations"], found["lineage"]) == ([], [session.windows[0].window_id])


@pytest.mark.parametrize(
    ("argument", "reason"), [("crp_sess_" + "0" * 32, "SESSION_NOT_FOUND"), ("crp_sess_1", "INVALID_ID")]
)
async def test_the_command_line_says_when_there_is_no_such_session(served, argument, reason):
    """Exit 2 with the reason on one line; with -o json as a document."""
    told = await shown(served, argument)
    document = await shown(served, argument, "-o", "json")

    assert (told.returncode, document.returncode) == (2, 2)
    assert reason in told.stderr
    assert json.loads(document.stdout)["error"]["reason"] == reason


async def test_the_command_line_says_how_to_reach_a_service_that_is_not_there(unused_tcp_port):
    """Nobody listens: exit 2 and a hint that names the setting."""
    result = await shown(f"127.0.0.1:{unused_tcp_port}", "crp_sess_" + "0" * 32)

    assert result.returncode == 2
    assert "SESSION_UNAVAILABLE" in result.stderr
    assert "INTERLOCK_SESSION_ADDRESS" in result.stderr


async def drawn(address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the real command, as a user does."""
    env = {**os.environ, "INTERLOCK_SESSION_ADDRESS": address}
    return await asyncio.to_thread(run_here, "session", "dag", *arguments, env=env)


@pytest.mark.req("DAG-12")
async def test_the_command_line_draws_the_graph_of_a_session(client, served, tmp_path):
    """As text on the screen, and in every other form into a file."""
    done = await client.line(350_000, HIGH)
    session = await client.session(token=done.token)

    text = await drawn(served, session.session_id)
    assert text.returncode == 0
    assert f"Session: {session.session_id}" in text.stdout
    assert "Window 1 [root, LINEAR" in text.stdout
    assert "└──► Window 2 [LINEAR" in text.stdout

    for form, begins in {"mermaid": "flowchart TD", "dot": "digraph", "svg": "<svg", "json": '{"sessions"'}.items():
        file = tmp_path / f"dag.{form}"
        result = await drawn(served, session.session_id, "--format", form, "--tree", "--file", str(file))
        assert (result.returncode, result.stdout) == (0, "")
        assert file.read_text().startswith(begins)
        assert "Window 2" in file.read_text() or '"name": "2"' in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("crp_sess_" + "0" * 32,), "SESSION_NOT_FOUND"),
        (("crp_sess_1",), "INVALID_ID"),
        (("crp_sess_" + "0" * 32, "--root", "x"), "INVALID_ID"),
    ],
)
async def test_the_command_line_says_when_there_is_nothing_to_draw(served, arguments, reason):
    """Exit 2 with the reason; for a session that may have been delegated to, with how to find it."""
    told = await drawn(served, *arguments)

    assert told.returncode == 2
    assert f"error: {reason}" in told.stderr
    assert ("--root" in told.stderr) == (reason == "SESSION_NOT_FOUND")


async def test_the_command_line_says_when_a_picture_cannot_be_written(client, served, tmp_path):
    """Without a traceback."""
    done = await client.line(HIGH)
    session = await client.session(token=done.token)

    told = await drawn(served, session.session_id, "--file", str(tmp_path / "no" / "x"))

    assert told.returncode == 2
    assert "FILE_NOT_WRITTEN" in told.stderr


@pytest.mark.req("DAG-12", "AGT-1")
async def test_the_command_line_shows_and_draws_a_session_that_was_delegated_to(client, served):
    """By itself, with its root, and from its root with the whole tree."""
    done = await client.line(HIGH)
    root = await client.session(token=done.token)
    granted = await client.call("Delegate", session_pb2.DelegateRequest(token=done.token, scope=SCOPE))
    child = await client.start(grant=granted.grant, parent_policy_hash=sha(POLICY))
    child_id = child.session.session_id
    await client.settle(await client.open(child.token), ancestor_session_ids=[root.session_id])

    alone = await shown(served, child_id)
    found = await shown(served, child_id, "--root", root.session_id)
    above = await shown(served, root.session_id, "-o", "json")
    tree = await drawn(served, root.session_id, "--tree")
    part = await drawn(served, child_id, "--root", root.session_id, "--format", "mermaid")

    assert alone.stdout == found.stdout
    assert f"depth 1, delegated by {root.session_id}" in found.stdout
    assert json.loads(above.stdout)["child_session_ids"] == [child_id]
    assert tree.stdout.count("Session: ") == 2
    assert f"  delegated by {root.session_id}" in tree.stdout
    assert (part.returncode, part.stdout.count("subgraph")) == (0, 1)
