"""The agent under test: a command, in a process group of its own, that finds the endpoint in two environment variables."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Self

from interlock.client.decision.places import AT, TICKET
from interlock.domain.errors import invalid

STOP_S = 3.0
_SECRET = ("INTERLOCK_", "OPENAI_")
"""What of this environment an agent under test has no business with."""
KEPT_BYTES = 4_000


class AgentProcess:
    """One instance, from ``async with`` to its end. ``output``: the end of what it printed."""

    def __init__(self, command: Sequence[str], address: str, ticket: str) -> None:
        self._command = command
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_SECRET)}
        self._env = {**inherited, AT: address, TICKET: ticket}
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None
        self._printed = b""

    async def __aenter__(self) -> Self:
        """Start it. Refused with CERTIFY_COMMAND_FAILED where there is no such program."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, env=self._env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise invalid("CERTIFY_COMMAND_FAILED", f"{self._command[0]}: {type(error).__name__}") from None
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it and what it started: asked first, killed after that."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self._running.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill -9 it and what it started."""
        self._signal(signal.SIGKILL)
        await self._running.wait()
        if self._reader:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    @property
    def has_ended(self) -> bool:
        """Whether it is no longer there."""
        return self._running.returncode is not None

    @property
    def output(self) -> str:
        """The end of what it printed."""
        return self._printed.decode("utf-8", "replace")

    @property
    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._running.pid, number)

    async def _read(self) -> None:
        assert self._running.stdout is not None
        while part := await self._running.stdout.read(4_096):
            self._printed = (self._printed + part)[-KEPT_BYTES:]
