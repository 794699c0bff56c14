"""``interlock top`` and ``interlock session watch`` over real services: what is shown is what happened."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from tests.support.paths import ROOT
from tests.support.servers.processes import COMMAND, environment, run_here
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.commanded import answering, command, commanded
from tests.support.sidecar.sidecar import token_of

pytestmark = pytest.mark.req("OBS-5")

BOTH = ("audit", "session")


@pytest.fixture(scope="module")
def provider():
    with RunningProvider(answering()) as running:
        yield running


async def test_top_shows_budgets_calls_and_halts(tmp_path, provider):
    """Sessions with what they have left and what was stopped, callers with theirs; programs get the same figures."""
    async with commanded(tmp_path, provider.base_url, BOTH, caller_budget=1.0) as (sidecar, env):
        empty = await command(env, "top")
        first = await sidecar.chat("c", headers={"crp-safety-policy": "halt-on CRITICAL"})
        await sidecar.chat("d", token=token_of(first))
        text, told = await command(env, "top"), json.loads((await command(env, "top", "--once", "-o", "json")).stdout)

    [session] = told["sessions"]
    head, _, columns, row, *_ = text.stdout.splitlines()
    assert "no session has begun yet" in empty.stdout
    assert (session["calls"], session["halted"], session["risk"], session["status"]) == (2, 1, "CRITICAL", "ACTIVE")
    assert told["last_minute"] == {"calls": 2, "halted": 1, "held": 0}
    assert head.endswith("last minute: 2 calls, 1 halted, 0 held")
    assert columns.split()[:4] == ["agent", "session", "budget", "left"]
    assert row.split()[:2] == ["agent", session["session_id"][-6:]]
    assert [(one["scope"], one["caller_budget"]) for one in told["callers"]] == [("anonymous", "1.00")]


async def test_top_paints_a_terminal_again_and_again(tmp_path, provider):
    """On a terminal it stays, shows a call that is made meanwhile, outlives a service that is away, and ends on Ctrl-C."""
    async with commanded(tmp_path, provider.base_url, BOTH) as (sidecar, env):
        await sidecar.chat("a")
        near, far = pty.openpty()
        command_line = [*COMMAND, "top", "--every", "0.5"]
        path = os.pathsep.join((str(ROOT / "services"), str(ROOT)))
        child = subprocess.Popen(
            command_line,
            env={**env, "PYTHONPATH": path},
            stdout=far,
            stderr=subprocess.DEVNULL,
            preexec_fn=_interruptible,
        )
        os.close(far)
        try:
            before = await asyncio.to_thread(_until, near, "1 sessions, 1 active")
            await sidecar.chat("b")
            after = await asyncio.to_thread(_until, near, "2 sessions, 2 active")
        finally:
            child.send_signal(signal.SIGINT)
            try:
                code = await asyncio.to_thread(child.wait, 20)
            finally:
                child.kill()
                os.close(near)

    assert before.startswith("\x1b[2J")
    assert "\x1b[2J" not in after, "it is painted over, not cleared"
    assert code == 130


def _interruptible() -> None:
    """Let Ctrl-C end a child of tests that run behind a shell, which ignores it there."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _until(terminal: int, wanted: str) -> str:
    """Read a terminal until a text is on it."""
    seen = ""
    while wanted not in seen:
        seen += os.read(terminal, 65_536).decode(errors="replace")
    return seen


async def test_a_session_is_watched_until_it_ends(tmp_path, provider):
    """Each answer is a line as it happens, each step of the breaker too, and the end ends the command."""
    async with commanded(tmp_path, provider.base_url, BOTH) as (sidecar, env):
        first = await sidecar.chat("a")
        session_id, token = first.headers["crp-context-session-id"], token_of(first)
        watching = asyncio.create_task(command(env, "session", "watch", session_id, "--every", "0.1", "-o", "json"))
        for question in ("c", "d"):
            token = token_of(await sidecar.chat(question, token=token))
        await sidecar.client.delete(f"/crp/v3/session/{session_id}", headers={"crp-session-token": token})
        told = [json.loads(line) for line in (await asyncio.wait_for(watching, 30)).stdout.splitlines()]
        text = await command(env, "session", "watch", session_id)

    answers = [one for one in told if one["event"] == "answer"]
    assert [(one["window_number"], one["risk"]) for one in answers] == [(1, "LOW"), (2, "HIGH"), (3, "CRITICAL")]
    assert [one["event"] for one in told][-1] == "end"
    assert text.returncode == 0
    assert re.search(r"^\d\d:\d\d:\d\d +2  HIGH ", text.stdout, re.MULTILINE)
    assert text.stdout.splitlines()[-1].endswith("ended: TERMINATED")


async def test_once_prints_what_there_is(tmp_path, provider):
    """--once does not wait for the end; an unknown session is refused."""
    async with commanded(tmp_path, provider.base_url, BOTH) as (sidecar, env):
        session_id = (await sidecar.chat("b")).headers["crp-context-session-id"]
        once = await command(env, "session", "watch", session_id, "--once")
        nobody = await command(env, "session", "watch", "crp_sess_" + "0" * 32)

    assert (once.returncode, "MEDIUM" in once.stdout) == (0, True)
    assert (nobody.returncode, "SESSION_NOT_FOUND" in nobody.stderr) == (2, True)


def test_without_services_both_say_what_to_start(tmp_path):
    """The first look is not forgiven: exit 2 and a hint."""
    env = environment(tmp_path / "state", {"rpc_timeout_s": 1})
    ended = [run_here(*one, env=env) for one in (("top",), ("session", "watch", "crp_sess_" + "1" * 32))]

    assert [(one.returncode, "interlock serve" in one.stderr) for one in ended] == [(2, True)] * 2
