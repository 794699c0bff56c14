"""`interlock decision` against real processes: `serve audit` and `serve decision` over one Valkey (DEC-6, SVC-1)."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import grpc
import pytest

from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from tests.support.decision_service import BusClient, DecisionClient, emits, proposes
from tests.support.decisions import PROTOCOL
from tests.support.servers.browser import browsing
from tests.support.servers.processes import Process, environment, run

pytestmark = [pytest.mark.req("DEC-6", "SVC-1"), pytest.mark.long]


@pytest.fixture
def served(tmp_path, redis_url):
    """Both services as processes of their own, on sockets of one state folder; the front on any free port."""
    env = environment(tmp_path / "state", {"redis_url": redis_url})
    processes = [Process(tmp_path, name, env).start() for name in ("audit", "decision")]
    try:
        for one in processes:
            one.wait()
        yield processes[1].ports["decision"]
    finally:
        for one in processes:
            one.stop()


async def decided(port: int) -> None:
    """Two cycles of one agent."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        search = DecisionClient(DecisionServiceStub(channel))
        await search.open()
        await search.register(PROTOCOL)
        async with search.working("protocol", lambda _: {"proposals": [proposes()]}):
            assert (await search.run(1)).outcome == "SWITCH_HPO"
            assert (await search.run(2)).outcome == "CONTINUE"


def test_decisions_are_listed_shown_and_replayed_and_a_bent_one_is_told(served, tmp_path):
    """The list has both cycles, the trace says why, the replay is the same; of a changed file it names the place."""
    asyncio.run(decided(served))
    env, at = environment(tmp_path / "cli") | {"OPENAI_API_KEY": "alice"}, ("--at", f"127.0.0.1:{served}")
    listed = json.loads(run("decision", "list", "search", *at, "-o", "json", env=env).stdout)
    shown = run("decision", "show", "search", "2", *at, env=env).stdout
    same = run("decision", "replay", "search", "1", *at, env=env)
    file = tmp_path / "trace.json"
    file.write_text(run("decision", "show", "search", "1", *at, "-o", "json", env=env).stdout)
    offline = run("decision", "replay", str(file), env=env)
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "trace": told["trace"].replace('"score', '"scare').replace("0.9", "0.95")}))
    bent = run("decision", "replay", str(file), "-o", "json", env=env)
    foreign = run("decision", "list", "search", *at, env=env | {"OPENAI_API_KEY": "mallory"})

    assert [(one["cycle"], one["outcome"], one["chosen"]) for one in listed] == [
        (1, "SWITCH_HPO", "protocol/p1"), (2, "CONTINUE", ""),
    ]  # fmt: skip
    assert "COOLDOWN_ACTIVE" in shown
    assert (same.returncode, offline.returncode) == (0, 0)
    assert same.stdout.startswith("the same, ")
    assert bent.returncode == 1
    assert json.loads(bent.stdout)["differs_at"]
    assert foreign.returncode == 2
    assert "DECISION_EXPERIMENT_NOT_FOUND" in foreign.stderr
    assert run("decision", "replay", str(tmp_path / "none.json"), env=env).returncode == 2


async def looked_at(file: Path) -> tuple[int, str, list[str]]:
    """The page in a real Chromium: marks on its time line, the text of its second cycle, and what the browser complained of."""
    faults: list[str] = []
    async with browsing(viewport={"width": 390, "height": 800}) as page:
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(file.as_uri())
        overflow = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        await page.click("#cycle-1 summary")
        assert overflow <= 0
        return await page.locator("circle.mark.decided").count(), await page.inner_text("#cycle-2"), faults


def test_a_run_is_written_as_a_page(served, tmp_path):
    """Both cycles with their guards, in one file without scripts that Chromium shows on a telephone without a complaint."""
    asyncio.run(decided(served))
    env, at = environment(tmp_path / "cli") | {"OPENAI_API_KEY": "alice"}, ("--at", f"127.0.0.1:{served}")
    file = tmp_path / "run.html"
    written = run("decision", "report", "search", "--file", str(file), *at, "-o", "json", env=env)
    nowhere = run("decision", "report", "search", "--file", str(tmp_path / "none" / "run.html"), *at, env=env)
    decisions, second, faults = asyncio.run(looked_at(file))

    assert json.loads(written.stdout) == {"file": str(file), "cycles": 2, "replay": 2}
    assert (nowhere.returncode, "DECISION_FILE_INVALID" in nowhere.stderr) == (2, True)
    assert decisions == 1
    assert "COOLDOWN_ACTIVE" in second
    assert faults == []


async def emitted(port: int) -> None:
    """Signals of two types on a bus that holds 256: the first ones are gone."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        search = DecisionClient(DecisionServiceStub(channel))
        await search.open(bus_signals=256)
        bus = BusClient(search)
        for at in (0, 150):
            trials = range(at, at + 150)
            await bus.emit(
                *(emits("trial_completed", "executor", {"trial": one, "value": 0.5}, time.time()) for one in trials)
            )
        await bus.emit(emits("budget_low", "executor", {"utilization": 0.9}, time.time()))


@pytest.mark.req("DEC-2")
def test_signals_are_watched_with_what_was_lost_and_resumed(served, tmp_path):
    """By type, in text and as JSON; the gap is told; the token goes on; another key sees nothing."""
    asyncio.run(emitted(served))
    env = environment(tmp_path / "cli") | {"OPENAI_API_KEY": "alice"}
    at = ("--at", f"127.0.0.1:{served}", "--seconds", "1.5")
    text = run("decision", "watch", "search", *at, "--type", "budget_low", env=env)
    pages = [
        json.loads(line) for line in run("decision", "watch", "search", *at, "-o", "json", env=env).stdout.splitlines()
    ]
    rest = run("decision", "watch", "search", *at, "--after", pages[-1]["token"], env=env)
    foreign = run("decision", "watch", "search", *at, env=env | {"OPENAI_API_KEY": "mallory"})

    assert text.returncode == 0, text.stderr
    lines = text.stdout.splitlines()
    assert lines[0] == "lost    45 of 1 to 45"
    assert lines[1] == '301  budget_low  executor  0.9  -  {"utilization":0.9}'
    assert lines[2] == f"go on with --after {pages[-1]['token']}"
    assert sum(len(one["signals"]) for one in pages) == 256
    assert pages[0]["gap"]["count"] == "45"
    assert rest.stdout.splitlines() == [f"go on with --after {pages[-1]['token']}"]
    assert (foreign.returncode, "DECISION_EXPERIMENT_NOT_FOUND" in foreign.stderr) == (2, True)
