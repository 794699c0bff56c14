"""A-35: the session store gives Interlock what it needs and nothing else: the user that docs/security-operations.md prints."""

from __future__ import annotations

import re

import pytest
import redis

from interlock.session.store.redis import key_of
from tests.support.kernels import KernelClient
from tests.support.paths import ROOT
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, delegated, onward
from tests.support.valkey import Valkey

running, provider = answering.running, answering.provider

pytestmark = [pytest.mark.req("SVC-6", "BUD-9")]

PAGE = ROOT / "docs" / "security-operations.md"
SECRET = "of-the-test"


def printed() -> list[str]:
    """The words of the ACL rule in the documentation, behind the user's name."""
    (line,) = re.findall(r"^user interlock (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [word.replace(">PASSWORD", f">{SECRET}") for word in line.split()]


@pytest.fixture
def server(tmp_path):
    with Valkey(tmp_path) as started:
        with started.client() as client:
            client.execute_command("ACL", "SETUSER", "interlock", *printed())
        yield started


async def test_a35_the_printed_user_is_all_that_interlock_needs(tmp_path, running, provider, server):
    """Sessions start, go on, branch, delegate, end, are lost and rebuilt, with the rights of that one line."""
    provider.by_question = {"B?": "It is HIGH."}
    url = f"redis://interlock:{SECRET}@127.0.0.1:{server.port}/0"
    async with running_sidecar(tmp_path / "one", upstream=running.base_url, dpe=Merger(), redis_url=url) as sidecar:
        first = await sidecar.chat("A?")
        second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        branch = {**onward(first), "crp-session-action": "branch"}
        third = await sidecar.chat("C?", token=token_of(first), headers=branch)
        child = await delegated(sidecar, second, "D?")
        with server.client() as client:
            client.delete(key_of(*[first.headers["crp-context-session-id"]] * 2))
        fourth = await sidecar.chat("E?", token=token_of(second), headers=onward(second))
        session = f"/crp/v3/session/{first.headers['crp-context-session-id']}"
        ended = await sidecar.client.delete(session, headers={"crp-session-token": token_of(fourth)})
        left = await budget(sidecar, first)
        team = KernelClient(sidecar.client, "team")
        await team.open()
        acted = await team.execute("task", "one")
        with server.client() as client:
            sealed = client.hget(f"il:{{{(await team.describe())['kernel_id']}}}:kernel", "sealed")

    answers = [first, second, third, child, fourth]
    assert [one.status_code for one in answers] == [200] * 5, [one.text for one in answers]
    assert ended.status_code < 300, ended.text
    assert left == 850_000
    assert acted["verdict"]["approved"]
    assert sealed == b"2"


@pytest.mark.parametrize(
    "command",
    [
        ("FLUSHALL",), ("FLUSHDB",), ("KEYS", "*"), ("SCAN", "0"), ("CONFIG", "GET", "*"), ("CONFIG", "SET", "appendonly", "no"),
        ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH"), ("SHUTDOWN",), ("REPLICAOF", "NO", "ONE"),
        ("ACL", "LIST"), ("MODULE", "LIST"), ("RESTORE", "il:x", "0", "x"), ("RENAME", "il:a", "il:b"), ("MONITOR",),
        ("GET", "another:application"), ("SET", "another:application", "1"),
        ("EVAL", "return redis.call('GET', KEYS[1])", "1", "another:application"), ("EVAL", "return redis.call('FLUSHALL')", "0"),
    ],
    ids=lambda command: " ".join(command)[:40],
)  # fmt: skip
def test_a35_the_printed_user_may_do_nothing_else(server, command):
    """A stolen password empties, lists, rolls back and reads nothing beside our own keys."""
    with (
        redis.Redis(port=server.port, username="interlock", password=SECRET) as client,
        pytest.raises(redis.exceptions.ResponseError, match=r"(?i)permission|ACL failure|can't run"),
    ):
        client.execute_command(*command)
